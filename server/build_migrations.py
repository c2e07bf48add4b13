"""Build hook: takes the repository's ``migrations/`` and the documents that pages show into the
wheel and the sdist.

In a checkout they lie beside ``server/``; in an sdist, where this hook has put them, inside it. An
editable install reads the checkout's own (:func:`bench_server.db.migrate.migrations_folder`).
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TAKEN = {"migrations": ("*.py",), "docs": ("*.md",)}


class Migrations(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        inside = "bench_server/" if self.target_name == "wheel" else ""
        for name, patterns in TAKEN.items():
            places = (Path(self.root) / name, Path(self.root).parent / name)
            folder = next(place for place in places if place.is_dir())
            for file in sorted(found for pattern in patterns for found in folder.rglob(pattern)):
                target = f"{inside}{name}/{file.relative_to(folder)}"
                build_data["force_include"][str(file)] = target
