"""Rank figures, and compare two of them with an interval."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from bench_protocol import comparison
from bench_protocol.comparison import LogSample

from .figures import TIERS, UNITS, Figure, Kind, Unit


@dataclass(frozen=True)
class RankedRow:
    """A row with its rank; published figures have none. ``others``: further set-ups of the same
    hardware or machine, in the given order. ``setups``: the set-ups among which the row's is the
    first, itself included: of the same tier, all on real or all on generated data. The fastest of
    several equal set-ups is too fast by chance (docs/methodology.md)."""

    rank: int | None
    figure: Figure
    others: tuple[Figure, ...] = ()
    setups: int = 1


def ranked(ordered: Sequence[Figure], *, one_each: bool, ranks_before: int = 0) -> list[RankedRow]:
    """Rank figures by tier, then in the given order, after ``ranks_before`` ranks on earlier pages.

    With ``one_each``, each hardware or machine has one row: its first set-up in its best tier, on
    real data if that tier has one. So a set-up that few measured takes no place from one that many
    did.
    """
    groups: defaultdict[object, list[Figure]] = defaultdict(list)
    for number, figure in enumerate(ordered):
        subject = (figure.hardware_slug, figure.subject.machine_id, figure.published)
        groups[subject if one_each else number].append(figure)
    numbers = {figure.id: number for number, figure in enumerate(ordered)}
    rows = sorted(
        map(_row, groups.values()), key=lambda row: (section(row.figure), numbers[row.figure.id])
    )
    return list(_numbered(rows, ranks_before))


def section(figure: Figure) -> int:
    """The part of a board in which a figure is, from 0 on. Published figures are in the last one;
    so are figures of machines and results, which have no tier."""
    return TIERS.index(figure.tier or TIERS[-1])


def _row(setups: Sequence[Figure]) -> RankedRow:
    """The row of one hardware or machine, without its rank."""

    def candidate(figure: Figure) -> tuple[int, bool]:
        return section(figure), figure.setup.data != "real"

    best = min(map(candidate, setups))
    candidates = [figure for figure in setups if candidate(figure) == best]
    first = candidates[0]
    others = tuple(figure for figure in setups if figure is not first)
    return RankedRow(None, first, others, len(candidates))


def _numbered(rows: Iterable[RankedRow], rank: int) -> Iterator[RankedRow]:
    for row in rows:
        rank += not row.figure.published
        yield replace(row, rank=None if row.figure.published else rank)


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

    The values are runs if each side is one machine, machines if each side is one owner, and owners
    otherwise, because runs on one machine do not show how machines differ.
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
