"""docs/architecture.md names only modules and folders that exist, and every folder."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (ROOT, *(ROOT / part / "src" for part in ("shared", "agent", "server")))
PACKAGES = (ROOT / "agent/src/bench_agent", ROOT / "server/src/bench_server")


def test_every_module_of_the_architecture_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|\.json|/))`", text):
        assert any((folder / name).exists() for folder in (*SOURCES, *PACKAGES)), name


def test_every_name_that_the_architecture_gives_for_a_module_is_defined_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`([a-z_/]+\.py)` \(`([A-Za-z_]+)`", text)
    assert named
    for module, name in named:
        files = [folder / module for folder in (*SOURCES, *PACKAGES) if (folder / module).exists()]
        defined = rf"^ *(?:def|class) {name}\b"
        assert any(re.search(defined, file.read_text(), re.M) for file in files), (module, name)


def test_every_folder_of_both_programs_is_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for package in PACKAGES:
        for folder in package.iterdir():
            if (folder / "__init__.py").exists():
                assert f"`{folder.name}`" in text or f"{folder.name}/" in text, folder
