"""Figures for people."""

import re
from pathlib import Path

import pytest

from bench_protocol.base import format as people

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        *((1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th")),
        *((23, "23rd"), (113, "113th"), (1001, "1,001st")),
    ],
)
def test_ordinals(number: int, words: str) -> None:
    assert people.ordinal(number) == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 entries"), (1, "1 entry"), (2000, "2,000 entries")]
)
def test_a_number_agrees_with_its_noun(count: int, words: str) -> None:
    assert people.plural(count, "entry", "entries") == words
    assert people.plural(count, "key") == words.replace("entries", "keys").replace("entry", "key")


@pytest.mark.parametrize(
    ("value", "column", "alone"),
    [
        (1.644, "1.64×", "1.64 times as fast"),
        (0.41, "0.410×", "takes 2.44 times as long"),
        (1 / 21.8, "1/21.8×", "takes 21.8 times as long"),
        (1.02, "1.02×", "1.020 times as fast"),
        (17.33, "17.3×", "17.3 times as fast"),
        (1.0, "1.00×", "1.000 times as fast"),
    ],
)
def test_speed_ups(value: float, column: str, alone: str) -> None:
    assert (people.ratio(value), people.faster(value)) == (column, alone)


def test_a_speed_up_between_two_names_and_its_bounds() -> None:
    assert people.faster_than(1.644) == "is 1.64 times as fast as"
    assert people.faster_than(1.644, "trains") == "trains 1.64 times as fast as"
    assert people.faster_than(0.41) == "takes 2.44 times as long as"
    assert people.bounds(1.644, 1.59, 2.01) == "1.59 to 2.01"
    assert people.bounds(0.5, 0.4, 0.6) == "1.67 to 2.50"


def test_a_table_in_markdown() -> None:
    table = people.markdown(("cell", "rate"), [("a", "1"), ("b", "2")])
    assert table == "| cell | rate |\n| --- | --- |\n| a | 1 |\n| b | 2 |"


def test_deviations() -> None:
    assert [people.deviation(value) for value in (0, 0.6, 1.23e-5)] == ["0", "0.6", "1.2e-05"]


def test_percentages() -> None:
    assert people.percent(0.0234) == "2.3 %"
    assert people.percent(5.68) == "568 %"
    assert people.percent(0.497, 0) == "50 %"
    assert people.percent(0.0, 0) == "0 %"


def test_no_output_has_a_percentage_without_its_space() -> None:
    """The format specification ``.1%`` writes none."""
    written = re.compile(r":[-+,0-9]*\.[0-9]%\}")
    places = [
        f"{path}: {line.strip()}"
        for folder in ("agent/src", "shared/src", "server/src", "deploy", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if written.search(line)
    ]
    assert places == []


@pytest.mark.parametrize(
    ("ticks", "words"),
    [
        ((0.5, 1, 20), ["0.5×", "1×", "20×"]),
        ((0.05, 0.5, 1), ["1/20×", "1/2×", "1×"]),
        ((0.001, 1, 1000), ["1/1,000×", "1×", "1,000×"]),
        ((), []),
    ],
)
def test_an_axis_has_fractions_or_decimals(ticks: tuple[float, ...], words: list[str]) -> None:
    assert people.round_ratios(ticks) == words
