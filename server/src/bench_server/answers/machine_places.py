"""Places of a machine: the rank of its hardware on each board, and the machine among the
machines of that hardware. The ranks of a board are computed in :mod:`.leaderboard`."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Integer, cast, func, select
from sqlmodel import Session

from ..ranking.compare import RankedRow
from ..ranking.figures import Figure
from ..ranking.ranges import RangeOf
from ..ranking.rows import TABLE
from ..ranking.score import best_of
from . import leaderboard, stored_figures
from .board_filters import BoardFilters
from .types.leaderboard import rate_fields


@dataclass(frozen=True)
class MachinePlace:
    """A machine in a workload, in its fastest set-up that counts at the default batch size."""

    workload: str
    hardware: str
    hardware_slug: str
    framework: str
    device: str
    recipe: str
    data: str
    timing: str
    samples_per_second: float
    samples_per_second_low: float | None
    samples_per_second_high: float | None
    samples_per_second_range_of: RangeOf | None
    rank: int | None
    ranked: int
    percentile: float | None
    of_hardware: float | None
    in_ranked_setup: bool
    of_ranked: float | None
    ranked_framework: str | None
    ranked_recipe: str | None
    machines: int
    slower: int


# A strip of more points shows no more.
MOST_LIKE_IT = 200
SHOWN = ("framework", "device", "recipe", "data", "timing")


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
    """Ids and samples per second of the machines of the same hardware in a machine's set-up, itself
    included, the fastest first, at most ``MOST_LIKE_IT``."""
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
    slower = cast(TABLE.c.ns_per_sample > figure.ns_per_sample, Integer)
    counts = select(func.count(), func.coalesce(func.sum(slower), 0)).where(
        TABLE.c.level == "machine", *in_setup
    )
    ranked = sum(row.rank is not None for row in rows)
    rank = row.rank if row else None
    machines, slower_ones = session.connection().execute(counts).one()
    return MachinePlace(
        workload=workload,
        hardware=figure.hardware,
        hardware_slug=figure.hardware_slug,
        **{name: getattr(setup, name) for name in SHOWN},
        **rate_fields(figure),
        rank=rank,
        ranked=ranked,
        percentile=100 * (ranked - rank) / (ranked - 1) if rank and ranked > 1 else None,
        of_hardware=same[0].ns_per_sample / figure.ns_per_sample if same else None,
        in_ranked_setup=row is None or row.figure.setup == setup,
        of_ranked=row.figure.ns_per_sample / figure.ns_per_sample if row else None,
        ranked_framework=row.figure.setup.framework if row else None,
        ranked_recipe=row.figure.setup.recipe if row else None,
        machines=machines,
        slower=int(slower_ones),
    )
