"""Fields that several answers have."""

from dataclasses import dataclass
from typing import Any, Literal

from bench_protocol.catalogue import speeds

from ...ranking.figures import Figure
from ...ranking.ranges import RangeOf, of_figure


@dataclass(frozen=True)
class InCell:
    """How a workload was trained."""

    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str


@dataclass(frozen=True)
class InSetup(InCell):
    """How a workload was trained and timed (:class:`...ranking.figures.Setup`)."""

    timing: str


@dataclass(frozen=True)
class InUnits:
    """A speed in what its workload counts."""

    unit: Literal["sample", "token"]
    tokens_per_second: float | None


@dataclass(frozen=True)
class Rated(InUnits):
    """A speed with its range."""

    samples_per_second: float
    samples_per_second_low: float | None
    samples_per_second_high: float | None
    samples_per_second_range_of: RangeOf | None


@dataclass(frozen=True)
class SpeedUp:
    """A speed-up with its range, null without another side."""

    speed_up: float | None
    speed_up_low: float | None
    speed_up_high: float | None
    speed_up_range_of: RangeOf | None


def unit_fields(workload: str, samples_per_second: float | None) -> dict[str, Any]:
    """The fields of :class:`InUnits`."""
    tokens = speeds.of_tokens(workload, samples_per_second)
    return {"unit": speeds.unit(workload), "tokens_per_second": tokens}


def rate_fields(figure: Figure, own: bool = False) -> dict[str, Any]:
    """``own``: see :func:`bench_server.ranking.ranges.of_figure`."""
    rate = 1e9 / figure.ns_per_sample
    low, high, range_of = (
        (None, None, None) if figure.published else of_figure(figure, own).around(rate)
    )
    return {
        **unit_fields(figure.subject.workload, rate),
        "samples_per_second": rate,
        "samples_per_second_low": low,
        "samples_per_second_high": high,
        "samples_per_second_range_of": range_of,
    }
