"""What stands at the foot of boards: the newest results that do not count, and what was withdrawn.

Those of all boards that are shown are asked for at once.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, CompoundSelect, Select, bindparam, select, union_all
from sqlmodel import Session

from bench_protocol.workloads import Workload

from ..db.tables import Withdrawn
from ..ranking.rows import RESULTS
from .filters import BoardFilters
from .queries import cell_values, result_conditions
from .types import UnrankedRow, UnrankedState

MOST_UNRANKED = 12
# What the foot of a board shows of a result that does not count, or that was withdrawn.
_FOOT = (
    *("hardware", "hardware_slug", "workload", "framework", "device", "recipe", "batch_size"),
    *("precision", "data", "received_at", "workload_digest"),
)
GONE = Withdrawn.__table__  # type: ignore[attr-defined]
UNRANKED = (
    select(
        *(RESULTS.c[name] for name in _FOOT),
        *(RESULTS.c[name] for name in ("submission_id", "moderation", "unranked_reason")),
    )
    .where(RESULTS.c.rankable.is_(False))
    .order_by(RESULTS.c.received_at.desc(), RESULTS.c.submission_id.desc())
)
WITHDRAWN = select(*(GONE.c[name] for name in (*_FOOT, "id"))).order_by(
    GONE.c.received_at.desc(), GONE.c.id.desc()
)


def feet(
    session: Session, workloads: Sequence[Workload], filters: BoardFilters
) -> dict[str, tuple[UnrankedRow, ...]]:
    """The newest results that do not count, and what was withdrawn, by the workloads' digests."""
    found: defaultdict[str, list[UnrankedRow]] = defaultdict(list)
    for digest, kept in _kept_ones(session, workloads, filters).items():
        for row in kept:
            state: UnrankedState = "hidden" if row.moderation == "hidden" else "kept"
            reason = row.unranked_reason or ""
            found[digest].append(_unranked(row, row.submission_id, state, reason))
    for digest, gone in _withdrawn(session, workloads, filters).items():
        reason = "withdrawn by whoever sent it"
        found[digest] += [_unranked(row, row.id, "withdrawn", reason) for row in gone]
    return {digest: _last(rows) for digest, rows in found.items()}


def _last(rows: list[UnrankedRow]) -> tuple[UnrankedRow, ...]:
    ordered = sorted(rows, key=lambda row: (row.received_at, row.result_id), reverse=True)
    return tuple(ordered[:MOST_UNRANKED])


def _unranked(row: Any, result_id: str, state: UnrankedState, reason: str) -> UnrankedRow:
    return UnrankedRow(
        result_id=result_id,
        state=state,
        hardware=row.hardware,
        hardware_slug=row.hardware_slug,
        workload=row.workload,
        framework=row.framework,
        device=row.device,
        recipe=row.recipe,
        batch_size=row.batch_size,
        precision=row.precision,
        data=row.data,
        reason=reason,
        received_at=row.received_at,
    )


def _kept_ones(
    session: Session, workloads: Sequence[Workload], filters: BoardFilters
) -> dict[str, list[Any]]:
    """The newest results that do not count on each board, by the workloads' digests."""
    return _newest(session, UNRANKED, RESULTS, workloads, filters, result_conditions(filters))


def _withdrawn(
    session: Session, workloads: Sequence[Workload], filters: BoardFilters
) -> dict[str, list[Any]]:
    """The newest that whoever sent them took back. Too little is left of them to be asked for by
    machine, trust level or attribute."""
    if filters.machine_id or filters.trust is not None or filters.where:
        return {}
    return _newest(session, WITHDRAWN, GONE, workloads, filters, [])


def _newest(
    session: Session,
    query: Select[Any],
    table: Any,
    workloads: Sequence[Workload],
    filters: BoardFilters,
    conditions: list[ColumnElement[bool]],
) -> dict[str, list[Any]]:
    """The first of a query's rows in each workload's set-ups that fulfil the filters."""
    equal = cell_values(filters)
    if filters.batch_size not in (None, "any"):
        equal["batch_size"] = filters.batch_size
    if filters.precision != "any":
        equal["precision"] = filters.precision or "float32"
    if filters.q:
        conditions = [*conditions, table.c.hardware.icontains(filters.q, autoescape=True)]
    own = ("workload_digest", *(("batch_size",) if filters.batch_size is None else ()))
    if conditions:
        asked = _of_each(query.where(*conditions), table, own, tuple(equal), len(workloads))
    else:
        asked = _of_each_kept(query, table, own, tuple(equal), len(workloads))
    for number, workload in enumerate(workloads):
        equal |= {f"workload_digest_{number}": workload.digest}
        equal |= {f"batch_size_{number}": workload.batch_size} if "batch_size" in own else {}
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for row in session.connection().execute(asked, equal):
        found[row.workload_digest].append(row)
    return found


def _of_each(
    query: Select[Any], table: Any, own: Sequence[str], equal: Sequence[str], count: int
) -> CompoundSelect[Any]:
    """A query's first rows for each of so many workloads: columns ``own`` are a workload's, columns
    ``equal`` the same for all."""
    alike = query.where(*(table.c[name] == bindparam(name) for name in equal))
    return union_all(
        *(
            select(
                alike.where(*(table.c[name] == bindparam(f"{name}_{number}") for name in own))
                .limit(MOST_UNRANKED)
                .subquery()
            )
            for number in range(count)
        )
    )


# Put together once for each choice of columns: making a statement takes longer than answering it.
_of_each_kept = cache(_of_each)
