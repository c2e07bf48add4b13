"""Unranked rows of boards: the newest unranked and withdrawn results, all read at once."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select, bindparam, select, union_all
from sqlmodel import Session

from bench_protocol.catalogue.workloads import Workload

from ..db.tables import Withdrawn, table_of
from ..ranking.rows import RESULTS
from .criteria import Criteria
from .types.leaderboard import UnrankedRow, UnrankedState

MOST_UNRANKED = 12
# Columns of an unranked or withdrawn result that a board shows.
_SHOWN = (
    *("hardware", "hardware_slug", "workload", "framework", "device", "recipe", "batch_size"),
    *("precision", "data", "received_at"),
)
GONE = table_of(Withdrawn)
UNRANKED = (
    select(
        *(RESULTS.c[name] for name in (*_SHOWN, "workload_digest", "submission_id")),
        *(RESULTS.c.moderation, RESULTS.c.unranked_reason),
    )
    .where(RESULTS.c.rankable.is_(False))
    .order_by(RESULTS.c.received_at.desc(), RESULTS.c.submission_id.desc())
)
WITHDRAWN = select(*(GONE.c[name] for name in (*_SHOWN, "workload_digest", "id"))).order_by(
    GONE.c.received_at.desc(), GONE.c.id.desc()
)


def unranked_rows(
    session: Session, workloads: Sequence[Workload], criteria: Criteria
) -> dict[str, tuple[UnrankedRow, ...]]:
    """The newest unranked and withdrawn results, by workload digest."""
    answers: defaultdict[str, list[UnrankedRow]] = defaultdict(list)
    conditions = criteria.of_trust_level()
    for digest, rows in _newest(
        session, UNRANKED, RESULTS, workloads, criteria, conditions
    ).items():
        for row in rows:
            state: UnrankedState = "hidden" if row.moderation == "hidden" else "kept"
            reason = row.unranked_reason or ""
            answers[digest].append(_answer(row, row.submission_id, state, reason))
    # A withdrawn result keeps no machine, timing or trust level to filter by.
    if not conditions and all(name in GONE.c for name in criteria.equal):
        for digest, rows in _newest(session, WITHDRAWN, GONE, workloads, criteria, []).items():
            reason = "withdrawn by its sender or the operator"
            answers[digest] += [_answer(row, row.id, "withdrawn", reason) for row in rows]
    return {digest: _newest_first(unsorted) for digest, unsorted in answers.items()}


def _newest_first(rows: list[UnrankedRow]) -> tuple[UnrankedRow, ...]:
    ordered = sorted(rows, key=lambda row: (row.received_at, row.result_id), reverse=True)
    return tuple(ordered[:MOST_UNRANKED])


def _answer(row: Any, result_id: str, state: UnrankedState, reason: str) -> UnrankedRow:
    shown = {name: getattr(row, name) for name in _SHOWN}
    return UnrankedRow(result_id=result_id, state=state, reason=reason, **shown)


def _newest(
    session: Session,
    query: Select[Any],
    table: Any,
    workloads: Sequence[Workload],
    criteria: Criteria,
    conditions: list[ColumnElement[bool]],
) -> dict[str, list[Any]]:
    conditions = [*conditions, *criteria.search.conditions(table)]
    equal = dict(criteria.equal)
    per_workload = ("workload_digest", *(("batch_size",) if criteria.default_batch else ()))
    if conditions:
        statement = _of_each(
            query.where(*conditions), table, per_workload, tuple(equal), len(workloads)
        )
    else:
        statement = _of_each_cached(query, table, per_workload, tuple(equal), len(workloads))
    for number, workload in enumerate(workloads):
        equal |= {f"workload_digest_{number}": workload.digest}
        equal |= (
            {f"batch_size_{number}": workload.batch_size} if "batch_size" in per_workload else {}
        )
    by_workload: defaultdict[str, list[Any]] = defaultdict(list)
    for row in session.connection().execute(statement, equal):
        by_workload[row.workload_digest].append(row)
    return by_workload


def _of_each(
    query: Select[Any], table: Any, per_workload: Sequence[str], equal: Sequence[str], count: int
) -> CompoundSelect[Any]:
    """The first rows of each: ``per_workload`` columns have its values, ``equal`` ones the same."""
    alike = query.where(*(table.c[name] == bindparam(name) for name in equal))
    return union_all(
        *(
            select(
                alike.where(
                    *(table.c[name] == bindparam(f"{name}_{number}") for name in per_workload)
                )
                .limit(MOST_UNRANKED)
                .subquery()
            )
            for number in range(count)
        )
    )


# Cached for each choice of columns: building a statement takes longer than running it.
_of_each_cached = cache(_of_each)
