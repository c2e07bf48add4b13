"""Facets: how many hardware models a further filter would leave on the boards."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..ranking.compare import RankedRow
from ..ranking.figures import Figure
from .criteria import Search
from .families import FAMILIES, contains
from .leaderboard import Ranking

FacetName = Literal["family", "framework", "recipe"]


@dataclass(frozen=True)
class Facet:
    """Values of one filter, with the number of hardware that have a figure with it. Those that
    none has are left out."""

    name: FacetName
    counts: dict[str, int]


def facets(rankings: Sequence[Ranking], search: Search) -> tuple[Facet, ...]:
    """Counts among the rows of boards and their further set-ups. Those of families are counted
    without the chosen family, the others within all filters."""
    any_family = replace(search, family=None)
    rows = [row for one in rankings for row in one.rows if any_family.finds(row.figure)]
    of_families = {
        (name, figure.hardware_slug)
        for figure in _figures(rows)
        for name in FAMILIES
        if contains(name, figure.hardware, figure.setup.device)
    }
    counts = Counter(name for name, _ in of_families)
    found = [Facet("family", {name: counts[name] for name in FAMILIES if counts[name]})]
    shown = list(_figures(row for one in rankings for row in one.shown))
    names: tuple[FacetName, ...] = ("framework", "recipe")
    for name in names:
        pairs = {(getattr(figure.setup, name), figure.hardware_slug) for figure in shown}
        found.append(Facet(name, dict(sorted(Counter(value for value, _ in pairs).items()))))
    return tuple(found)


def _figures(rows: Iterable[RankedRow]) -> Iterator[Figure]:
    """The figures of rows and of their further set-ups."""
    for row in rows:
        yield row.figure
        yield from row.others
