"""Machines: a list, and single ones with all of their figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlmodel import Session

from ..errors import NotFound
from ..ingest.columns import stored_result
from ..ranking.figures import Figure
from ..ranking.medians import names_machine
from ..ranking.rows import RESULTS, TABLE
from ..ranking.score import best_of, with_leads
from . import asks, query_names, stored_figures, stored_results
from .cell_figures import CellFigure, in_catalogue_order
from .filters import MachineListFilters
from .machine_places import MachinePlace, places_of
from .prices import NO_PRICES, Prices


@dataclass(frozen=True)
class MachineSummary:
    """A machine with ranked results."""

    machine_id: str
    owner: str
    hardware: dict[str, str]
    cells: int
    repeats: int
    newest_at: datetime


@dataclass(frozen=True)
class MachinePage:
    """Machines by id."""

    machines: tuple[MachineSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class LargestBatch:
    """The largest batch that a framework trained on a device of the machine."""

    workload: str
    framework: str
    device: str
    batch_size: int
    peak_memory_bytes: int | None
    result_id: str


@dataclass(frozen=True)
class MachineAnswer:
    """One machine: its latest description, its places, and every figure. Its history is by cell."""

    machine_id: str
    name: str
    owner: str
    hardware: dict[str, str]
    machine: dict[str, Any]
    environment: dict[str, Any]
    newest_at: datetime
    asks_answered: int
    places: tuple[MachinePlace, ...]
    largest_batches: tuple[LargestBatch, ...]
    figures: tuple[CellFigure, ...]


class MachineId(NamedTuple):
    """``hardware``: GPUs first."""

    id: str
    slugs: tuple[str, ...]


def starting_with(session: Session, beginning: str) -> MachineId | None:
    """The machine with ranked results whose id begins so; None if there is none, or several."""
    of_machine = (TABLE.c.machine_id, TABLE.c.hardware_slug, TABLE.c.device == "cpu")
    query = (
        select(*of_machine)
        .where(TABLE.c.level == "machine", TABLE.c.machine_id.between(beginning, beginning + "g"))
        .distinct()
        .limit(20)
    )
    rows = sorted(session.connection().execute(query), key=lambda row: (row[2], row[1]))
    if len({row[0] for row in rows}) != 1:
        return None
    return MachineId(rows[0][0], tuple(row[1] for row in rows))


def machine_page(session: Session, filters: MachineListFilters) -> MachinePage:
    """A page of machines. Raises InvalidQuery if the owner in the filters is unknown."""
    query_names.require_known(session, filters)
    of_owner = [TABLE.c.owner == filters.owner] if filters.owner else []
    rows, cursor = stored_figures.listed(session, "machine", filters, *of_owner)
    names = _hardware_of(session, [row.id for row in rows])
    figures_found = [
        MachineSummary(*(row.id, row.owner, names[row.id], row.cells, row.repeats, row.newest_at))
        for row in rows
    ]
    return MachinePage(tuple(figures_found), cursor)


def _hardware_of(session: Session, ids: Sequence[str]) -> dict[str, dict[str, str]]:
    query = (
        select(TABLE.c.machine_id, TABLE.c.hardware_slug, TABLE.c.hardware)
        .where(TABLE.c.level == "machine", TABLE.c.machine_id.in_(ids))
        .distinct()
    )
    names: dict[str, dict[str, str]] = {identity: {} for identity in ids}
    for identity, slug, name in session.connection().execute(query):
        names[identity][slug] = name
    return names


def machine(session: Session, machine_id: str, prices: Prices = NO_PRICES) -> MachineAnswer:
    """Raises NotFound if the machine has no figure."""
    return answer_of(session, machine_figures(session, machine_id), prices)


def answer_of(session: Session, figures: Sequence[Figure], prices: Prices) -> MachineAnswer:
    machine_id = figures[0].subject.machine_id
    newest = max(figures, key=lambda figure: figure.newest_at)
    submission, _ = stored_results.result_with_id(session, newest.evidence.result_id)
    signed = stored_result(submission.payload)
    shown = in_catalogue_order(with_leads(figures), prices)
    return MachineAnswer(
        machine_id,
        names_machine(figures).hardware,
        newest.subject.owner,
        {figure.hardware_slug: figure.hardware for figure in figures},
        signed.machine.model_dump(mode="json"),
        signed.environment.model_dump(mode="json"),
        newest.newest_at,
        asks.answered_by(session, machine_id),
        places_of(session, figures, signed.machine),
        _largest_batches(session, shown),
        shown,
    )


def _largest_batches(session: Session, figures: Iterable[CellFigure]) -> tuple[LargestBatch, ...]:
    """By workload, framework and device, with the memory of a repeat at that batch."""
    largest: dict[tuple[str, str, str], CellFigure] = {}
    for one in figures:
        of_three = largest.setdefault((one.workload, one.framework, one.device), one)
        if one.batch_size > of_three.batch_size:
            largest[one.workload, one.framework, one.device] = one
    ids = [one.result_id for one in largest.values()]
    columns = RESULTS.c.submission_id, RESULTS.c.peak_memory_bytes
    rows = session.connection().execute(select(*columns).where(columns[0].in_(ids)))
    peaks = {row.submission_id: row.peak_memory_bytes for row in rows}
    return tuple(
        LargestBatch(*key, one.batch_size, peaks.get(one.result_id), one.result_id)
        for key, one in largest.items()
    )


def shown_figure(figures: Sequence[Figure]) -> CellFigure:
    """The badge's: of the first of its places, else its first figure, without reading a board.
    Raises NotFound if none is of a workload that this server knows."""
    on_board = [*best_of(figures).values()]
    if shown := in_catalogue_order(on_board[:1] or figures, NO_PRICES):
        return shown[0]
    raise NotFound("no figure of a workload that this server knows", field="id")


def machine_figures(session: Session, machine_id: str) -> Sequence[Figure]:
    """Figures from the tables alone. Raises NotFound without any."""
    if figures := stored_figures.machine_figures(session, machine_id):
        return figures
    raise NotFound(
        f"no machine {machine_id[:40]!r} with ranked results",
        field="id",
        hint="GET /api/v1/machines lists them all",
    )
