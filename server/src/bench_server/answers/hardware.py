"""Hardware and machines: lists and single ones, with all of their figures."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from bench_protocol.catalogue import CATALOGUE

from ..db.tables import PublishedFigure
from ..errors import NotFound
from ..ingest.columns import stored_result
from ..ranking.figures import Figure, names_machine
from ..ranking.score import Score, best_of, score
from . import known, queries, witnessed_speeds
from .baseline import baseline_slug
from .filters import ListFilters
from .places import MachinePlace, places_of
from .types import FigureAnswer, figure_fields
from .witnessed_speeds import WitnessedSpeedAnswer


@dataclass(frozen=True)
class CellFigure(FigureAnswer):
    """A figure and its workload."""

    workload: str


@dataclass(frozen=True)
class HardwareSummary:
    """A hardware with ranked results. ``machines`` and ``owners``: of the cell with most."""

    slug: str
    name: str
    cells: int
    repeats: int
    runs: int
    machines: int
    owners: int
    newest_at: datetime


@dataclass(frozen=True)
class HardwarePage:
    """Hardware by slug; ``next_cursor`` leads to the next, null at the end."""

    hardware: tuple[HardwareSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class HardwareAnswer:
    """One hardware: its score and every figure."""

    slug: str
    name: str
    published: bool
    score: Score
    figures: tuple[CellFigure, ...]


@dataclass(frozen=True)
class MachineSummary:
    """A machine with ranked results; ``hardware`` maps slugs to names (processor, GPUs)."""

    machine_id: str
    hardware: dict[str, str]
    cells: int
    repeats: int
    runs: int
    newest_at: datetime


@dataclass(frozen=True)
class MachinePage:
    """Machines by id; ``next_cursor`` leads to the next, null at the end."""

    machines: tuple[MachineSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class MachineAnswer:
    """One machine: its latest description, where it stands, and every figure. Its history is by
    cell. ``name``: its main hardware."""

    machine_id: str
    name: str
    owner: str
    hardware: dict[str, str]
    machine: dict[str, Any]
    environment: dict[str, Any]
    newest_at: datetime
    places: tuple[MachinePlace, ...]
    witnessed: tuple[WitnessedSpeedAnswer, ...]
    figures: tuple[CellFigure, ...]


@dataclass(frozen=True)
class PublishedAnswer:
    """A figure copied from elsewhere: ``compare`` takes its id. ``note`` states its limits."""

    id: str
    source: str
    url: str
    license: str
    note: str
    source_table: str
    published_at: datetime
    hardware: str
    hardware_slug: str
    workload: str
    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str
    timing: str
    samples_per_second: float
    accuracy: float | None


def published_figures(session: Session) -> list[PublishedAnswer]:
    """Every published figure that was imported."""
    derived = ("samples_per_second", "license")
    names = [name for name in PublishedAnswer.__dataclass_fields__ if name not in derived]
    rows = session.scalars(select(PublishedFigure).order_by(col(PublishedFigure.id)))
    return [
        PublishedAnswer(
            **{name: getattr(row, name) for name in names},
            license=row.licence,
            samples_per_second=1e9 / row.ns_per_sample,
        )
        for row in rows
    ]


def hardware_page(session: Session, filters: ListFilters) -> HardwarePage:
    rows, cursor = queries.listed(session, "hardware", filters)
    figures_found = [
        HardwareSummary(
            *(row.id, row.hardware, row.cells, row.repeats, row.runs, row.machines, row.owners),
            row.newest_at,
        )
        for row in rows
    ]
    return HardwarePage(tuple(figures_found), cursor)


def hardware(session: Session, slug: str, of_operator: str | None = None) -> HardwareAnswer:
    """One hardware.

    Args:
        of_operator: the baseline that the operator chose.

    Raises:
        NotFound: it has no figure.
    """
    figures = queries.hardware_figures(session, slug)
    if not figures:
        raise known.no_hardware(session, slug)
    first = figures[0]
    relative_to = baseline_slug(session, of_operator)
    baseline = queries.hardware_figures(session, relative_to) if relative_to else ()
    return HardwareAnswer(
        slug,
        first.hardware,
        first.published,
        score(best_of(figures), best_of(baseline)),
        _in_catalogue_order(figures),
    )


def machine_page(session: Session, filters: ListFilters) -> MachinePage:
    rows, cursor = queries.listed(session, "machine", filters)
    names = queries.hardware_of_machines(session, [row.id for row in rows])
    figures_found = [
        MachineSummary(row.id, names[row.id], row.cells, row.repeats, row.runs, row.newest_at)
        for row in rows
    ]
    return MachinePage(tuple(figures_found), cursor)


def machine(session: Session, machine_id: str) -> MachineAnswer:
    """One machine.

    Raises:
        NotFound: it has no figure.
    """
    figures = queries.machine_figures(session, machine_id)
    if not figures:
        raise NotFound(
            f"no machine {machine_id[:40]!r} with ranked results",
            field="id",
            hint="GET /api/v1/machines lists them all",
        )
    newest = max(figures, key=lambda figure: figure.newest_at)
    submission, _ = queries.result_with_id(session, newest.evidence.result_id)
    signed = stored_result(submission.payload)
    return MachineAnswer(
        machine_id,
        names_machine(figures).hardware,
        newest.subject.owner,
        {figure.hardware_slug: figure.hardware for figure in figures},
        signed.machine.model_dump(mode="json"),
        signed.environment.model_dump(mode="json"),
        newest.newest_at,
        places_of(session, figures),
        witnessed_speeds.of_machine(session, machine_id),
        _in_catalogue_order(figures),
    )


def _in_catalogue_order(figures: list[Figure]) -> tuple[CellFigure, ...]:
    """Figures of the workloads this program knows, fastest first within each."""
    return tuple(
        CellFigure(**figure_fields(figure, workload), workload=workload.name)
        for workload in CATALOGUE
        for figure in figures
        if figure.subject.workload_digest == workload.digest
    )
