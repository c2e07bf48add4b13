"""docs/architecture.md names only modules and folders that exist, and every folder."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
PACKAGES = (
    ROOT / "shared/src/bench_protocol",
    ROOT / "agent/src/bench_agent",
    ROOT / "server/src/bench_server",
)


def test_every_module_and_folder_that_it_names_exists() -> None:
    names = re.findall(r"`((?:\w+/)*\w+(?:\.py|\.json|\.toml|/))`", PAGE)
    assert len(names) > 40
    for name in names:
        assert any((folder / name).exists() for folder in (ROOT, *PACKAGES)), name


def test_every_folder_of_a_package_is_named() -> None:
    for package in PACKAGES:
        for folder in package.iterdir():
            if (folder / "__init__.py").exists():
                assert f"`{folder.name}`" in PAGE or f"{folder.name}/" in PAGE, folder


def test_it_is_one_screen_and_a_table() -> None:
    assert len(PAGE.split()) < 1_000
