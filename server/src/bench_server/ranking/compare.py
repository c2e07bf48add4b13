"""Rank figures, and compare two of them with an interval."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

from bench_protocol.statistics import comparison
from bench_protocol.statistics.comparison import LogSample, SpeedVerdict

from .figures import UNITS, Figure, Kind, Unit
from .medians import sample_of_one

Pair = tuple[Figure, Figure]
Scope = Literal["hardware", "machines"]


@dataclass(frozen=True)
class RankedRow:
    """A row with its rank; published and held figures have none. ``others``: further set-ups of the
    same hardware or machine, in the given order. ``setups``: how many set-ups the row's was the
    first of, itself included. The fastest of several equal set-ups is too fast by chance
    (docs/methodology.md)."""

    rank: int | None
    figure: Figure
    others: tuple[Figure, ...] = ()
    setups: int = 1


def ranked(ordered: Sequence[Figure], *, one_each: bool) -> list[RankedRow]:
    """Rank figures in the given order.

    With ``one_each``, each hardware or machine has one row, its first set-up. A held one before it
    has a row as well.
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
    """The rows of one hardware or machine."""
    free = [figure for figure in setups if not figure.held]
    shown = [setups[0], *free[:1]] if setups[0].held else free[:1]
    others = tuple(figure for figure in setups if figure not in shown)
    rows = [RankedRow(None, figure) for figure in shown]
    return [*rows[:-1], replace(rows[-1], others=others, setups=max(len(free), 1))]


@dataclass(frozen=True)
class Comparison:
    """The speed-up of ``a`` over ``b``: time of b / time of a, with an interval if there are enough
    values. Its verdict follows from ``adjusted_p_value``."""

    speed_up: float
    speed_up_low: float | None
    speed_up_high: float | None
    p_value: float | None
    adjusted_p_value: float | None
    n: int
    n_other: int
    unit: Unit
    scope: Scope
    verdict_kind: Kind
    verdict: str


@dataclass(frozen=True)
class Comparisons:
    """All comparisons of an answer by their two figures. ``count``: how many different ones have
    enough values for a verdict, so for how many the verdicts are corrected. ``machines``: ids of
    machines by result."""

    of: Mapping[Pair, Comparison]
    count: int
    machines: Mapping[str, str] = field(default_factory=dict)


def compare(a: Figure, b: Figure, machines: Mapping[str, str] | None = None) -> Comparison:
    """Compare two figures of the same cell, alone.

    The speed-up is the ratio of the figures. Its interval follows from number and variance of the
    values: runs if each side is one machine, machines if each side is one owner, and owners
    otherwise, because runs on one machine do not show how machines differ.
    See :mod:`bench_protocol.statistics.comparison`.

    Args:
        machines: ids of machines by result, for figures that do not name their one machine.
    """
    unit = max(a.unit, b.unit, key=UNITS.index)
    times, base = _values(a, unit), _values(b, unit)
    scope: Scope = "machines" if unit == UNITS[0] else "hardware"
    found = comparison.compare_samples(
        b.ns_per_sample / a.ns_per_sample,
        times,
        base,
        unit,
        where=where(a, b, machines or {}) if scope == "machines" else "",
    )
    return _alone(found, times.n, base.n, unit, scope)


def _alone(found: SpeedVerdict, n: int, n_other: int, unit: Unit, scope: Scope) -> Comparison:
    return Comparison(
        speed_up=found.speed_up,
        speed_up_low=found.low,
        speed_up_high=found.high,
        p_value=found.p_value,
        adjusted_p_value=found.p_value,
        n=n,
        n_other=n_other,
        unit=unit,
        scope=scope,
        verdict_kind=found.kind,
        verdict=found.words,
    )


def compare_all(pairs: Iterable[Pair], machines: Mapping[str, str] | None = None) -> Comparisons:
    """Compare pairs of figures that are shown together: a verdict of a difference needs an adjusted
    p-value of at most 0.05. A pair and its reverse are one comparison.
    """
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


def interval(a: Figure, b: Figure, confidence: float) -> tuple[float, float] | None:
    """The bounds of :func:`compare` at another confidence; None with too few values."""
    unit = max(a.unit, b.unit, key=UNITS.index)
    speed_up = b.ns_per_sample / a.ns_per_sample
    return comparison.speed_up_interval(speed_up, _values(a, unit), _values(b, unit), confidence)


def compare_on_machines(pairs: Sequence[tuple[float, float]]) -> Comparison:
    """Compare two conditions on the machines that have both: the speed-up is the geometric mean of
    the machines' ratios, with Student's t interval over three or more machines. So machines that
    have one condition only, faster or slower ones, change nothing.

    Args:
        pairs: one or more, each of one machine: its time under each condition, in nanoseconds a
            sample. The speed-up is of the first over the second.
    """
    count = len(pairs)
    machines = f"on {count} machine{'s' * (count != 1)}"
    times, base = zip(*pairs, strict=True)
    found = comparison.compare_pairs(times, base, machines)
    alone = _alone(found, count, count, "machines", "machines" if count == 1 else "hardware")
    if found.kind != "too_few_runs":
        return alone
    few = f"{machines}; an interval needs {comparison.RUNS_FOR_A_VERDICT}"
    return replace(alone, verdict=few)


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
    return "on this machine" if of_a == of_b else "on these two machines"
