"""SQL of the leaderboard: figures, and pages of results."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, or_, select
from sqlmodel import Session

from bench_protocol.catalogue.workloads import Workload

from ..errors import InvalidQuery
from ..ranking import medians
from ..ranking.figures import Figure
from ..ranking.held import with_holds
from ..ranking.owners import facts_of
from ..ranking.rows import RESULTS, TABLE, figure_of_result
from . import cursors
from .board_filters import BoardFilters
from .criteria import Criteria
from .stored_figures import figures_where

# The column that a board of results is in the order of, and whether the greatest is first.
ORDERS: dict[str, tuple[ColumnElement[Any], bool]] = {
    "time": (RESULTS.c.ns_per_sample, False),
    "throughput": (RESULTS.c.ns_per_sample, False),
    "energy": (RESULTS.c.joules_per_sample, False),
    "mfu": (RESULTS.c.mfu, True),
    "accuracy": (RESULTS.c.accuracy, True),
    "newest_at": (RESULTS.c.received_at, False),
    "-newest_at": (RESULTS.c.received_at, True),
}


def figures(
    session: Session, workloads: Sequence[Workload], criteria: Criteria, of_machines: bool = False
) -> dict[str, list[Figure]]:
    """Figures of hardware, or of machines, in each workload's set-ups, by the workloads' digests.
    All are read at once.

    A machine, an owner or an attribute selects machines or runs, and hardware is ranked from those.
    A trust level selects among the figures.
    """
    some_machines = bool({"machine_id", "owner"} & criteria.equal.keys())
    conditions = criteria.on_boards(TABLE, workloads)
    if criteria.where:
        environments = TABLE.c.environment_id.in_(criteria.environments())
        runs = figures_where(session, TABLE.c.level == "run", environments, *conditions)
        found = medians.combined(runs, "machine")
    elif of_machines or some_machines:
        found = figures_where(session, TABLE.c.level == "machine", *conditions)
    else:
        level = TABLE.c.level.in_(["hardware", "published"])
        found = figures_where(session, level, *conditions)
    if not of_machines and (criteria.where or some_machines):
        owners = (figure.subject.owner for figure in found)
        of_hardware = medians.of_machines(found, facts_of(session.connection(), owners))
        found = with_holds(session.connection(), of_hardware)
    by_workload: dict[str, list[Figure]] = {workload.digest: [] for workload in workloads}
    for figure in found:
        if figure.trust_level >= (criteria.trust_level or 0):
            by_workload[figure.subject.workload_digest].append(figure)
    return by_workload


class ResultsPage(NamedTuple):
    """One page of a board of results."""

    figures: list[Figure]
    next_cursor: str | None


def results(
    session: Session, workload: Workload, filters: BoardFilters, energy_scope: str | None
) -> ResultsPage:
    """Ranked results of a workload in the order of ``sort`` or ``rank_by``, at most ``limit`` after
    the cursor.

    Raises:
        InvalidQuery: results are not sorted by that field.
    """
    sort = filters.sort or filters.ranked_by
    if sort not in ORDERS:
        raise InvalidQuery(
            f"sort: results are sorted by newest_at alone, not by {filters.sort}",
            field="sort",
            hint="sort=newest_at, sort=-newest_at, or rank_by",
        )
    value, descending = ORDERS[sort]
    query = select(RESULTS).where(
        RESULTS.c.rankable,
        value.is_not(None),
        ORDERS[filters.ranked_by][0].is_not(None),
        *filters.criteria.on_boards(RESULTS, [workload]),
        *filters.criteria.of_evidence(),
    )
    if energy_scope is not None:
        query = query.where(RESULTS.c.energy_scope == energy_scope)
    key = RESULTS.c.submission_id
    if filters.cursor is not None:
        place, last = _place(filters)
        beyond = value < place if descending else value > place
        query = query.where(or_(beyond, and_(value == place, key > last)))
    query = query.order_by(value.desc() if descending else value.asc(), key)
    rows = session.connection().execute(query.limit(filters.limit + 1)).all()
    page, cursor = rows[: filters.limit], None
    if len(rows) > filters.limit:
        place = getattr(page[-1], str(value.key))
        words = place.isoformat() if filters.sort else float(place)
        cursor = cursors.write(words, page[-1].submission_id)
    return ResultsPage([figure_of_result(row) for row in page], cursor)


def _place(filters: BoardFilters) -> tuple[Any, str]:
    """The last row before the page: its value and id."""
    value, last = cursors.read(filters.cursor or "", str if filters.sort else float, str)
    return (cursors.moment_of(value) if filters.sort else value), last
