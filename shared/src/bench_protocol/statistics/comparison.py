"""Compare two speeds: speed-up, confidence interval, verdict.

The values compared are times of independent runs (or machines, or owners), never blocks of one
process: blocks are correlated, and processes differ, so an interval over blocks is far too narrow.

A figure is a median, of an even number the slower of the two in the middle, so that it was
measured. The speed-up is the ratio of two figures. The error of a median is known for normal values
only, so the interval also spans that of the ratio of means, with separate and with pooled variances
(:func:`_estimates`). Where several verdicts are given together, :func:`holm` corrects them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean, median_high
from typing import Literal, NamedTuple

from ..base import format as text
from . import student_t

RUNS_FOR_A_VERDICT = 3
CONFIDENCE = 0.95
# A verdict of a difference needs a p-value up to this, after correction.
SIGNIFICANCE = 0.05

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


class Estimate(NamedTuple):
    """The logarithm of a ratio with its standard error and degrees of freedom."""

    centre: float
    error: float
    freedom: float

    def bounds(self) -> tuple[float, float]:
        """Student's t interval of the ratio, 95 %."""
        margin = student_t.quantile(self.freedom, CONFIDENCE) * self.error
        return math.exp(self.centre - margin), math.exp(self.centre + margin)


@dataclass(frozen=True)
class SpeedVerdict:
    """The speed of one side divided by that of the other, and the verdict.

    ``low`` and ``high`` bound ``speed_up`` with 95 % confidence. ``p_value``: two-sided, of no
    difference. All three are None with too few runs.
    """

    speed_up: float
    low: float | None
    high: float | None
    p_value: float | None
    kind: Kind
    words: str


def compare(
    times: Sequence[float], base: Sequence[float], unit: str = "runs", where: str = ""
) -> SpeedVerdict:
    """Compare two sides measured independently of one another.

    Args:
        times, base: one positive time a run (or machine), at least one each, any unit.
        unit, where: see :func:`compare_samples`.
    """
    speed_up = median_high(base) / median_high(times)
    return compare_samples(speed_up, LogSample.of(times), LogSample.of(base), unit, where)


def compare_samples(
    speed_up: float, times: LogSample, base: LogSample, unit: str = "runs", where: str = ""
) -> SpeedVerdict:
    """:func:`compare` from summaries, without the times.

    Args:
        speed_up: the median time of the base over that of the other side.
        unit: name of a value in the words.
        where: what the verdict is limited to, in words that follow it: "on this machine".
    """
    if min(times.n, base.n) < RUNS_FOR_A_VERDICT:
        return too_few(speed_up, f"{times.n} and {base.n} {unit}", " a side")
    return _verdict(speed_up, _estimates(speed_up, times, base), where)


def compare_pairs(times: Sequence[float], base: Sequence[float], where: str = "") -> SpeedVerdict:
    """Compare two sides whose n-th values belong together: measured in turns, or on one machine.
    What slows both (heat, other load, a slow machine) cancels in their ratio. The speed-up is the
    geometric mean of the ratios.

    Args:
        where: see :func:`compare_samples`.

    Raises:
        ValueError: the sides differ in length.
    """
    ratios = [b / a for a, b in zip(times, base, strict=True)]
    speed_up = geometric_mean(ratios)
    if len(ratios) < RUNS_FOR_A_VERDICT:
        return too_few(speed_up, text.plural(len(ratios), "pair"))
    logs = LogSample.of(ratios)
    ratio = Estimate(math.log(speed_up), math.sqrt(logs.variance / logs.n), logs.n - 1)
    return _verdict(speed_up, [ratio], where)


