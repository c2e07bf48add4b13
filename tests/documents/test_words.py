"""Words that readers of pages, API and command line stumbled over do not come back."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("*.py", "*.html", "*.toml", "*.txt")
NOT_SAID = (
    *(
        "not enough data",
        "which is no verdict",
    ),
    *("untested loop", "ended by the clock", "looks faster, but", "nobody sends one"),
    *("best against another framework", "Where it holds it shows", "Data up to log entry"),
    *("Change what is compared", "the middle repeat"),
    # docs/results.md has what ran on a GPU.
    *("on a real GPU yet", "run this on a GPU yet", "was not measured by us"),
)


@pytest.mark.parametrize("part", ["agent", "server", "shared"])
def test_no_text_has_a_word_that_was_replaced(part: str) -> None:
    files = [path for kind in KINDS for path in (ROOT / part / "src").rglob(kind)]
    assert files
    found = [
        (path.name, words)
        for path in files
        for text in [" ".join(path.read_text("utf-8").split())]
        for words in NOT_SAID
        if words in text
    ]
    assert found == []
