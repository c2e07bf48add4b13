"""Build hook: takes the repository's ``migrations/`` into the wheel and the sdist.

In a checkout they lie beside ``server/``; in an sdist, where this hook has put them, inside it. An
editable install reads the checkout's own (:func:`bench_server.schema.migrations_folder`).
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Migrations(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        inside = "bench_server/migrations" if self.target_name == "wheel" else "migrations"
        folder = next(f for f in (root / "migrations", root.parent / "migrations") if f.is_dir())
        for file in sorted((*folder.rglob("*.py"), *folder.rglob("*.mako"))):
            build_data["force_include"][str(file)] = f"{inside}/{file.relative_to(folder)}"
