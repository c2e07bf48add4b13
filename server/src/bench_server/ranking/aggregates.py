"""Aggregates: the stored figures of runs, machines, owners and hardware (table ``standing``).

:func:`refresh` computes aggregates from all of their children, from the lowest level up. The
database summarises the children and finds the ones in the middle, :func:`.figures.combine` makes
the figure. An aggregate depends on nothing but its children and on which owners are confirmed, so
the order of updates does not matter.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Row,
    Select,
    bindparam,
    cast,
    delete,
    func,
    literal,
    select,
    true,
)

from ..db.lists import among
from ..db.upsert import upsert
from .confirmed import CONFIRMED
from .figures import (
    LOG_SCALE,
    Children,
    Figure,
    Level,
    Middle,
    Subject,
    combine,
    confirmed_decide,
    sample_of_one,
)
from .rows import LEVELS, RESULTS, TABLE, aggregate_columns, evidence, lineage, sample_of

# Up to this number, the ids of all children are read to find the middle; with more, the database
# skips to it.
FEW = 200
TRUST_LEVELS = (4, 3, 2, 1, 0)
_EVIDENCE = ("spread", "accuracy", "joules_per_sample", "energy_scope")


class ChildTable(NamedTuple):
    """How to read the children of a level: their parent and id, which of them count, the columns
    that are summed (none for results, which are one repeat each), and how to read a middle one."""

    parent: ColumnElement[str]
    id: ColumnElement[str]
    counted: ColumnElement[bool]
    time: ColumnElement[float]
    fastest: ColumnElement[float]
    slowest: ColumnElement[float]
    repeats: ColumnElement[int]
    runs: ColumnElement[int]
    machines: ColumnElement[int]
    trust_level: ColumnElement[int]
    newest_at: ColumnElement[Any]
    middle_columns: tuple[ColumnElement[Any], ...]
    read_middle: Callable[[Any], Middle]


def _middle_result(row: Any) -> Middle:
    values = sample_of_one(row.ns_per_sample)
    return Middle(row.ns_per_sample, "runs", values, evidence(row, row.id))


def _middle_aggregate(row: Any) -> Middle:
    return Middle(row.ns_per_sample, row.value_unit, sample_of(row), evidence(row, row.result_id))


_R, _A = RESULTS.c, TABLE.c
CHILD_RESULTS = ChildTable(
    *(_R.run_standing, _R.submission_id, _R.rankable),
    *(_R.ns_per_sample, _R.ns_per_sample, _R.ns_per_sample),
    *(literal(1), literal(1), literal(1), _R.trust_level, _R.received_at),
    middle_columns=(
        _R.submission_id.label("id"),
        *(_R[name] for name in ("ns_per_sample", *_EVIDENCE)),
    ),
    read_middle=_middle_result,
)
CHILD_AGGREGATES = ChildTable(
    *(_A.parent_id, _A.id, true(), _A.ns_per_sample, _A.fastest_ns, _A.slowest_ns),
    *(_A.repeats, _A.runs, _A.machines, _A.trust_level, _A.newest_at),
    middle_columns=(
        _A.id,
        *(_A[name] for name in ("ns_per_sample", "value_unit", "value_count")),
        *(_A[name] for name in ("value_log_mean", "value_log_variance", "result_id")),
        *(_A[name] for name in _EVIDENCE),
    ),
    read_middle=_middle_aggregate,
)
CONFIRMED_AGGREGATES = CHILD_AGGREGATES._replace(counted=_A.owner.in_(CONFIRMED))


class Touched:
    """The aggregates that a change touches: subjects by id, for each level."""

    def __init__(self) -> None:
        self.levels: dict[Level, dict[str, Subject]] = {level: {} for level in LEVELS}

    def add(self, subject: Subject) -> None:
        """Touch all aggregates above a result, given its subject at the lowest level. A later
        subject replaces an earlier one of the same aggregate, as when a machine's owner changes."""
        for level, of_level in lineage(subject).items():
            self.levels[level][of_level.id] = of_level

    def add_hardware(self, subject: Subject) -> None:
        """Touch the aggregate of a hardware alone."""
        self.levels["hardware"][subject.id] = subject


def refresh(connection: Connection, touched: Touched) -> None:
    """Compute the touched aggregates again; one without children is deleted."""
    for level, subjects in touched.levels.items():
        if not subjects:
            continue
        table = CHILD_RESULTS if level == "run" else CHILD_AGGREGATES
        children = children_of(connection, table, subjects)
        if gone := subjects.keys() - children.keys():
            connection.execute(DELETE, {"ids": sorted(gone)})
        figures = {
            id: combine(summary, level, subjects[id]) for id, summary in sorted(children.items())
        }
        if level == "hardware":
            figures = _confirmed_first(connection, figures)
        upsert(connection, TABLE, [aggregate_columns(level, f) for f in figures.values()])


