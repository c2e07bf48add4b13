"""Rank figures, and compare two of them with an interval."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from bench_protocol import comparison
from bench_protocol.comparison import LogSample

from .figures import UNITS, Figure, Kind, Unit


@dataclass(frozen=True)
class RankedRow:
    """A row with its rank; published figures have none. ``others``: further set-ups of the same
    hardware or machine, fastest first."""

    rank: int | None
    figure: Figure
    others: tuple[Figure, ...] = ()


def ranked(ordered: Sequence[Figure], *, one_each: bool, ranks_before: int = 0) -> list[RankedRow]:
    """Rank figures in the given order, after ``ranks_before`` ranks on earlier pages. With
    ``one_each``, each hardware or machine has one row: its first set-up, on real data if there is
    one."""
    groups: defaultdict[object, list[tuple[bool, int, Figure]]] = defaultdict(list)
    for number, figure in enumerate(ordered):
        subject = (figure.hardware_slug, figure.subject.machine_id, figure.published)
        groups[subject if one_each else number].append(
            (figure.setup.data != "real", number, figure)
        )
    best = sorted((sorted(group) for group in groups.values()), key=lambda group: group[0][1])
    place, rows = ranks_before, []
    for (_, _, first), *rest in best:
        place += not first.published
        others = tuple(figure for _, _, figure in rest)
        rows.append(RankedRow(None if first.published else place, first, others))
    return rows


@dataclass(frozen=True)
class Comparison:
    """The speed-up of ``a`` over ``b``: time of b / time of a, with an interval if there are enough
    values. ``n_a`` and ``n_b`` count independent values, each a ``unit``."""

    speed_up: float
    low: float | None
    high: float | None
    n_a: int
    n_b: int
    unit: Unit
    kind: Kind
    verdict: str


def compare(a: Figure, b: Figure) -> Comparison:
    """Compare two figures of the same cell.

    The values are repeats if each side is one machine, machines if each side is one owner, and
    owners otherwise, because repeats on one machine do not show how machines differ.
    See :mod:`bench_protocol.comparison`. With too few the speed-up is the ratio of the figures.
    """
    unit = max(a.unit, b.unit, key=UNITS.index)
    times, base = _values(a, unit), _values(b, unit)
    speed_verdict = comparison.compare_samples(times, base, unit)
    speed_up = speed_verdict.speed_up
    if speed_verdict.kind == "too_few_runs":
        speed_up = b.ns_per_sample / a.ns_per_sample
    return Comparison(
        speed_up,
        speed_verdict.low,
        speed_verdict.high,
        times.n,
        base.n,
        unit,
        speed_verdict.kind,
        speed_verdict.words,
    )


def _values(figure: Figure, unit: Unit) -> LogSample:
    return figure.values if figure.unit == unit else LogSample.of([figure.ns_per_sample])
