"""Aggregates: the stored figures of machines, owners and hardware (table ``standing``).

:func:`refresh` computes aggregates from all of their children, from the lowest level up. The
database summarises the children and finds the ones in the middle, :func:`.figures.combine` makes
the figure. An aggregate depends on nothing but its children, so the order of updates does not
matter.
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
from .figures import LOG_SCALE, Children, Middle, Subject, combine
from .rows import (
    LEVELS,
    RESULTS,
    TABLE,
    UNIT_OF_LEVEL,
    aggregate_columns,
    evidence,
    lineage,
    sample_of,
    sample_of_one,
)

# Up to this number, the ids of all children are read to find the middle; with more, the database
# skips to it.
FEW = 200
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
    machines: ColumnElement[int]
    trust_level: ColumnElement[int]
    newest_at: ColumnElement[Any]
    middle_columns: tuple[ColumnElement[Any], ...]
    read_middle: Callable[[Any], Middle]


def _middle_result(row: Any) -> Middle:
    values = sample_of_one(row.ns_per_sample)
    return Middle(row.ns_per_sample, "repeats", values, evidence(row, row.id))


def _middle_aggregate(row: Any) -> Middle:
    return Middle(row.ns_per_sample, row.value_unit, sample_of(row), evidence(row, row.result_id))


def _results(parent: str) -> ChildTable:
    c = RESULTS.c
    return ChildTable(
        *(c[parent], c.submission_id, c.rankable, c.ns_per_sample, c.ns_per_sample),
        *(c.ns_per_sample, literal(1), literal(1), c.trust_level, c.received_at),
        middle_columns=(
            c.submission_id.label("id"),
            *(c[name] for name in ("ns_per_sample", *_EVIDENCE)),
        ),
        read_middle=_middle_result,
    )


_AGGREGATES = ChildTable(
    *(TABLE.c.parent_id, TABLE.c.id, true(), TABLE.c.ns_per_sample, TABLE.c.fastest_ns),
    *(TABLE.c.slowest_ns, TABLE.c.repeats, TABLE.c.machines, TABLE.c.trust_level),
    TABLE.c.newest_at,
    middle_columns=(
        TABLE.c.id,
        *(TABLE.c[name] for name in ("ns_per_sample", "value_unit", "value_count")),
        *(TABLE.c[name] for name in ("value_log_mean", "value_log_variance", "result_id")),
        *(TABLE.c[name] for name in _EVIDENCE),
    ),
    read_middle=_middle_aggregate,
)
CHILDREN = {
    "environment": _results("environment_standing"),
    "machine": _results("machine_standing"),
    "owner": _AGGREGATES,
    "hardware": _AGGREGATES,
}


class Touched:
    """The aggregates that a change touches: subjects by id, for each level."""

    def __init__(self) -> None:
        self.levels: dict[str, dict[str, Subject]] = {level: {} for level in LEVELS}

    def add(self, subject: Subject) -> None:
        """Touch all aggregates above a result, given its subject at the lowest level. A later
        subject replaces an earlier one of the same aggregate, as when a machine's owner changes."""
        for level, of_level in lineage(subject).items():
            self.levels[level][of_level.id] = of_level


def refresh(connection: Connection, touched: Touched) -> None:
    """Compute the touched aggregates again; one without children is deleted."""
    for level, subjects in touched.levels.items():
        if not subjects:
            continue
        children = children_of(connection, level, subjects)
        if gone := subjects.keys() - children.keys():
            connection.execute(DELETE, {"ids": sorted(gone)})
        figures = {
            id: combine(summary, UNIT_OF_LEVEL[level], subjects[id])
            for id, summary in sorted(children.items())
        }
        upsert(connection, TABLE, [aggregate_columns(level, f) for f in figures.values()])


def children_of(connection: Connection, level: str, parents: Iterable[str]) -> dict[str, Children]:
    """Summaries of the children of each parent that has any, by the parents' ids."""
    sums = connection.execute(_sums(level), {"ids": list(parents)}).all()
    middle_ids = _middle_ids(connection, level, {row.parent: row.number for row in sums})
    ids = {id for pair in middle_ids.values() for id in pair}
    rows = connection.execute(_middles(level), {"ids": list(ids)}) if ids else ()
    read = CHILDREN[level].read_middle
    middles = {row.id: read(row) for row in rows}
    return {row.parent: _children(row, middle_ids[row.parent], middles) for row in sums}


def _children(
    row: Row[Any], middle_ids: tuple[str, str], middles: Mapping[str, Middle]
) -> Children:
    lower, upper = middle_ids
    return Children(
        count=row.number,
        fastest_ns=row.fastest,
        slowest_ns=row.slowest,
        repeats=int(row.repeats),
        machines=int(row.machines),
        trust_level=row.trust_level,
        newest_at=row.newest_at,
        log_sum=int(row.log_sum),
        log_square_sum=int(row.log_square_sum),
        lower=middles[lower],
        upper=middles[upper],
    )


def _middle_ids(
    connection: Connection, level: str, counts: Mapping[str, int]
) -> dict[str, tuple[str, str]]:
    """The ids of the two middle children of each parent."""
    few = [parent for parent, count in counts.items() if count <= FEW]
    pairs: dict[str, tuple[str, str]] = {}
    rows = connection.execute(_ordered(level), {"ids": few}) if few else ()
    for parent, group in groupby(rows, key=lambda row: row.parent):
        ids = [row.id for row in group]
        pairs[parent] = ids[(len(ids) - 1) // 2], ids[len(ids) // 2]
    for parent in counts.keys() - set(few):
        count = counts[parent]
        place = {"parent": parent, "skip": (count - 1) // 2, "take": 2 - count % 2}
        ids = list(connection.scalars(_from_middle(level), place))
        pairs[parent] = ids[0], ids[-1]
    return pairs


# -- statements, each built once -------------------------------------------------------------------

DELETE = delete(TABLE).where(among(TABLE.c.id, "ids"))


@cache
def _sums(level: str) -> Executable:
    c = CHILDREN[level]
    log = cast(func.round(func.ln(c.time) * LOG_SCALE), BigInteger)
    return (
        select(
            c.parent.label("parent"),
            func.count().label("number"),
            func.min(c.fastest).label("fastest"),
            func.max(c.slowest).label("slowest"),
            func.sum(c.repeats).label("repeats"),
            func.sum(c.machines).label("machines"),
            func.min(c.trust_level).label("trust_level"),
            func.max(c.newest_at).label("newest_at"),
            func.sum(log).label("log_sum"),
            func.sum(log * log).label("log_square_sum"),
        )
        .where(among(c.parent, "ids"), c.counted)
        .group_by(c.parent)
    )


@cache
def _ordered(level: str) -> Executable:
    c = CHILDREN[level]
    return (
        select(c.parent.label("parent"), c.id.label("id"))
        .where(among(c.parent, "ids"), c.counted)
        .order_by(c.parent, c.time, c.id)
    )


@cache
def _from_middle(level: str) -> Select[Any]:
    c = CHILDREN[level]
    return (
        select(c.id)
        .where(c.parent == bindparam("parent"), c.counted)
        .order_by(c.time, c.id)
        .limit(bindparam("take", type_=Integer))
        .offset(bindparam("skip", type_=Integer))
    )


@cache
def _middles(level: str) -> Select[Any]:
    c = CHILDREN[level]
    return select(*c.middle_columns).where(among(c.id, "ids"))
