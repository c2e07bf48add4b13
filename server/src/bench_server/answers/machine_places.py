"""Places of a machine: the rank of its hardware on each board, and the machine among the
machines of that hardware. The ranks of a board are computed in :mod:`.leaderboard`."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlmodel import Session

from ..ranking.compare import RankedRow
from ..ranking.figures import Figure
from ..ranking.rows import TABLE
from ..ranking.score import best_of
from . import leaderboard, stored_figures
from .board_filters import BoardFilters
from .types.shared_fields import InSetup, Rated, rate_fields


@dataclass(frozen=True)
class MachinePlace(Rated, InSetup):
    """A machine in a workload, in its fastest set-up that counts at the default batch size."""

    workload: str
    hardware: str
    hardware_slug: str
    rank: int | None
    ranked: int
    of_hardware: float | None
    in_ranked_setup: bool
    of_ranked: float | None
    ranked_framework: str | None
    ranked_recipe: str | None
    machines: int


# A strip of more points shows no more.
MOST_LIKE_IT = 200


def places_of(session: Session, figures: Sequence[Figure]) -> tuple[MachinePlace, ...]:
    """A machine's places by workload, in the catalogue's order, from all of its figures."""
    best = best_of(figures)
    if not best:
        return ()
    boards = {
        ranking.workload.name: ranking.rows
        for ranking in leaderboard.rankings(session, BoardFilters.model_validate({}))
    }
    return tuple(
        _place(session, workload, figure, boards[workload]) for workload, figure in best.items()
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


def _place(
    session: Session, workload: str, figure: Figure, rows: Sequence[RankedRow]
) -> MachinePlace:
    of_hardware = (row for row in rows if row.figure.hardware_slug == figure.hardware_slug)
    row = next((row for row in of_hardware if row.rank), None)
    setup = figure.setup
    in_setup = stored_figures.in_setup_of(figure)
    same = stored_figures.figures_where(session, TABLE.c.level == "hardware", *in_setup)
    machines = select(func.count()).where(TABLE.c.level == "machine", *in_setup)
    return MachinePlace(
        workload=workload,
        hardware=figure.hardware,
        hardware_slug=figure.hardware_slug,
        **setup._asdict(),
        **rate_fields(figure),
        rank=row.rank if row else None,
        ranked=sum(row.rank is not None for row in rows),
        of_hardware=same[0].ns_per_sample / figure.ns_per_sample if same else None,
        in_ranked_setup=row is None or row.figure.setup == setup,
        of_ranked=row.figure.ns_per_sample / figure.ns_per_sample if row else None,
        ranked_framework=row.figure.setup.framework if row else None,
        ranked_recipe=row.figure.setup.recipe if row else None,
        machines=session.connection().scalar(machines) or 0,
    )
