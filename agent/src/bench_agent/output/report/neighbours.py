"""Other machines beside a report's own bars: one published figure, or those ranked next to it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import log

from bench_protocol.base import format as people
from bench_protocol.catalogue import published, speeds
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.published import Published

from ...remote.rank import MachineRank, Ranked
from .charts import Bar, BarGroup
from .figures import CellFigures, Report

WORDS = (
    'Bars marked "published" are others\' figures, unsigned, copied from {url}: on real data, with '
    "validation in their time. They compare with the same framework and recipe only."
)
RANKED_WORDS = (
    "Bars with a rank are the hardware ranked above and below this machine's, each at its best."
)


@dataclass(frozen=True)
class Neighbour:
    """A bar of another machine. It stands in the charts of its workload and batch size."""

    workload: str
    batch_size: int
    label: str
    samples_per_second: float


@dataclass(frozen=True)
class Around:
    """What a report shows of others: bars of other machines, a sentence on what they are, and with
    a server this machine's rank and page."""

    neighbours: tuple[Neighbour, ...] = ()
    words: str = ""
    rank: MachineRank | None = None


NOBODY = Around()


def around_published(report: Report) -> Around:
    neighbours = published_beside(report)
    url = published.document()["source"]["url"]
    return Around(neighbours, WORDS.format(url=url) if neighbours else "")


def around_ranked(rows: Iterable[Ranked], rank: MachineRank) -> Around:
    """The hardware that a server ranks above and below this machine's."""
    neighbours = tuple(
        Neighbour(
            row.workload,
            row.batch_size,
            f"{people.ordinal(row.rank)}: {row.hardware}, {row.framework} {row.recipe}",
            row.samples_per_second,
        )
        for row in rows
    )
    return Around(neighbours, RANKED_WORDS, rank)


def published_beside(report: Report) -> tuple[Neighbour, ...]:
    """The published figure of each workload and batch size that is nearest to a measured one: of
    the same framework and recipe if there is any."""
    chosen: dict[tuple[str, int], tuple[tuple[bool, float], Published]] = {}
    for copied in published.figures():
        for figures in report.cells:
            key, distance = (copied.workload, copied.batch_size), _distance(copied, figures)
            if key == _task(figures.cell) and (key not in chosen or distance < chosen[key][0]):
                chosen[key] = distance, copied
    return tuple(
        Neighbour(
            copied.workload,
            copied.batch_size,
            f"{copied.hardware}, {copied.framework} {copied.recipe}, published",
            copied.samples_per_second,
        )
        for _, copied in chosen.values()
    )


def _task(cell: Cell) -> tuple[str, int] | None:
    """What a bar of another machine is compared by; other precisions than float32 have none."""
    return (cell.workload, cell.batch_size) if cell.precision == "float32" else None


def _distance(copied: Published, figures: CellFigures) -> tuple[bool, float]:
    cell = figures.cell
    other = (copied.framework, copied.recipe) != (cell.framework, cell.recipe)
    return other, abs(log(copied.samples_per_second / figures.samples_per_second))


def beside(group: BarGroup, neighbours: Sequence[Neighbour]) -> BarGroup:
    """The group with the bars of other machines among its own, fastest first."""
    task = _task(group.cell)
    others = [other for other in neighbours if (other.workload, other.batch_size) == task]
    if not others:
        return group
    longest = max(group.longest, *(other.samples_per_second for other in others))
    scale = group.longest / longest
    own = [
        replace(
            bar,
            share=bar.share * scale,
            low=bar.low and bar.low * scale,
            high=bar.high and bar.high * scale,
        )
        for bar in group.bars
    ]
    bars = [*own, *(_bar(other, longest) for other in others)]
    return replace(group, bars=tuple(sorted(bars, key=lambda bar: -bar.share)), longest=longest)


def _bar(other: Neighbour, longest: float) -> Bar:
    rate = other.samples_per_second
    share = rate / longest
    return Bar(
        other.label, speeds.among_samples(rate, other.workload), share, None, None, "other", ""
    )
