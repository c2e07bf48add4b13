"""Figures with their workload and the cost of their energy, in the catalogue's order."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench_protocol.catalogue.catalogue import CATALOGUE

from ..ranking.figures import Figure
from .prices import Prices
from .types.leaderboard import FigureAnswer, figure_fields


@dataclass(frozen=True)
class CellFigure(FigureAnswer):
    """A figure, its workload and the cost of its energy."""

    workload: str
    energy_cost_per_epoch: float | None


def in_catalogue_order(figures: Sequence[Figure], prices: Prices) -> tuple[CellFigure, ...]:
    """Figures of the workloads this program knows, fastest first within each."""
    shown = []
    for workload in CATALOGUE:
        for figure in figures:
            if figure.subject.workload_digest == workload.digest:
                fields = figure_fields(figure, workload)
                cost = prices.of_energy(fields["joules_per_epoch"])
                cell = CellFigure(**fields, workload=workload.name, energy_cost_per_epoch=cost)
                shown.append(cell)
    return tuple(shown)
