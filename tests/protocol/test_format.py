"""Figures for people."""

import re
from pathlib import Path
from typing import Any

import pytest

from bench_protocol.base import format as people

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00 µs"),
        (2.5e-6, "2.50 µs"),
        (0.00099949, "999 µs"),
        (0.0009996, "1.00 ms"),
        (0.0125, "12.5 ms"),
        (0.9996, "1.00 s"),
        (9.994, "9.99 s"),
        (9.996, "10.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 0 s"),
        (119.4, "1 min 59 s"),
        (3_599.4, "59 min 59 s"),
        (3_599.6, "1 h 0 min"),
        (7_800, "2 h 10 min"),
        (360_000, "100 h 0 min"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert people.seconds(value) == text
    assert people.nanoseconds(value * 1e9) == text


ORDINALS = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 23: "23rd"}
ORDINALS |= {113: "113th", 1001: "1,001st"}


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        *((people.ordinal, (number,), text) for number, text in ORDINALS.items()),
        (people.plural, (0, "entry", "entries"), "0 entries"),
        (people.plural, (1, "entry", "entries"), "1 entry"),
        (people.plural, (2000, "entry", "entries"), "2,000 entries"),
        (people.plural, (1, "key"), "1 key"),
        (people.plural, (2, "key"), "2 keys"),
        (people.rate, (12_345.6,), "12,346"),
        (people.rate, (999.4,), "999"),
        (people.rate, (45.67,), "45.7"),
        (people.rate, (0.5,), "0.50"),
        (people.ratio, (1.639,), "1.64×"),
        (people.ratio, (12.34,), "12.3×"),
        (people.ratio, (0.0412,), "0.0412×"),
        (people.ratio, (0.99951,), "1.00×"),
        (people.rough, (0.2,), "0 s"),
        (people.rough, (59.6,), "1 min 0 s"),
        (people.rough, (3599,), "59 min 59 s"),
        (people.rough, (7194,), "2 h 0 min"),
        (people.percent, (0.0234,), "2.3 %"),
        (people.percent, (1,), "100.0 %"),
        (people.percent, (5.68,), "568 %"),
        (people.percent, (0.497, 0), "50 %"),
        (people.size, (0,), "0 B"),
        (people.size, (1023,), "1023 B"),
        (people.size, (1024,), "1.0 KiB"),
        (people.size, (24 * 2**30,), "24.0 GiB"),
        (people.size, (5 * 2**50,), "5120.0 TiB"),
        (people.deviation, (0,), "0"),
        (people.deviation, (1.23e-5,), "1.2e-05"),
        (people.faster_than, (1.644,), "is 1.64 times as fast as"),
        (people.faster_than, (1.644, "trains"), "trains 1.64 times as fast as"),
        (people.faster_than, (0.41,), "is 0.410 times as fast as"),
        (people.faster_than, (0.92,), "is 8 % slower than"),
        (people.framework, ("torch",), "PyTorch"),
        (people.framework, ("other",), "other"),
        (people.bounds, (1.644, 1.59, 2.01), "1.59 to 2.01"),
        (people.bounds, (0.939, 0.93, 0.948), "5.2 to 7 % slower"),
        (people.bounds, (0.97, 0.93, 1.01), "0.930 to 1.010"),
        (people.bounds, (1.04, 1.037, 1.043), "1.037 to 1.043"),
        (people.bounds, (0.93, 0.92996, 0.93004), "6.996 to 7.004 % slower"),
        (people.interval, (1.036, 1.046, people.times, "×"), "1.036× to 1.046×"),
        (people.ratio, (1.2446, 1.2441, 1.2449), "1.245×"),
        (people.ratio, (1733.2, 1733.1, 1733.4), "1,733.2×"),
        (people.faster, (1.24, 1.1, 1.4), "1.24 times as fast"),
        (people.interval, (1.0399, 1.0402, people.times, "×"), "1.0399× to 1.0402×"),
        (people.interval, (52.06, 52.13, people.rate), "52.06 to 52.13"),
        (people.interval, (7.0, 7.0, people.times), "7.00 to 7.00"),
        (people.interval, (1.99999999, 2.00000001, people.times), "2.00 to 2.00"),
        (people.bounds, (0.5, 0.4, 0.6), "0.400 to 0.600"),
        (people.round_ratio, (0.5,), "0.5×"),
        (people.round_ratio, (1000,), "1,000×"),
    ],
)
def test_format(function: Any, arguments: tuple[Any, ...], text: object) -> None:
    assert function(*arguments) == text


@pytest.mark.parametrize(
    ("value", "column", "alone"),
    [
        (1.644, "1.64×", "1.64 times as fast"),
        (1 / 21.8, "0.0459×", "0.0459 times as fast"),
        (0.935, "0.935×", "6.5 % slower"),
        (1.012, "1.012×", "1.012 times as fast"),
        (1.003, "1.003×", "1.003 times as fast"),
        (1.0, "1.00×", "1.00 times as fast"),
        (0.9996, "1.00×", "1.00 times as fast"),
    ],
)
def test_speed_ups(value: float, column: str, alone: str) -> None:
    assert (people.ratio(value), people.faster(value)) == (column, alone)


def test_a_table_in_markdown() -> None:
    table = people.markdown(("cell", "rate"), [("a", "1"), ("b", "2")])
    assert table == "| cell | rate |\n| --- | --- |\n| a | 1 |\n| b | 2 |"


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
