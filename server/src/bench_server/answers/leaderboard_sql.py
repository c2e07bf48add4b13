"""SQL of the leaderboard: figures, and pages of results."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    and_,
    or_,
    select,
)
from sqlmodel import Session

from bench_protocol.catalogue.workloads import Workload

from ..errors import InvalidQuery
from ..ranking.figures import Figure
from ..ranking.medians import of_machines, of_runs
from ..ranking.owners import kinds_of
from ..ranking.rows import RESULTS, TABLE, figure_of_result
from . import cursors
from .filters import BoardFilters
from .queries import (
    cell_conditions,
    environments_where,
    figures_where,
    moment_of,
    result_conditions,
)

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
    session: Session, workloads: Sequence[Workload], filters: BoardFilters
) -> dict[str, list[Figure]]:
    """Figures of hardware, or with ``group=machine`` of machines, in each workload's set-ups, by
    the workloads' digests.
    """
    by_workload: dict[str, list[Figure]] = {workload.digest: [] for workload in workloads}
    for figure in _figures(session, workloads, filters):
        by_workload[figure.subject.workload_digest].append(figure)
    return by_workload


def _figures(
    session: Session, workloads: Sequence[Workload], filters: BoardFilters
) -> list[Figure]:
    """Figures in the set-ups of all workloads, read at once.

    A machine or an attribute selects machines or runs, and hardware is ranked from those. A trust
    level selects among the figures.
    """
    conditions = _board_conditions(TABLE, workloads, filters)
    if filters.where:
        environments = TABLE.c.environment_id.in_(environments_where(filters.where))
        level = TABLE.c.level == "run"
        found = of_runs(figures_where(session, level, environments, *conditions))
    elif filters.group == "machine" or filters.machine_id:
        found = figures_where(session, TABLE.c.level == "machine", *conditions)
    else:
        level = TABLE.c.level.in_(["hardware", "published"])
        found = figures_where(session, level, *conditions)
    if filters.group != "machine" and (filters.where or filters.machine_id):
        owners = (figure.subject.owner for figure in found)
        found = of_machines(found, kinds_of(session.connection(), owners))
    return [figure for figure in found if figure.trust_level >= (filters.trust or 0)]


class ResultsPage(NamedTuple):
    """One page of a board of results. ``ranks_before``: the number of rows on earlier pages;
    ``slowest``: the slowest result of the whole board."""

    figures: list[Figure]
    ranks_before: int
    slowest: Figure | None
    next_cursor: str | None


def results(session: Session, workload: Workload, filters: BoardFilters) -> ResultsPage:
    """Ranked results of a workload in the order of ``sort`` or ``rank_by``, at most ``limit`` after
    the cursor. The cursor carries the number of rows before it, so no page counts them again.

    Raises:
        InvalidQuery: results are not sorted by that field.
    """
    ranked_by = filters.rank_by or "time"
    if (filters.sort or ranked_by) not in ORDERS:
        raise InvalidQuery(
            f"sort: results are sorted by newest_at alone, not by {filters.sort}",
            field="sort",
            hint="sort=newest_at, sort=-newest_at, or rank_by",
        )
    value, descending = ORDERS[filters.sort or ranked_by]
    query = select(RESULTS).where(
        RESULTS.c.rankable,
        value.is_not(None),
        ORDERS[ranked_by][0].is_not(None),
        *_board_conditions(RESULTS, [workload], filters),
        *result_conditions(filters),
    )
    if filters.energy_scope is not None:
        query = query.where(RESULTS.c.energy_scope == filters.energy_scope)
    key = RESULTS.c.submission_id
    connection = session.connection()
    slowest = connection.execute(
        query.order_by(RESULTS.c.ns_per_sample.desc(), key.desc()).limit(1)
    ).first()
    ranks_before = 0
    if filters.cursor is not None:
        place, last, ranks_before = _place(filters)
        beyond = value < place if descending else value > place
        query = query.where(or_(beyond, and_(value == place, key > last)))
    query = query.order_by(value.desc() if descending else value.asc(), key)
    rows = connection.execute(query.limit(filters.limit + 1)).all()
    page, cursor = rows[: filters.limit], None
    if len(rows) > filters.limit:
        place = getattr(page[-1], str(value.key))
        words = place.isoformat() if filters.sort else float(place)
        cursor = cursors.write(words, page[-1].submission_id, ranks_before + len(page))
    return ResultsPage(
        [figure_of_result(row) for row in page],
        ranks_before,
        None if slowest is None else figure_of_result(slowest),
        cursor,
    )


def _place(filters: BoardFilters) -> tuple[Any, str, int]:
    """The last row before the page: its value, id and rank."""
    kind = str if filters.sort else float
    value, last, rank = cursors.read(filters.cursor or "", kind, str, int)
    return (moment_of(value) if filters.sort else value), last, rank


def _board_conditions(
    table: Any, workloads: Sequence[Workload], filters: BoardFilters
) -> list[ColumnElement[bool]]:
    conditions = cell_conditions(table, filters)
    digest, batch_size = table.c.workload_digest, table.c.batch_size
    conditions.append(digest.in_([workload.digest for workload in workloads]))
    if filters.batch_size is None:
        conditions.append(batch_size.in_({workload.batch_size for workload in workloads}))
        conditions.append(
            or_(*(and_(digest == w.digest, batch_size == w.batch_size) for w in workloads))
        )
    elif filters.batch_size != "any":
        conditions.append(batch_size == filters.batch_size)
    if filters.precision != "any":
        conditions.append(table.c.precision == (filters.precision or "float32"))
    return conditions
