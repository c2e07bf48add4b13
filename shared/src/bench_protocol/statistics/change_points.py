"""Where the level of a series changes: binary segmentation with a rank test."""

import math
from collections.abc import Sequence
from statistics import median_high
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A level needs at least this many runs on each side of a change.
LEAST_RUNS = 4
# Levels that differ by less than half a percent count as one.
LEAST_SIZE = 0.005
# False-positive rate: the probability of a change in a history without any.
SIGNIFICANCE = 0.02
PERMUTATIONS = 999


def change_points(times: Sequence[float]) -> list[int]:
    """Places at which the level of positive times changes, ascending; each is the first of its
    level.

    The place where the ranks of both sides differ most is a change if they differ more than in most
    random orders of the same times (98 % of them), both sides have at least four runs,
    and their medians differ by half a percent or more. Then each side is searched in the same way.
    The statistic is that of Pettitt (1979), standardised for the lengths of the sides, because the
    largest sum itself lies too near the middle. The test is exact for independent times of any
    distribution: slow ones now and then are no change.

    The random orders are the same in each call, so that equal times have equal changes.

    Args:
        times: one time for each run; those of one run are not independent.
    """
    place = _change(times)
    if place is None:
        return []
    later = (place + further for further in change_points(times[place:]))
    return [*change_points(times[:place]), place, *later]


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
