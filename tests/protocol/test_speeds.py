"""Speeds in what a workload counts."""

import pytest

from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.modern import CHARACTERS


@pytest.fixture(autouse=True)
def of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(speeds.DATA_SETS, "gpt-char", CHARACTERS)


@pytest.mark.parametrize(
    ("workload", "words", "short", "among"),
    [
        ("gpt-char", "25,600 tokens/s", "25,600 tokens/s", "25,600 tokens/s"),
        ("mnist-cnn", "100 samples/s", "100/s", "100"),
        ("of another program", "100 samples/s", "100/s", "100"),
    ],
)
def test_a_speed_is_in_what_the_workload_counts(
    workload: str, words: str, short: str, among: str
) -> None:
    assert speeds.words(100.0, workload) == words
    assert speeds.short(100.0, workload) == short
    assert speeds.among_samples(100.0, workload) == among
    assert speeds.of_tokens(workload, 100.0) == (25_600 if workload == "gpt-char" else None)
    assert speeds.of_tokens(workload, None) is None


def test_a_range_of_tokens_has_both_ends_in_tokens() -> None:
    assert speeds.interval(100, 110, "gpt-char") == "25,600 to 28,160"
    assert speeds.interval(100, 110, "mnist-cnn") == "100 to 110"
