"""Script: describe the Python that runs it, as one JSON object.

Arguments: modules to look for, and ``--packages`` to list every distribution. It runs under other
interpreters than the agent's, so it uses the standard library only, and nothing newer than what a
Python needs to say that it is too old.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
from importlib import import_module
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

AGENT = ("bench_agent", "bench_protocol")
# A line of RECORD about a shared library: its path and the hash of its content.
LIBRARY = re.compile(
    r'^"?([^",\n]+\.(?:so(?:\.[0-9]+)*|dylib|dll|pyd|metallib))"?,([^,\n]*),', re.MULTILINE
)


def describe(modules: list[str], packages: bool) -> dict[str, Any]:
    """Version, agent and modules of this Python; with ``packages``, its distributions too."""
    found = list(distributions()) if packages else []
    return {
        "python": platform.python_version(),
        "prefix": sys.prefix,
        "agent": import_module("bench_agent").__version__ if is_there("bench_agent") else None,
        "source": source_digest(),
        "installed": installed(),
        "has_pip": is_there("pip"),
        "modules": [name for name in modules if is_there(name)],
        "packages": versions(found),
        "shared": shared_libraries(found),
    }


def is_there(module: str) -> bool:
    """Whether a module can be found. A failing import of its parent counts as no."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def source_digest() -> str | None:
    """SHA-256 over names and content of the agent's source files; None without an agent."""
    digest = hashlib.sha256()
    for name in AGENT:
        spec = find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            return None
        folder = Path(next(iter(spec.submodule_search_locations)))
        for path in sorted(folder.rglob("*.py")):
            name_and_content = (path.relative_to(folder).as_posix().encode(), path.read_bytes())
            digest.update(b"\0".join(name_and_content) + b"\0")
    return digest.hexdigest()


def installed() -> str:
    """SHA-256 over the names and versions of all distributions, as their folders have them:
    reading their metadata takes a second."""
    folders = (Path(folder) for folder in sys.path if folder)
    there = sorted(path.name for folder in folders for path in folder.glob("*.*-info"))
    return hashlib.sha256("\0".join(there).encode()).hexdigest()


def versions(found: list[Any]) -> dict[str, str]:
    """Version of every distribution by its normalised name; the first on the path is imported."""
    there: dict[str, str] = {}
    for item in found:
        if normal_name(item):
            there.setdefault(normal_name(item), item.version or "")
    return there


def normal_name(item: Any) -> str:
    """A distribution's name in lower case with hyphens; empty if it has none."""
    name = item.metadata["Name"] if item.metadata else None
    return (name or "").lower().replace("_", "-")


def shared_libraries(found: list[Any]) -> list[dict[str, Any]]:
    """Shared libraries that several distributions install with different content.

    One entry for each group of distributions: their names, the number of libraries, and one of
    them.
    """
    owners: dict[str, set[tuple[str, str]]] = {}
    for item in found:
        for path, digest in LIBRARY.findall(item.read_text("RECORD") or ""):
            place = os.path.normpath(str(item.locate_file(path)))
            owners.setdefault(place, set()).add((normal_name(item), digest))
    groups: dict[tuple[str, ...], list[str]] = {}
    for place, claims in sorted(owners.items()):
        names = tuple(sorted({name for name, _ in claims}))
        if len(names) > 1 and len({digest for _, digest in claims}) > 1:
            groups.setdefault(names, []).append(Path(place).name)
    return [
        {"distributions": list(names), "libraries": len(libraries), "example": libraries[0]}
        for names, libraries in groups.items()
    ]


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--packages"]
    print(json.dumps(describe(arguments, "--packages" in sys.argv)))
