"""Figures for people."""

import pytest

from bench_protocol import format as people


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
    ("value", "column", "alone"),
    [
        (1.644, "1.64×", "1.64× faster"),
        (0.41, "0.410×", "2.44× slower"),
        (1 / 21.8, "1/21.8×", "21.8× slower"),
        (1.02, "1.02×", "1.020× faster"),
        (17.33, "17.3×", "17.3× faster"),
        (1.0, "1.00×", "equal"),
    ],
)
def test_speed_ups(value: float, column: str, alone: str) -> None:
    assert (people.ratio(value), people.faster(value)) == (column, alone)
