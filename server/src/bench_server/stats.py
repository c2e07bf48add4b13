"""The little statistics the server needs."""

import math
from collections.abc import Sequence
from statistics import fmean, variance

from scipy.special import stdtrit


def log_ratio_interval(
    numerator: Sequence[float], denominator: Sequence[float], confidence: float = 0.95
) -> tuple[float, float]:
    """Confidence interval of the ratio of two geometric means.

    Welch's t interval on the difference of the mean logarithms, with the degrees of freedom of
    Welch (1947) and Satterthwaite (1946), taken back by exp.

    Args:
        numerator, denominator: two or more positive values each, independent of one another.
    """
    a, b = ([math.log(value) for value in side] for side in (numerator, denominator))
    part_a, part_b = variance(a) / len(a), variance(b) / len(b)
    difference = fmean(a) - fmean(b)
    squared_error = part_a + part_b
    if squared_error == 0:
        return math.exp(difference), math.exp(difference)
    freedom = squared_error**2 / (part_a**2 / (len(a) - 1) + part_b**2 / (len(b) - 1))
    margin = float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(squared_error)
    return math.exp(difference - margin), math.exp(difference + margin)
