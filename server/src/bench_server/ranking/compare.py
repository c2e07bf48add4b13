"""Rank figures, and compare two of them with a range and a verdict."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

from bench_protocol.statistics import comparison
from bench_protocol.statistics.comparison import LogSample, SpeedVerdict

from . import ranges
from .best import candidates, with_lead
from .figures import UNITS, Figure, Kind, Unit
from .medians import sample_of_one
from .ranges import Bounds, RangeOf

Pair = tuple[Figure, Figure]
Scope = Literal["hardware", "machines"]
ON_THIS_MACHINE = "on this machine"


@dataclass(frozen=True)
class RankedRow:
    """A row with its rank; published and held figures have none. ``others``: further set-ups of the
    same hardware or machine, in the given order. ``setups``: of how many set-ups the row's is the
    best, itself included (:mod:`.best`)."""

    rank: int | None
    figure: Figure
    others: tuple[Figure, ...] = ()
    setups: int = 1


def ranked(ordered: Sequence[Figure], *, one_each: bool) -> list[RankedRow]:
    """Rank figures in the given order.

    With ``one_each``, each hardware or machine has one row, the first set-up that may be its best
    (:func:`.best.candidates`). A held one before it has a row as well.
    """
    rows = _one_each(ordered) if one_each else [RankedRow(None, figure) for figure in ordered]
    ranks = count(1)
    return [
        row if row.figure.published or row.figure.held else replace(row, rank=next(ranks))
        for row in rows
    ]


def _one_each(ordered: Sequence[Figure]) -> list[RankedRow]:
    groups: defaultdict[object, list[Figure]] = defaultdict(list)
    for figure in ordered:
        subject = (figure.hardware_slug, figure.subject.machine_id, figure.published)
        groups[subject].append(figure)
    rows = [row for setups in groups.values() for row in _rows(setups)]
    places = {figure.id: place for place, figure in enumerate(ordered)}
    return sorted(rows, key=lambda row: places[row.figure.id])


def _rows(setups: Sequence[Figure]) -> list[RankedRow]:
    found = candidates(setups)
    shown = [*setups[:1]] if setups[0].held else []
    shown += [with_lead(found[0], found)] if found else []
    ids = {figure.id for figure in shown}
    others = tuple(figure for figure in setups if figure.id not in ids)
    rows = [RankedRow(None, figure) for figure in shown]
    return [*rows[:-1], replace(rows[-1], others=others, setups=max(len(found), 1))]


@dataclass(frozen=True)
class Comparison:
    """The speed-up of ``a`` over ``b``: time of b / time of a, with its range (:mod:`.ranges`). Its
    verdict needs enough values and follows from ``adjusted_p_value``. ``mixed_timing``: one of the
    timings is short and the other long; ``mixed_data``: one of the data is generated and the other
    real."""

    speed_up: float
    speed_up_low: float | None
    speed_up_high: float | None
    p_value: float | None
    adjusted_p_value: float | None
    n: int
    n_other: int
    n_of: Unit
    scope: Scope
    verdict_kind: Kind
    verdict: str
    speed_up_range_of: RangeOf | None = None
    mixed_timing: bool = False
    mixed_data: bool = False


@dataclass(frozen=True)
class Comparisons:
    """All comparisons of an answer by their two figures. ``count``: how many different ones have
    enough values for a verdict, so for how many the verdicts are corrected. ``machines``: ids of
    machines by result."""

    of: Mapping[Pair, Comparison]
    count: int
    machines: Mapping[str, str] = field(default_factory=dict)


def compare(a: Figure, b: Figure, machines: Mapping[str, str] | None = None) -> Comparison:
    """Compare two figures of the same workload, batch size and precision, alone.

    The verdict follows from number and variance of the values: runs if each side is one machine,
    machines if each side is one owner, and owners otherwise, because runs on one machine do not
    show how machines differ (:mod:`bench_protocol.statistics.comparison`).

    Args:
        machines: ids of machines by result, for figures that do not name their one machine.
    """
    unit = max(a.unit, b.unit, key=UNITS.index)
    scope: Scope = "machines" if unit == UNITS[0] else "hardware"
    limit = where(a, b, machines or {}) if scope == "machines" else ""
    # Two hardware of one machine are two models, each of which may differ from others of its kind.
    own = limit == ON_THIS_MACHINE and a.hardware_slug == b.hardware_slug
    found = _tested(a, b, unit, limit)
    about_sides = scope == "hardware" or all(own or side.subject.machine_id for side in (a, b))
    if found.low is not None and found.high is not None and about_sides:
        bounds: Bounds | None = Bounds(found.low, found.high, unit)
    else:
        bounds = ranges.of_speed_up(a, b, own)
    alone = _alone(found, bounds, _values(a, unit).n, _values(b, unit).n, unit, scope)
    return replace(
        alone,
        mixed_timing=a.setup.timing != b.setup.timing,
        mixed_data=a.setup.data != b.setup.data,
    )


def _tested(a: Figure, b: Figure, unit: Unit, limit: str = "") -> SpeedVerdict:
    """The verdict. It holds with and without what may make one side too fast
    (:func:`.ranges.one_sided`)."""
    speed_up, times, base = b.ns_per_sample / a.ns_per_sample, _values(a, unit), _values(b, unit)
    found = comparison.compare_samples(speed_up, times, base, unit, limit)
    lower, higher = ranges.one_sided(a, b)
    if lower == higher or found.low is None or found.high is None:
        return found
    low, high = found.low * lower, found.high * higher
    kind = comparison.verdict_kind(low, high)
    factor = lower if speed_up > 1 else higher
    slowed = times._replace(mean=times.mean - math.log(factor))
    other = comparison.compare_samples(speed_up * factor, slowed, base)
    p_value = 1.0 if kind == "no_difference" else max(found.p_value or 0.0, other.p_value or 0.0)
    words = comparison.in_words(kind, speed_up, low, high, limit)
    return SpeedVerdict(speed_up, low, high, p_value, kind, words)


def _alone(
    found: SpeedVerdict, bounds: Bounds | None, n: int, n_other: int, unit: Unit, scope: Scope
) -> Comparison:
    return Comparison(
        speed_up=found.speed_up,
        speed_up_low=bounds.low if bounds else None,
        speed_up_high=bounds.high if bounds else None,
        p_value=found.p_value,
        adjusted_p_value=found.p_value,
        n=n,
        n_other=n_other,
        n_of=unit,
        scope=scope,
        verdict_kind=found.kind,
        verdict=found.words,
        speed_up_range_of=bounds.of if bounds else None,
    )


def compare_all(pairs: Iterable[Pair], machines: Mapping[str, str] | None = None) -> Comparisons:
    """Compare pairs of figures that are shown together: a verdict of a difference needs an adjusted
    p-value of at most 0.05. A pair and its reverse are one comparison."""
    alone = {pair: compare(*pair, machines) for pair in pairs}
    p_values = {
        frozenset(pair): found.p_value for pair, found in alone.items() if found.p_value is not None
    }
    adjusted = dict(zip(p_values, comparison.holm([*p_values.values()]), strict=True))
    count = len(adjusted)
    corrected = {
        pair: _corrected(found, adjusted[hypothesis], count)
        for pair, found in alone.items()
        if (hypothesis := frozenset(pair)) in adjusted
    }
    return Comparisons(alone | corrected, count, machines or {})


def verdict_bounds(a: Figure, b: Figure) -> tuple[float, float] | None:
    """The bounds of the verdict of :func:`compare`; None with too few values."""
    found = _tested(a, b, max(a.unit, b.unit, key=UNITS.index))
    return None if found.low is None or found.high is None else (found.low, found.high)


def compare_on_machines(pairs: Sequence[tuple[float, float, Bounds]]) -> Comparison:
    """Compare two conditions on the machines that have both: the speed-up is the geometric mean of
    the machines' ratios, with Student's t interval over three or more machines, and with fewer the
    range of their own.

    ``pairs``: of each machine the times in nanoseconds a sample, and the speed-up's range.
    """
    count = len(pairs)
    machines = f"on {count} machine{'s' * (count != 1)}"
    times, base, own = zip(*pairs, strict=True)
    found = comparison.compare_pairs(times, base, machines)
    lows, highs, contained = zip(*own, strict=True)
    bounds = Bounds(min(lows), max(highs), ranges.weakest(contained))
    if found.low is not None and found.high is not None:
        bounds = Bounds(found.low, found.high, "machines")
    scope: Scope = "machines" if count == 1 else "hardware"
    alone = _alone(found, bounds, count, count, "machines", scope)
    if found.kind != "too_few_runs":
        return alone
    return replace(alone, verdict=f"{machines}; a verdict needs {comparison.RUNS_FOR_A_VERDICT}")


def corrected(alone: Sequence[Comparison]) -> tuple[list[Comparison], int]:
    """Comparisons that are shown together, corrected as in :func:`compare_all`, and how many of
    them have enough values for a verdict."""
    p_values = [found.p_value for found in alone if found.p_value is not None]
    adjusted = iter(comparison.holm(p_values))
    return [
        found if found.p_value is None else _corrected(found, next(adjusted), len(p_values))
        for found in alone
    ], len(p_values)


def _corrected(found: Comparison, adjusted: float, count: int) -> Comparison:
    found = replace(found, adjusted_p_value=adjusted)
    if found.verdict_kind == "no_difference" or adjusted <= comparison.SIGNIFICANCE:
        return found
    words = comparison.no_difference_among(count, found.verdict)
    return replace(found, verdict_kind="no_difference", verdict=words)


def _values(figure: Figure, unit: Unit) -> LogSample:
    return figure.values if figure.unit == unit else sample_of_one(figure.ns_per_sample)


def where(a: Figure, b: Figure, machines: Mapping[str, str]) -> str:
    """The machines of two figures of one machine each, in words."""
    of_a, of_b = (f.subject.machine_id or machines.get(f.evidence.result_id) for f in (a, b))
    if of_a is None or of_b is None:
        return "with one machine a side"
    return ON_THIS_MACHINE if of_a == of_b else "on these two machines"
