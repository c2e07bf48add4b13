"""Hardware: a list, and single ones with all of their figures."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func
from sqlalchemy import select as columns
from sqlmodel import Session, col, select

from bench_protocol.payload.machine import Machine

from ..db.tables import Submission
from ..ingest.columns import stored_result
from ..ranking.figures import Figure
from ..ranking.ranges import RangeOf
from ..ranking.rows import TABLE
from ..ranking.score import Score, best_of, score, with_leads
from . import query_names, stored_figures
from .baseline import baseline
from .cell_figures import CellFigure, in_catalogue_order
from .filters import ListFilters
from .prices import NO_PRICES, Price, Prices
from .specifications import Specification, specifications
from .types.shared_fields import InUnits, rate_fields, unit_fields

# A list of all machines of a hardware would grow without end.
MOST_MACHINES = 20


@dataclass(frozen=True)
class HardwareSummary:
    """A hardware with ranked results."""

    slug: str
    name: str
    cells: int
    repeats: int
    machines: int
    owners: int
    newest_at: datetime


@dataclass(frozen=True)
class HardwarePage:
    """Hardware by slug."""

    hardware: tuple[HardwareSummary, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class MachineOfHardware(InUnits):
    """A machine with this hardware, and its speed in the set-up of the hardware's ``place``, null
    where it was not measured in it."""

    machine_id: str
    owner: str
    repeats: int
    samples_per_second: float | None
    samples_per_second_low: float | None
    samples_per_second_high: float | None
    samples_per_second_range_of: RangeOf | None


@dataclass(frozen=True)
class HardwareAnswer:
    """One hardware: what it is, what it costs, its score and every figure."""

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


def hardware_page(session: Session, filters: ListFilters) -> HardwarePage:
    rows, cursor = stored_figures.listed(session, "hardware", filters)
    figures_found = [
        HardwareSummary(
            *(row.id, row.hardware, row.cells, row.repeats, row.machines, row.owners), row.newest_at
        )
        for row in rows
    ]
    return HardwarePage(tuple(figures_found), cursor)


def hardware(
    session: Session, slug: str, of_operator: str | None = None, prices: Prices = NO_PRICES
) -> HardwareAnswer:
    """``of_operator``: the baseline that the operator chose. Raises NotFound without a figure."""
    figures = stored_figures.hardware_figures(session, slug)
    if not figures:
        raise query_names.no_hardware(session, slug)
    first = figures[0]
    relative_to = baseline(session, of_operator)
    of_baseline = relative_to.slug and stored_figures.hardware_figures(session, relative_to.slug)
    best = best_of(figures)
    on_board = next(iter(best.values()), None)
    machines, described = _machines(session, slug, on_board)
    return HardwareAnswer(
        slug=slug,
        name=first.hardware,
        published=first.published,
        specifications=specifications(first.hardware, first.setup.device, described),
        price=prices.of(slug, slug, first.hardware),
        energy_currency=prices.energy_currency,
        score=score(best, best_of(relative_to.counted(of_baseline or ()))),
        place=next(iter(in_catalogue_order([on_board], prices)), None) if on_board else None,
        machines=machines,
        figures=in_catalogue_order(with_leads(figures), prices),
    )


def _machines(
    session: Session, slug: str, on_board: Figure | None
) -> tuple[tuple[MachineOfHardware, ...], list[Machine]]:
    """The first machines by an index of ids, so their total number does not matter."""
    query = (
        columns(
            *(TABLE.c.machine_id, func.min(TABLE.c.owner), func.sum(TABLE.c.repeats)),
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
        figures = stored_figures.figures_where(
            session,
            TABLE.c.level == "machine",
            TABLE.c.machine_id.in_([row[0] for row in rows]),
            *stored_figures.in_setup_of(on_board),
        )
        speeds = {figure.subject.machine_id: figure for figure in figures}
    names = ("", "_low", "_high", "_range_of")
    nothing = dict.fromkeys(f"samples_per_second{name}" for name in names)
    nothing |= unit_fields(on_board.subject.workload if on_board else "", None)
    machines = [
        MachineOfHardware(
            machine_id=machine_id,
            owner=owner,
            repeats=repeats,
            **(rate_fields(speeds[machine_id]) if machine_id in speeds else nothing),
        )
        for machine_id, owner, repeats, _ in rows
    ]
    fastest_first = sorted(machines, key=lambda one: -(one.samples_per_second or 0))
    of_results = col(Submission.id).in_([row[3] for row in rows])
    payloads = session.scalars(select(Submission.payload).where(of_results))
    return tuple(fastest_first), [stored_result(payload).machine for payload in payloads]
