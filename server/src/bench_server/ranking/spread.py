"""The spread: how far the values behind a figure differ.

Blocks of a repeat, repeats of a run, runs of a machine and machines of a hardware differ, each for
reasons of its own. The spread of a figure is the widest of these, relative to its time. It is not a
confidence interval.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from bench_protocol.payload.doubts import UNSTEADY_SPREAD

# The values that differ; those of several owners are machines too, one of each owner.
Between = Literal["blocks", "repeats", "runs", "machines"]
# Quartiles of fewer values say little, so these have their full range.
VALUES_FOR_QUARTILES = 8


class Spread(NamedTuple):
    """The widest difference behind a figure: its share of the figure's time, and between what."""

    share: float
    between: Between = "blocks"

    @property
    def unsteady(self) -> bool:
        """Whether values differ too much for a reliable figure, which is still ranked."""
        return unsteady(self.share)


class Range(NamedTuple):
    """The times between which several values lie: all of them, or with ``VALUES_FOR_QUARTILES`` or
    more the inner half, which a few odd ones do not change."""

    fastest_ns: float
    slowest_ns: float

    @property
    def width_ns(self) -> float:
        return self.slowest_ns - self.fastest_ns


NO_SPREAD = Spread(0.0)


def unsteady(share: float | None) -> bool:
    """Whether a spread is above a fifth."""
    return share is not None and share > UNSTEADY_SPREAD


def range_ends(count: int) -> tuple[int, int]:
    """The places of a range's ends among ``count`` values in order, from 0 on."""
    outer = count // 4 if count >= VALUES_FOR_QUARTILES else 0
    return outer, count - 1 - outer


def range_of(ordered: Sequence[float]) -> Range:
    """The range of one or more times, the fastest first."""
    low, high = range_ends(len(ordered))
    return Range(ordered[low], ordered[high])
