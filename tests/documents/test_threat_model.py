"""docs/threat-model.md names tests, files, attacks and routes that exist, and every way in."""

import re
from pathlib import Path

import pytest
from tests.fakes.authority import AUTHORITY

from bench_server.app import create_app
from bench_server.db.store import Store
from bench_server.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
TESTS = re.findall(r"`(\w+/test_\w+\.py)(?:::(\w+))?`", PAGE)
FILES = re.findall(r"`((?:\w+/src|deploy|docs)/[\w./-]+|docker-compose\.yml)`", PAGE)
ROWS = [row.rpartition(" | ")[2] for row in PAGE.splitlines() if row.startswith("| ")]
ATTACKS = re.findall(r'"([^"]+)"', "\n".join(ROWS))


@pytest.mark.parametrize(("file", "test"), TESTS)
def test_tests_exist(file: str, test: str) -> None:
    text = (ROOT / "tests" / file).read_text()
    assert not test or re.search(rf"^(async )?def {test}\(", text, re.MULTILINE)


def test_files_exist() -> None:
    assert FILES
    for name in FILES:
        assert (ROOT / name).exists(), name


def test_attacks_are_rows_of_the_audit() -> None:
    sources = (ROOT / "tests" / "evidence").rglob("*.py")
    text = "\n".join(path.read_text() for path in sources)
    assert len(ATTACKS) >= 9
    for attack in ATTACKS:
        assert attack in text, attack


def test_every_row_says_how_it_is_shown() -> None:
    ways = PAGE.split("## Ways in")[1].split("## Not prevented")[0]
    rows = [line for line in ways.splitlines() if line.startswith("| ")]
    shown = [row for row in rows if not row.startswith("| way ")]
    assert len(shown) > 40
    for row in shown:
        assert re.search(r'`|"', row.rsplit(" | ", 1)[1]), row


def test_every_route_that_takes_a_body_is_a_way_in() -> None:
    app = create_app(Settings(), Store("sqlite:///:memory:"), authority=AUTHORITY)
    paths = app.openapi()["paths"]
    written = {path for path, methods in paths.items() if methods.keys() - {"get", "head"}}
    assert "/api/v1/results" in written
    ways = re.findall(r"^\| `(?:POST )?(/api/[\w/-]+)`", PAGE, re.MULTILINE)
    for path in written:
        assert any(path == way or path.startswith(f"{way}/") for way in ways), path