def too_few(speed_up: float, counted: str, of_each: str = "") -> SpeedVerdict:
    """The verdict without an interval; ``counted``: the values that there are, in words."""
    words = f"no verdict yet: {counted}, needs {RUNS_FOR_A_VERDICT}{of_each}"
    return SpeedVerdict(speed_up, None, None, None, "too_few_runs", words)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for being judged together (Holm 1979), in the same order.

    If each verdict of a difference needs an adjusted p-value of at most 0.05, the probability of
    one or more false ones among all is at most 0.05, however the p-values depend on each other.
    """
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def no_difference_among(count: int, words: str) -> str:
    """Words for a difference that is credible alone (``words``), but not among ``count``."""
    return f"no clear difference among {count} comparisons; alone: {words}"


def figure_interval(middle: float, values: LogSample) -> tuple[float, float] | None:
    """The 95 % interval of a figure, the median of log-normal values; None with fewer than three.

    Args:
        middle: the figure, a time or a rate in any unit.
        values: a summary of the independent values that it is the median of.
    """
    if values.n < RUNS_FOR_A_VERDICT:
        return None
    error = math.sqrt(_squared_error(values))
    return Estimate(math.log(middle), error, values.n - 1).bounds()


def median_factor(n: int) -> float:
    """How many times the variance of a normal sample's median is that of its mean; the median of an
    even number is the upper or lower one of the two in the middle.

    pi/2 for large samples (Laplace 1818); the further term is the next one of its expansion in 1/n.
    From n = 3 on within 3 % of the exact values (1.35 for n = 3, 1.44 for 4, 1.43 for 5), which the
    tests simulate.
    """
    return math.pi / 2 * n / (n + (4 - math.pi) / 2)


def _squared_error(logs: LogSample) -> float:
    """The variance of a median of logarithms."""
    return median_factor(logs.n) * logs.variance / logs.n


def _estimates(speed_up: float, times: LogSample, base: LogSample) -> list[Estimate]:
    """The ratio of medians with Welch's error, and that of means with Welch's and Student's.

    Each alone is wrong for some values of two levels: the first in up to half of all cases, the
    second in a fourth where three values meet many. The third is wrong for unequal spreads.
    """
    means, freedom = base.mean - times.mean, times.n + base.n - 2
    pooled = ((times.n - 1) * times.variance + (base.n - 1) * base.variance) / freedom
    return [
        _welch(math.log(speed_up), times, base, _squared_error(times), _squared_error(base)),
        _welch(means, times, base, times.variance / times.n, base.variance / base.n),
        Estimate(means, math.sqrt(pooled * (1 / times.n + 1 / base.n)), freedom),
    ]


def _welch(centre: float, a: LogSample, b: LogSample, part_a: float, part_b: float) -> Estimate:
    """A difference of two values with the given squared errors (Welch 1947, Satterthwaite 1946)."""
    squared_error = part_a + part_b
    if not squared_error:
        return Estimate(centre, 0.0, 1.0)
    freedom = squared_error**2 / (part_a**2 / (a.n - 1) + part_b**2 / (b.n - 1))
    return Estimate(centre, math.sqrt(squared_error), freedom)


def _verdict(speed_up: float, estimates: Sequence[Estimate], where: str) -> SpeedVerdict:
    lows, highs = zip(*(one.bounds() for one in estimates), strict=True)
    low, high = min(lows), max(highs)
    kind = verdict_kind(low, high)
    words = in_words(kind, speed_up, low, high, where)
    return SpeedVerdict(speed_up, low, high, _p_value(estimates), kind, words)


def _p_value(estimates: Sequence[Estimate]) -> float:
    """The largest of the estimates' p-values, or 1 if their directions differ: above 0.05 exactly
    where the interval holds 1."""
    centres = [one.centre for one in estimates]
    if min(centres) <= 0 <= max(centres):
        return 1.0
    return max(
        student_t.tails(e.freedom, abs(e.centre) / e.error) if e.error else 0.0 for e in estimates
    )


def verdict_kind(low: float, high: float) -> Kind:
    return "no_difference" if low <= 1 <= high else "faster" if low > 1 else "slower"


def in_words(kind: Kind, speed_up: float, low: float, high: float, where: str = "") -> str:
    """``1.79 times as fast (95 % CI 1.59 to 2.01)``, ``6.1 % slower (95 % CI 5.2 to 7 % slower)``.

    Args:
        where: what the verdict is limited to, in words that follow it: "on this machine".
    """
    where = where and f" {where}"
    if kind == "no_difference":
        return f"no clear difference{where}"
    return f"{text.faster(speed_up)}{where} (95 % CI {text.bounds(speed_up, low, high)})"