def children_of(
    connection: Connection, table: ChildTable, parents: Iterable[str]
) -> dict[str, Children]:
    """Summaries of the children of each parent that has any, by the parents' ids."""
    sums = connection.execute(_sums(table), {"ids": list(parents)}).all()
    middle_ids = _middle_ids(connection, table, {row.parent: row.number for row in sums})
    ids = {id for pair in middle_ids.values() for id in pair}
    rows = connection.execute(_middles(table), {"ids": list(ids)}) if ids else ()
    middles = {row.id: table.read_middle(row) for row in rows}
    return {row.parent: _children(row, middle_ids[row.parent], middles) for row in sums}


def _confirmed_first(connection: Connection, figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """As :func:`.figures.of_owners`: of confirmed owners alone where there are enough."""
    rows = connection.execute(CONFIRMED_OWNERS, {"ids": list(figures)})
    vouched = {row.parent: row.number for row in rows}
    decided = [id for id, number in vouched.items() if confirmed_decide(number)]
    alone = children_of(connection, CONFIRMED_AGGREGATES, decided) if decided else {}
    return {
        id: (combine(alone[id], "hardware", figure.subject) if id in alone else figure)._replace(
            owners=figure.owners, confirmed_owners=vouched.get(id, 0)
        )
        for id, figure in figures.items()
    }


def _children(
    row: Row[Any], middle_ids: tuple[str, str], middles: Mapping[str, Middle]
) -> Children:
    lower, upper = middle_ids
    return Children(
        count=row.number,
        fastest_ns=row.fastest,
        slowest_ns=row.slowest,
        repeats=int(row.repeats),
        runs=int(row.runs),
        machines=int(row.machines),
        trust_level=next(
            level for level in TRUST_LEVELS if 2 * row._mapping[f"trust_{level}"] > row.number
        ),
        newest_at=row.newest_at,
        log_sum=int(row.log_sum),
        log_square_sum=int(row.log_square_sum),
        lower=middles[lower],
        upper=middles[upper],
    )


def _middle_ids(
    connection: Connection, table: ChildTable, counts: Mapping[str, int]
) -> dict[str, tuple[str, str]]:
    """The ids of the two middle children of each parent."""
    few = [parent for parent, count in counts.items() if count <= FEW]
    pairs: dict[str, tuple[str, str]] = {}
    rows = connection.execute(_ordered(table), {"ids": few}) if few else ()
    for parent, group in groupby(rows, key=lambda row: row.parent):
        ids = [row.id for row in group]
        pairs[parent] = ids[(len(ids) - 1) // 2], ids[len(ids) // 2]
    for parent in counts.keys() - set(few):
        count = counts[parent]
        place = {"parent": parent, "skip": (count - 1) // 2, "take": 2 - count % 2}
        ids = list(connection.scalars(_from_middle(table), place))
        pairs[parent] = ids[0], ids[-1]
    return pairs


# -- statements, each built once -------------------------------------------------------------------

DELETE = delete(TABLE).where(among(TABLE.c.id, "ids"))
CONFIRMED_OWNERS = (
    select(TABLE.c.parent_id.label("parent"), func.count().label("number"))
    .where(among(TABLE.c.parent_id, "ids"), TABLE.c.owner.in_(CONFIRMED))
    .group_by(TABLE.c.parent_id)
)


@cache
def _sums(c: ChildTable) -> Executable:
    log = cast(func.round(func.ln(c.time) * LOG_SCALE), BigInteger)
    return (
        select(
            c.parent.label("parent"),
            func.count().label("number"),
            func.min(c.fastest).label("fastest"),
            func.max(c.slowest).label("slowest"),
            func.sum(c.repeats).label("repeats"),
            func.sum(c.runs).label("runs"),
            func.sum(c.machines).label("machines"),
            *(
                func.sum(cast(c.trust_level >= level, Integer)).label(f"trust_{level}")
                for level in TRUST_LEVELS
            ),
            func.max(c.newest_at).label("newest_at"),
            func.sum(log).label("log_sum"),
            func.sum(log * log).label("log_square_sum"),
        )
        .where(among(c.parent, "ids"), c.counted)
        .group_by(c.parent)
    )


@cache
def _ordered(c: ChildTable) -> Executable:
    return (
        select(c.parent.label("parent"), c.id.label("id"))
        .where(among(c.parent, "ids"), c.counted)
        .order_by(c.parent, c.time, c.id)
    )


@cache
def _from_middle(c: ChildTable) -> Select[Any]:
    return (
        select(c.id)
        .where(c.parent == bindparam("parent"), c.counted)
        .order_by(c.time, c.id)
        .limit(bindparam("take", type_=Integer))
        .offset(bindparam("skip", type_=Integer))
    )


@cache
def _middles(c: ChildTable) -> Select[Any]:
    return select(*c.middle_columns).where(among(c.id, "ids"))
