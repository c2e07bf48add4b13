"""Doubts about a measurement: found in what was measured, kept with it, said in words.

Codes are an open list on the wire; those that are found or worded here are in :data:`Code`.
A doubt never drops a result: it tells the reader what to think of the figure.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median, quantiles
from typing import Literal

import numpy as np

from . import format as people
from .figures import relative_spread
from .result import Blocks, Telemetry, Warn

Code = Literal[
    "few_blocks",
    "outliers",
    "drift",
    "slow_first_blocks",
    "unsteady",
    "throttled",
    "other_load",
]

ENOUGH_BLOCKS = 10
UNSTEADY_SPREAD = 0.2
# Tukey (1977) calls a value "far out" beyond three interquartile ranges from the quartiles; blocks
# of a steady machine can lie so close together that a harmless one does, hence the least share.
FAR_OUT = 3.0
LEAST_SHARE = 0.1
MANY_OUTLIERS = 0.05
LEAST_DRIFT = 0.05
# Two-sided 1 % of the normal distribution.
TREND_Z = 2.58
# NVML's clock event reasons that mean heat or power, not idleness or a chosen clock: software power
# cap, hardware slowdown, software thermal, hardware thermal, hardware power brake.
THROTTLE_BITS = 0x04 | 0x08 | 0x20 | 0x40 | 0x80
OFTEN_THROTTLED = 0.1
OTHER_LOAD_SHARE = 0.1


def of_blocks(blocks: Blocks) -> list[Warn]:
    """Doubts that the block times themselves raise."""
    durations = blocks.durations_ns
    found = list(_few(durations))
    if len(durations) >= ENOUGH_BLOCKS:
        found += [*_unsteady(durations), *_outliers(durations)]
        found += list(_drift(durations)) or list(_slow_first(durations))
    return found


def of_telemetry(telemetry: Telemetry) -> list[Warn]:
    """Doubts that the sensors raise: a device slowed down by heat or by its power limit."""
    reasons = [int(r) for r in telemetry.columns.get("gpu_throttle_bits", ()) if r is not None]
    slowed = [reason & THROTTLE_BITS for reason in reasons if reason & THROTTLE_BITS]
    if not reasons or len(slowed) / len(reasons) < OFTEN_THROTTLED:
        return []
    share = round(len(slowed) / len(reasons), 3)
    bits = float(np.bitwise_or.reduce(slowed))
    return [_warn("throttled", share_of_samples=share, reason_bits=bits)]


def of_other_load(other_cores: float, cores: int) -> list[Warn]:
    """A doubt where other programs used more than a tenth of the processor.

    Args:
        other_cores: cores that others kept busy on average.
        cores: logical cores of the machine.
    """
    if other_cores < OTHER_LOAD_SHARE * cores:
        return []
    return [_warn("other_load", busy_cores=round(other_cores, 2), cores=cores)]


def words(warn: Warn) -> str:
    """A doubt in a sentence without a full stop; codes not known here are spelt out."""
    say = WORDS.get(warn.code)
    try:
        if say:
            return say(_numbers(warn))
    except KeyError:  # another version's figures
        pass
    figures = ", ".join(f"{_spelt(name)} {value}" for name, value in warn.figures.items())
    return _spelt(warn.code) + (f" ({figures})" if figures else "")


def _warn(code: Code, **figures: float) -> Warn:
    return Warn(code=code, figures={name: float(value) for name, value in figures.items()})


def _few(durations: Sequence[int]) -> Iterator[Warn]:
    if len(durations) < ENOUGH_BLOCKS:
        yield _warn("few_blocks", blocks=len(durations))


def _unsteady(durations: Sequence[int]) -> Iterator[Warn]:
    spread = relative_spread(durations)
    if spread > UNSTEADY_SPREAD:
        yield _warn("unsteady", spread=round(spread, 3))


def _outliers(durations: Sequence[int]) -> Iterator[Warn]:
    lower, middle, upper = quantiles(durations, n=4, method="inclusive")
    reach = max(FAR_OUT * (upper - lower), LEAST_SHARE * middle)
    far = [time for time in durations if not lower - reach <= time <= upper + reach]
    if len(far) > MANY_OUTLIERS * len(durations):
        worst = max(far, key=lambda time: abs(math.log(time / middle)))
        yield _warn(
            "outliers",
            outliers=len(far),
            blocks=len(durations),
            worst_over_median=round(worst / middle, 3),
        )


def _drift(durations: Sequence[int]) -> Iterator[Warn]:
    """The last third against the first, where ranks rise or fall with time (Daniels 1950)."""
    ranks = np.argsort(np.argsort(durations, kind="stable"))
    correlation = float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])
    third = len(durations) // 3
    change = median(durations[-third:]) / median(durations[:third]) - 1
    trend = abs(correlation) * math.sqrt(len(durations) - 1) > TREND_Z
    if trend and abs(change) > LEAST_DRIFT:
        yield _warn("drift", change=round(change, 3))


def _slow_first(durations: Sequence[int]) -> Iterator[Warn]:
    """The first block far above the others: the warm-up did not warm up."""
    first, rest = durations[0], durations[1:]
    lower, middle, upper = quantiles(rest, n=4, method="inclusive")
    if first > upper + max(FAR_OUT * (upper - lower), LEAST_SHARE * middle):
        yield _warn("slow_first_blocks", first_over_median=round(first / middle, 3))


Numbers = Mapping[str, float]

WORDS: dict[str, Callable[[Numbers], str]] = {
    "few_blocks": lambda f: f"only {f['blocks']:.0f} block{'s' * (f['blocks'] != 1)} timed",
    "outliers": lambda f: (
        f"{f['outliers']:.0f} of {f['blocks']:.0f} blocks lie far from the others, "
        f"the farthest at {people.ratio(f['worst_over_median'])} the median"
    ),
    "drift": lambda f: (
        f"blocks grew {'slower' if f['change'] > 0 else 'faster'} by "
        f"{people.percent(abs(f['change']))} from the first third to the last"
    ),
    "slow_first_blocks": lambda f: (
        f"the first block took {people.ratio(f['first_over_median'])} the median of the others"
    ),
    "unsteady": lambda f: f"block times spread by {people.percent(f['spread'])}",
    "throttled": lambda f: (
        f"slowed down by heat or its power limit in {people.percent(f['share_of_samples'])} "
        "of the samples"
    ),
    "other_load": lambda f: (
        f"other programs kept {f['busy_cores']:.1f} of {f['cores']:.0f} cores busy"
    ),
}


def _numbers(warn: Warn) -> dict[str, float]:
    return {
        name: float(value) for name, value in warn.figures.items() if isinstance(value, int | float)
    }


def _spelt(name: str) -> str:
    return name.replace("_", " ")
