"""Facets: how many hardware models a further filter would leave on the boards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ..ranking.figures import Figure
from .families import FAMILIES, contains
from .filters import BoardFilters
from .leaderboard import Standing, searched

FacetName = Literal["family", "framework", "recipe"]


@dataclass(frozen=True)
class Facet:
    """Values of one filter, with the number of hardware that have a figure with it. Those that
    none has are left out."""

    name: FacetName
    counts: dict[str, int]


def facets(standings: Sequence[Standing], filters: BoardFilters) -> tuple[Facet, ...]:
    """Counts among the rows of boards and their further set-ups. Those of families are counted
    without the chosen family, the others within all filters."""
    any_family = filters.model_copy(update={"family": None})
    families = {
        name: {
            figure.hardware_slug
            for figure in _figures(standings, any_family)
            if contains(name, figure.hardware, figure.setup.device)
        }
        for name in FAMILIES
    }
    found = [Facet("family", {name: len(slugs) for name, slugs in families.items() if slugs})]
    shown = list(_figures(standings, filters))
    names: tuple[FacetName, ...] = ("framework", "recipe")
    for name in names:
        pairs = {(getattr(figure.setup, name), figure.hardware_slug) for figure in shown}
        values = sorted({value for value, _ in pairs})
        found.append(
            Facet(name, {value: sum(value == one for one, _ in pairs) for value in values})
        )
    return tuple(found)


def _figures(standings: Sequence[Standing], filters: BoardFilters) -> Iterator[Figure]:
    """All figures of the hardware that is searched for."""
    for standing in standings:
        for row in standing.rows:
            if searched(row.figure, filters):
                yield row.figure
                yield from row.others
