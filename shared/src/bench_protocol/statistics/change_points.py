"""Where the level of a series changes: binary segmentation with a rank test, then a test of each
step that allows for successive values that are alike."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median_high
from typing import TYPE_CHECKING

from .comparison import Estimate, median_factor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A level needs at least this many runs on each side of a change.
LEAST_RUNS = 4
# Levels that differ by less than half a percent count as one.
LEAST_SIZE = 0.005
# False-positive rate of the rank test, which assumes independent runs.
SIGNIFICANCE = 0.02
# A step needs this many standard errors. So of 1,000 simulated histories without a change, with a
# correlation of 0.5 between successive runs, 43 or fewer show one (docs/notebook.md).
LEAST_ERRORS = 3.5
# A series with more correlation is a drift, and its steps have no error to speak of.
MOST_CORRELATION = 0.9
PERMUTATIONS = 999


def change_points(times: Sequence[float]) -> list[int]:
    """Places at which the level of positive times changes, ascending; each is the first of its
    level.

    The place where the ranks of both sides differ most is a candidate if they differ more than in
    most random orders of the same times (98 % of them), both sides have at least four runs,
    and their medians differ by half a percent or more. Then each side is searched in the same way.
    The statistic is that of Pettitt (1979), standardised for the lengths of the sides, because the
    largest sum itself lies too near the middle. Slow runs now and then are no change.

    Successive runs are alike, so a random order is not what they would be without a change. The
    candidate with the least :func:`steps` is dropped until all have 3.5 standard errors or more.

    The random orders are the same in each call, so that equal times have equal changes.

    Args:
        times: one time for each run; those of one run are not independent.
    """
    places = _candidates(times)
    while places:
        excess = [abs(one.centre) - LEAST_ERRORS * one.error for one in steps(times, places)]
        if min(excess) > 0:
            break
        del places[excess.index(min(excess))]
    return places


def steps(times: Sequence[float], places: Sequence[int]) -> list[Estimate]:
    """The speed-up at each place: the ratio of the medians of the levels before and after.

    The error is that of medians of normal logarithms, with the spread from the median deviation.
    With a correlation rho between successive runs, the variance of a mean is (1 + rho) / (1 - rho)
    times as large (Bayley and Hammersley 1946).
    """
    if not places:
        return []
    import numpy as np

    logs = np.log(times)
    levels = np.split(logs, places)
    middles = [float(median_high(level)) for level in levels]
    deviations = abs(logs - np.repeat(middles, [len(level) for level in levels]))
    # The median deviation of normal values is 1 / 1.4826 of their standard deviation.
    spread = 1.4826 * float(np.median(deviations))
    rho = _correlation(times, places)
    variance = spread**2 * (1 + rho) / (1 - rho) * len(times) / (len(times) - 2 * len(levels))
    errors = [variance * median_factor(len(level)) / len(level) for level in levels]
    return [
        Estimate(before - after, math.sqrt(error), len(times) - len(levels))
        for before, after, error in zip(
            middles, middles[1:], map(sum, pairwise(errors)), strict=False
        )
    ]


def _correlation(times: Sequence[float], places: Sequence[int]) -> float:
    """The correlation of the ranks of successive times around their levels. Each mean of n ranks
    that is subtracted makes it (1 + 3 rho) / n too small (Kendall 1954)."""
    import numpy as np

    levels = np.split(_centred_ranks(np.asarray(times)), places)
    around = np.concatenate([level - level.mean() for level in levels])
    squares = float(around @ around)
    rho = float(around[1:] @ around[:-1]) / squares if squares else 0.0
    unbiased = (len(times) * rho + len(levels)) / (len(times) - 3 * len(levels))
    return min(MOST_CORRELATION, max(0.0, unbiased))


def _candidates(times: Sequence[float]) -> list[int]:
    """The changes if runs were independent."""
    place = _change(times)
    if place is None:
        return []
    later = (place + further for further in _candidates(times[place:]))
    return [*_candidates(times[:place]), place, *later]


def _change(times: Sequence[float]) -> int | None:
    """The most likely place of a change, if there is one."""
    if len(times) < 2 * LEAST_RUNS:
        return None
    import numpy as np  # imported here: only histories need it

    ranks = _centred_ranks(np.asarray(times))
    statistics = _statistics(ranks)
    place = int(statistics.argmax()) + 1
    before, after = times[:place], times[place:]
    if min(len(before), len(after)) < LEAST_RUNS:
        return None
    if abs(math.log(median_high(after) / median_high(before))) < LEAST_SIZE:
        return None
    return place if _p_value(ranks, statistics.max()) <= SIGNIFICANCE else None


def _p_value(ranks: "NDArray[np.int64]", largest: float) -> float:
    """The share of random orders whose largest statistic is as large, the order itself included."""
    import numpy as np

    orders = np.random.default_rng(len(ranks)).permuted(np.tile(ranks, (PERMUTATIONS, 1)), axis=1)
    as_large = int((_statistics(orders).max(axis=1) >= largest).sum())
    return (1 + as_large) / (1 + PERMUTATIONS)


def _centred_ranks(times: "NDArray[np.float64]") -> "NDArray[np.int64]":
    """Twice each rank, the mean of ties, minus the number of times and 1: their sum is 0."""
    import numpy as np

    _, which, counts = np.unique(times, return_inverse=True, return_counts=True)
    doubled = 2 * np.cumsum(counts) - counts + 1
    ranks: NDArray[np.int64] = doubled[which] - len(times) - 1
    return ranks


def _statistics(ranks: "NDArray[np.int64]") -> "NDArray[np.float64]":
    """The difference of the ranks before and after each place but the first, along the last axis:
    the statistic of Mann and Whitney over its standard deviation, up to a common factor."""
    import numpy as np

    count = ranks.shape[-1]
    before = np.arange(1, count)
    sums = abs(ranks.cumsum(axis=-1)[..., :-1])
    standardised: NDArray[np.float64] = sums / np.sqrt(before * (count - before))
    return standardised
