"""Figures with their workload and the cost of their energy, in the catalogue's order."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named

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
    return tuple(
        _cell_figure(figure, workload.name, prices)
        for workload in CATALOGUE
        for figure in figures
        if figure.subject.workload_digest == workload.digest
    )


def _cell_figure(figure: Figure, workload: str, prices: Prices) -> CellFigure:
    fields = figure_fields(figure, workload_named(workload))
    cost = prices.of_energy(fields["joules_per_epoch"])
    return CellFigure(**fields, workload=workload, energy_cost_per_epoch=cost)
