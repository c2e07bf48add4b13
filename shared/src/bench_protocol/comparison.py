"""Compare two speeds: speed-up, confidence interval, verdict.

The values compared are times of whole processes (or machines), never blocks of one process: blocks
are correlated, and processes differ, so an interval over blocks is far too narrow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean
from typing import Literal, NamedTuple

from . import student_t

RUNS_FOR_A_VERDICT = 3
CONFIDENCE = 0.95

Kind = Literal["faster", "slower", "no_difference", "too_few_runs"]


class LogSample(NamedTuple):
    """A summary of times for intervals: count, mean and variance of their natural logarithms. The
    variance of one value is given as 0."""

    n: int
    mean: float
    variance: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "LogSample":
        """Summarise one or more positive values."""
        logs = [math.log(value) for value in values]
        mean = fmean(logs)
        # statistics.variance adds fractions, which takes forty times as long.
        squares = math.fsum((value - mean) ** 2 for value in logs)
        return cls(len(logs), mean, squares / (len(logs) - 1) if len(logs) > 1 else 0.0)


@dataclass(frozen=True)
class SpeedVerdict:
    """The speed of one side divided by that of the other, and the verdict.

    ``low`` and ``high`` bound ``speed_up`` with 95 % confidence; None with too few runs.
    """

    speed_up: float
    low: float | None
    high: float | None
    kind: Kind
    words: str


def compare(times: Sequence[float], base: Sequence[float], unit: str = "runs") -> SpeedVerdict:
    """Compare two sides measured independently of one another.

    Args:
        times, base: one positive time a process (or machine), at least one each, any unit.
        unit: name of a value in the words.
    """
    return compare_samples(LogSample.of(times), LogSample.of(base), unit)


def compare_samples(times: LogSample, base: LogSample, unit: str = "runs") -> SpeedVerdict:
    """:func:`compare` from summaries, without the times."""
    speed_up = math.exp(base.mean - times.mean)
    if min(times.n, base.n) < RUNS_FOR_A_VERDICT:
        return too_few(speed_up, f"{times.n} and {base.n} {unit}")
    return _verdict(speed_up, *_welch(base, times, CONFIDENCE))


def compare_pairs(times: Sequence[float], base: Sequence[float]) -> SpeedVerdict:
    """Compare two sides measured in turns: the n-th values are adjacent in time. A slowdown of both
    (heat, other load) cancels in their ratio.

    Raises:
        ValueError: the sides differ in length.
    """
    ratios = [b / a for a, b in zip(times, base, strict=True)]
    speed_up = geometric_mean(ratios)
    if len(ratios) < RUNS_FOR_A_VERDICT:
        return too_few(speed_up, f"{len(ratios)} pair{'s' * (len(ratios) != 1)}")
    return _verdict(speed_up, *log_mean_interval(ratios))


def too_few(speed_up: float, count: str) -> SpeedVerdict:
    """The verdict without an interval; ``count`` is the number of values in words."""
    return SpeedVerdict(speed_up, None, None, "too_few_runs", f"too few runs ({count})")


def log_ratio_interval(
    numerator: Sequence[float], denominator: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Confidence interval of the ratio of two geometric means.

    Welch's t interval on the difference of the mean logarithms, with the degrees of freedom of
    Welch (1947) and Satterthwaite (1946), transformed back by exp.

    Args:
        numerator, denominator: two or more positive values each, independent of one another.
    """
    return _welch(LogSample.of(numerator), LogSample.of(denominator), confidence)


def _welch(a: LogSample, b: LogSample, confidence: float) -> tuple[float, float]:
    part_a, part_b = a.variance / a.n, b.variance / b.n
    squared_error = part_a + part_b
    freedom = 1.0
    if squared_error:
        freedom = squared_error**2 / (part_a**2 / (a.n - 1) + part_b**2 / (b.n - 1))
    return _interval(a.mean - b.mean, math.sqrt(squared_error), freedom, confidence)


def log_mean_interval(
    values: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Confidence interval of a geometric mean: Student's (1908) t interval on the logarithms.

    Args:
        values: two or more positive values, independent of one another.
    """
    logs = LogSample.of(values)
    return _interval(logs.mean, math.sqrt(logs.variance / logs.n), logs.n - 1, confidence)


def _interval(
    centre: float, error: float, freedom: float, confidence: float
) -> tuple[float, float]:
    margin = student_t.quantile(freedom, confidence) * error
    return math.exp(centre - margin), math.exp(centre + margin)


def _verdict(speed_up: float, low: float, high: float) -> SpeedVerdict:
    if low <= 1 <= high:
        return SpeedVerdict(speed_up, low, high, "no_difference", "no credible difference")
    if low > 1:
        kind: Kind = "faster"
        changes = [speed_up - 1, low - 1, high - 1]
    else:
        kind = "slower"
        changes = [1 - speed_up, 1 - high, 1 - low]
    share, lower, upper = (100 * change for change in changes)
    digits = 0 if share >= 10 else 1
    words = f"{share:,.{digits}f} % {kind}, 95 % CI {lower:,.{digits}f} to {upper:,.{digits}f}"
    return SpeedVerdict(speed_up, low, high, kind, words)
