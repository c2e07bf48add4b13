"""Hardware and machines: lists and single ones, with all of their figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import func
from sqlalchemy import select as columns
from sqlmodel import Session, col, select

from bench_protocol.catalogue import CATALOGUE, workload_named
from bench_protocol.machine import Machine

from ..db.tables import PublishedFigure, Submission
from ..errors import NotFound
from ..ingest.columns import stored_result
from ..ranking.figures import Figure
from ..ranking.medians import names_machine
from ..ranking.rows import TABLE
from ..ranking.score import Score, best_of, place, score
from . import asks, queries, query_names, witnessed_speeds
from .baseline import baseline_slug
from .filters import ListFilters
from .machine_places import MachinePlace, places_of
from .prices import NO_PRICES, Price, Prices
from .specifications import Specification, specifications
from .types import FigureAnswer, figure_fields, rate_fields
from .witnessed_speeds import WitnessedSpeedAnswer

# A list of all machines of a hardware would grow without end.
MOST_MACHINES = 20


@dataclass(frozen=True)
class CellFigure(FigureAnswer):
    """A figure and its workload. ``energy_cost_per_epoch`` is null without energy or its price."""

    workload: str
    energy_cost_per_epoch: float | None


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
class MachineOfHardware:
    """A machine with this hardware, and its speed in the set-up of the hardware's ``place``, null
    where it was not measured in it."""

    machine_id: str
    owner: str
    runs: int
    samples_per_second: float | None
    samples_per_second_low: float | None
    samples_per_second_high: float | None


@dataclass(frozen=True)
class HardwareAnswer:
    """One hardware: what it is, what it costs, its score and every figure. ``place``: its figure on
    the first board that it is on, null if it is on none; ``machines``: at most twenty, fastest
    first in that set-up. ``energy_currency``: of the costs of energy, null for a reader's price."""

    slug: str
    name: str
    published: bool
    specifications: tuple[Specification, ...]
    price: Price | None
    energy_currency: str | None
    score: Score
    place: CellFigure | None
    machines: tuple[MachineOfHardware, ...]
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
    asks_answered: int
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


def hardware(
    session: Session, slug: str, of_operator: str | None = None, prices: Prices = NO_PRICES
) -> HardwareAnswer:
    """One hardware.

    Args:
        of_operator: the baseline that the operator chose.

    Raises:
        NotFound: it has no figure.
    """
    figures = queries.hardware_figures(session, slug)
    if not figures:
        raise query_names.no_hardware(session, slug)
    first = figures[0]
    relative_to = baseline_slug(session, of_operator)
    baseline = queries.hardware_figures(session, relative_to) if relative_to else ()
    best = best_of(figures)
    on_board = next((place(of_kinds) for of_kinds in best.values()), None)
    machines, described = _machines(session, slug, on_board)
    return HardwareAnswer(
        slug=slug,
        name=first.hardware,
        published=first.published,
        specifications=specifications(first.hardware, first.setup.device, described),
        price=prices.of(slug, slug, first.hardware),
        energy_currency=prices.energy_currency,
        score=score(best, best_of(baseline)),
        place=next(iter(_in_catalogue_order([on_board], prices)), None) if on_board else None,
        machines=machines,
        figures=_in_catalogue_order(figures, prices),
    )


def machine_page(session: Session, filters: ListFilters) -> MachinePage:
    rows, cursor = queries.listed(session, "machine", filters)
    names = queries.hardware_of_machines(session, [row.id for row in rows])
    figures_found = [
        MachineSummary(row.id, names[row.id], row.cells, row.repeats, row.runs, row.newest_at)
        for row in rows
    ]
    return MachinePage(tuple(figures_found), cursor)


def machine(session: Session, machine_id: str, prices: Prices = NO_PRICES) -> MachineAnswer:
    """One machine.

    Raises:
        NotFound: it has no figure.
    """
    figures = machine_figures(session, machine_id)
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
        asks.answered_by(session, machine_id),
        places_of(session, figures),
        witnessed_speeds.of_machine(session, machine_id),
        _in_catalogue_order(figures, prices),
    )


def machine_figures(session: Session, machine_id: str) -> Sequence[Figure]:
    """The figures of one machine, from the tables alone.

    Raises:
        NotFound: it has none.
    """
    if figures := queries.machine_figures(session, machine_id):
        return figures
    raise NotFound(
        f"no machine {machine_id[:40]!r} with ranked results",
        field="id",
        hint="GET /api/v1/machines lists them all",
    )


def machine_cells(session: Session, machine_id: str) -> tuple[CellFigure, ...]:
    """:func:`machine_figures` of the workloads this program knows."""
    return _in_catalogue_order(machine_figures(session, machine_id), NO_PRICES)


def _machines(
    session: Session, slug: str, on_board: Figure | None
) -> tuple[tuple[MachineOfHardware, ...], list[Machine]]:
    """The first machines by id, in the order of an index, so their total number does not matter;
    and how they describe themselves."""
    query = (
        columns(
            *(TABLE.c.machine_id, func.min(TABLE.c.owner), func.sum(TABLE.c.runs)),
            func.max(TABLE.c.result_id),
        )
        .where(TABLE.c.level == "machine", TABLE.c.hardware_slug == slug)
        .group_by(TABLE.c.machine_id)
        .order_by(TABLE.c.machine_id)
        .limit(MOST_MACHINES)
    )
    rows = session.connection().execute(query).all()
    speeds: dict[str, Figure] = {}
    if on_board is not None:
        figures = queries.figures_where(
            session,
            TABLE.c.level == "machine",
            TABLE.c.machine_id.in_([row[0] for row in rows]),
            TABLE.c.hardware_slug == slug,
            TABLE.c.workload_digest == on_board.subject.workload_digest,
            *(TABLE.c[name] == value for name, value in on_board.setup._asdict().items()),
        )
        speeds = {figure.subject.machine_id: figure for figure in figures}
    nothing = dict.fromkeys(
        ("samples_per_second", "samples_per_second_low", "samples_per_second_high")
    )
    machines = [
        MachineOfHardware(
            machine_id,
            owner,
            runs,
            **(rate_fields(speeds[machine_id]) if machine_id in speeds else nothing),
        )
        for machine_id, owner, runs, _ in rows
    ]
    fastest_first = sorted(machines, key=lambda one: -(one.samples_per_second or 0))
    return tuple(fastest_first), _described(session, [row[3] for row in rows])


def _described(session: Session, result_ids: Sequence[str]) -> list[Machine]:
    """The machines of results, as they describe themselves."""
    payloads = session.scalars(select(Submission.payload).where(col(Submission.id).in_(result_ids)))
    return [
        Machine.model_validate_json(orjson.dumps(orjson.loads(payload)["predicate"]["machine"]))
        for payload in payloads
    ]


def _in_catalogue_order(figures: Sequence[Figure], prices: Prices) -> tuple[CellFigure, ...]:
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
