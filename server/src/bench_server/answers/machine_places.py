"""Places of a machine: the rank of its hardware on each board, and the machine among its kind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from sqlalchemy import func, select
from sqlmodel import Session

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.hardware import clean, hardware_name, slug
from bench_protocol.payload.machine import Machine

from ..ranking import ranges
from ..ranking.compare import RankedRow
from ..ranking.figures import Figure
from ..ranking.rows import TABLE
from ..ranking.score import best_of
from . import leaderboard, stored_figures
from .board_filters import BoardFilters
from .types.shared_fields import InSetup, Rated, SpeedUp, rate_fields

T = TypeVar("T")


@dataclass(frozen=True)
class FasterSetup(SpeedUp, InSetup):
    """A faster set-up than a machine's, on the same hardware or a GPU beside its processor."""

    hardware: str
    hardware_slug: str


@dataclass(frozen=True)
class MachinePlace(Rated, InSetup):
    """A machine in a workload, in its fastest set-up that counts at the default batch size."""

    workload: str
    hardware: str
    hardware_slug: str
    rank: int | None
    ranked: int
    of_median: float
    alone: bool
    in_ranked_setup: bool
    of_ranked: float | None
    faster: FasterSetup | None
    machines: int


# A strip of more points shows no more.
MOST_LIKE_IT = 200


def places_of(
    session: Session, figures: Sequence[Figure], machine: Machine
) -> tuple[MachinePlace, ...]:
    """Places by workload, in the catalogue's order; ``machine``: as it describes itself."""
    best = best_of(figures)
    if not best:
        return ()
    boards = {
        ranking.workload.name: ranking.rows
        for ranking in leaderboard.rankings(session, BoardFilters.model_validate({}))
    }
    return tuple(
        _place(session, figure, boards[workload], machine) for workload, figure in best.items()
    )


def like_it(session: Session, figure: Figure) -> list[tuple[str, float]]:
    """Ids and samples per second of the hardware's machines in this set-up, fastest first."""
    query = (
        select(TABLE.c.machine_id, TABLE.c.ns_per_sample)
        .where(TABLE.c.level == "machine", *stored_figures.in_setup_of(figure))
        .order_by(TABLE.c.ns_per_sample, TABLE.c.id)
        .limit(MOST_LIKE_IT)
    )
    return [(id, 1e9 / ns) for id, ns in session.connection().execute(query)]


class Kind(NamedTuple):
    """How many machines of a hardware were measured in a set-up, and how many times as fast as the
    median of these a machine is: of an even number, as the slower of the two in the middle."""

    machines: int
    of_median: float


def first_of(found: Sequence[T], machines: Callable[[T], int]) -> T | None:
    """The first of a machine's places where it has other machines of its kind, else the first."""
    return max(found, key=lambda one: machines(one) > 1, default=None)


def kind_of(session: Session, figure: Figure) -> Kind:
    """A machine among those that :func:`like_it` lists, of which it is one."""
    conditions = (TABLE.c.level == "machine", *stored_figures.in_setup_of(figure))
    connection = session.connection()
    machines = connection.scalar(select(func.count()).where(*conditions)) or 0
    times = select(TABLE.c.ns_per_sample).where(*conditions).order_by(TABLE.c.ns_per_sample)
    median = connection.scalar(times.offset(machines // 2).limit(1)) or figure.ns_per_sample
    return Kind(machines, median / figure.ns_per_sample)


def _alone(session: Session, figure: Figure) -> bool:
    """Whether no other machine has a figure in the workload, whatever its hardware."""
    subject, setup = figure.subject, figure.setup
    other = (
        select(TABLE.c.id)
        .where(
            TABLE.c.level == "machine",
            TABLE.c.workload_digest == subject.workload_digest,
            TABLE.c.batch_size == setup.batch_size,
            TABLE.c.precision == setup.precision,
            TABLE.c.machine_id != subject.machine_id,
        )
        .limit(1)
    )
    return session.connection().execute(other).first() is None


def _faster(figure: Figure, rows: Sequence[RankedRow], machine: Machine) -> FasterSetup | None:
    """The first ranked row of its hardware or, of a processor, of a GPU beside it."""
    gpus = {slug(hardware_name(machine, Device(kind=g.kind, index=g.index))) for g in machine.gpus}
    chip = f"{clean(machine.cpu.brand)} ("  # Apple's have their GPU in them
    of_apple = not gpus and chip.startswith("Apple")

    def beside(other: Figure) -> bool:
        if other.hardware_slug == figure.hardware_slug or figure.setup.device != "cpu":
            return other.hardware_slug == figure.hardware_slug
        on_chip = of_apple and other.setup.device != "cpu" and other.hardware.startswith(chip)
        return other.hardware_slug in gpus or on_chip

    found = next((row.figure for row in rows if row.rank and beside(row.figure)), None)
    if found is None or found.ns_per_sample >= figure.ns_per_sample:
        return None
    if (found.hardware_slug, found.setup) == (figure.hardware_slug, figure.setup):
        return None
    bounds = ranges.of_speed_up(found, figure)
    return FasterSetup(
        hardware=found.hardware,
        hardware_slug=found.hardware_slug,
        **found.setup._asdict(),
        speed_up=figure.ns_per_sample / found.ns_per_sample,
        speed_up_low=bounds.low if bounds else None,
        speed_up_high=bounds.high if bounds else None,
        speed_up_range_of=bounds.of if bounds else None,
    )


def _place(
    session: Session, figure: Figure, rows: Sequence[RankedRow], machine: Machine
) -> MachinePlace:
    of_hardware = (row for row in rows if row.figure.hardware_slug == figure.hardware_slug)
    row = next((row for row in of_hardware if row.rank), None)
    setup = figure.setup
    return MachinePlace(
        workload=figure.subject.workload,
        hardware=figure.hardware,
        hardware_slug=figure.hardware_slug,
        **setup._asdict(),
        **rate_fields(figure),
        rank=row.rank if row else None,
        ranked=sum(row.rank is not None for row in rows),
        alone=_alone(session, figure),
        in_ranked_setup=row is None or row.figure.setup == setup,
        of_ranked=row.figure.ns_per_sample / figure.ns_per_sample if row else None,
        faster=_faster(figure, rows, machine),
        **kind_of(session, figure)._asdict(),
    )
