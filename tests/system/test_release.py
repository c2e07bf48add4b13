"""The parts that a release consists of agree."""

import shutil
from pathlib import Path

import pytest
from deploy.release_check import DISTRIBUTIONS, Failed, versions

ROOT = Path(__file__).parents[2]
NAMES_A_VERSION = [
    *(f"{folder}/pyproject.toml" for folder in DISTRIBUTIONS),
    *(f"{folder}/src/{package}/__init__.py" for folder, package in DISTRIBUTIONS.items()),
    "CHANGELOG.md",
    "docker-compose.yml",
]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for name in NAMES_A_VERSION:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_all_parts_name_one_version() -> None:
    assert versions() in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("place", NAMES_A_VERSION)
def test_another_version_in_any_of_them_is_found(copied: Path, place: str) -> None:
    file = copied / place
    file.write_text(file.read_text().replace(versions(), "9.9.9"))
    with pytest.raises(Failed, match=r": 9\.9\.9"):
        versions(copied)


def test_each_distribution_has_the_licence_and_says_that_it_is_typed() -> None:
    for folder, package in DISTRIBUTIONS.items():
        assert (ROOT / folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
        assert (ROOT / folder / "src" / package / "py.typed").is_file()
