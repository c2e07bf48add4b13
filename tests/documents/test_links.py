"""Documents link to files and headings that exist, and name tests and make targets that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# Decisions are of their time; these documents describe the present tree.
PRESENT = [path for path in DOCUMENTS if path.parent in (ROOT, ROOT / "docs")]
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", prose(path)):
        file, _, heading = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        assert not heading or heading in headings(target), link


@pytest.mark.parametrize("path", PRESENT, ids=name)
def test_named_tests_and_targets_exist(path: Path) -> None:
    text = path.read_text()
    for file in re.findall(r"\btests/[\w/]+\.py", text):
        assert (ROOT / file).exists(), file
    for target in re.findall(r"`(?:\w+=\S+ )*make ([a-z][\w-]*)", text):
        assert target in TARGETS or target.endswith("-"), target


def headings(path: Path) -> set[str]:
    lines = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def prose(path: Path) -> str:
    return re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
