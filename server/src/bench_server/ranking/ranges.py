"""The range of a figure or of a speed-up: between which values it may lie.

Of three or more owners or machines, it is their 95 % interval. With fewer, nobody has measured how
machines of the model differ, so the range between the repeats is widened by an allowance for it.
The figure of one machine, and a comparison of one machine with itself, need no allowance: they have
the 95 % interval of three or more runs, or the range between the repeats alone. A range is no
verdict (:mod:`.compare`).

Independent errors add up in quadrature, on logarithms. A short timing may be too fast, and so may
the fastest of several set-ups (:mod:`.best`), in one direction only: such factors are added as a
whole.
"""

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

from bench_protocol.base import format as people
from bench_protocol.statistics.comparison import figure_interval

from .figures import UNITS, Figure

# The standard deviation of the log times of machines of one model, where it was not measured.
MACHINES_DIFFER = 0.05
# How many times as fast a short timing may be as a long one: a device that boosts its clock for 3 s
# and is then a fifth slower, in 2 s and in 10 s.
BOOST = 1.16
# The standard normal quantile of a 95 % range.
NORMAL = 1.959964

RangeOf = Literal["repeats", "own_repeats", "runs", "machines", "owners"]
# What a range contains, the weakest first.
WORDS: dict[RangeOf, str] = {
    "repeats": (
        "between repeats; assumes that machines of a model differ by "
        f"{people.percent(MACHINES_DIFFER, 0)}"
    ),
    "own_repeats": "between repeats on the same machine",
    "runs": "95 % interval of runs on the same machine",
    "machines": "95 % interval of machines",
    "owners": "95 % interval of owners",
}


class Bounds(NamedTuple):
    """The bounds of a value, and what they contain."""

    low: float
    high: float
    of: RangeOf


class Margins(NamedTuple):
    """How much faster and slower something may be than it was measured, in logarithms."""

    faster: float
    slower: float
    of: RangeOf

    def around(self, value: float) -> Bounds:
        """The bounds of a value that is proportional to the speed."""
        return Bounds(value * math.exp(-self.slower), value * math.exp(self.faster), self.of)

    def over(self, base: "Margins", factors: tuple[float, float] = (1.0, 1.0)) -> "Margins":
        """The margins of a speed-up over something else; ``factors``: see :func:`one_sided`."""
        return Margins(
            math.hypot(self.faster, base.slower) + math.log(factors[1]),
            math.hypot(self.slower, base.faster) - math.log(factors[0]),
            weakest((self.of, base.of)),
        )


def of_figure(figure: Figure, own: bool = False) -> Margins:
    """The margins of a measured figure; ``own``: of its machine alone, and not of its hardware."""
    found = _without_lead(figure, own)
    return found._replace(slower=found.slower + figure.lead)


def _without_lead(figure: Figure, own: bool) -> Margins:
    measured = _measured(figure)
    one_machine = figure.unit == UNITS[0]
    if own or figure.subject.machine_id if one_machine else measured.of == figure.unit:
        return measured
    allowance = NORMAL * MACHINES_DIFFER / math.sqrt(1 if one_machine else figure.values.n)
    faster, slower = (math.hypot(margin, allowance) for margin in measured[:2])
    return Margins(faster, slower, "repeats")


def _measured(figure: Figure) -> Margins:
    """The margins of a figure, without an allowance: of its values, else between repeats."""
    interval = figure_interval(figure.ns_per_sample, figure.values)
    if interval is not None:
        half = math.log(interval[1] / figure.ns_per_sample)
        return Margins(half, half, figure.unit)
    if figure.repeats > 1:
        return between_repeats(figure.ns_per_sample, figure.fastest_ns, figure.slowest_ns)
    # The spread of the blocks.
    return Margins(figure.spread.share, figure.spread.share, "own_repeats")


def noise(chosen: Figure, other: Figure) -> float:
    """How much slower than the chosen figure another one of the same hardware may be measured, in
    logarithms, if both are equally fast. Machines of the model differ in both alike, so there is no
    allowance for them."""
    return math.hypot(_measured(chosen).slower, _measured(other).faster)


def between_repeats(ns_per_sample: float, fastest_ns: float, slowest_ns: float) -> Margins:
    """The margins of a time among those of repeats on one machine."""
    faster, slower = math.log(ns_per_sample / fastest_ns), math.log(slowest_ns / ns_per_sample)
    return Margins(faster, slower, "own_repeats")


def of_speed_up(a: Figure, b: Figure, own: bool = False) -> Bounds | None:
    """The range of the speed-up of ``a`` over ``b``, from the margins of both; None where a side is
    published. ``own``: both were measured on one machine, and the speed-up is about it."""
    if a.published or b.published:
        return None
    margins = _without_lead(a, own).over(_without_lead(b, own), one_sided(a, b))
    return margins.around(b.ns_per_sample / a.ns_per_sample)


def one_sided(a: Figure, b: Figure) -> tuple[float, float]:
    """The factors of the lower and of the upper bound of a speed-up of ``a`` over ``b``, which
    widen it where one of the two may be too fast: the short one of two unlike timings, and the
    fastest of several set-ups by its lead."""
    unlike = {("short", "long"): (BOOST, 1.0), ("long", "short"): (1.0, BOOST)}
    of_a, of_b = unlike.get((a.setup.timing, b.setup.timing), (1.0, 1.0))
    return math.exp(-a.lead) / of_a, math.exp(b.lead) * of_b


def weakest(ranges: Iterable[RangeOf]) -> RangeOf:
    """What a range contains that rests on several."""
    return min(ranges, key=list(WORDS).index)
