"""What :mod:`.standings` asks and tells the database: statements put together once."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    insert,
    select,
    true,
    tuple_,
    update,
)

from .rank import Figure
from .standing_rows import RESULT_COLUMNS, RESULTS, TABLE, figure, figure_of_result

# So many children are read whole, those of all standings in one statement; among more the median
# moves along the index, in statements of its own.
FEW = 30


class Children(NamedTuple):
    """Where the children of a level are: their columns, what they belong to, their order."""

    columns: tuple[ColumnElement[Any], ...]
    parent: ColumnElement[str]
    counted: ColumnElement[bool]
    key: tuple[ColumnElement[Any], ColumnElement[Any]]
    read: Callable[[Any], Figure]


_RESULT_KEY = (RESULTS.c.ns_per_sample, RESULTS.c.submission_id)
_RESULT_COLUMNS = tuple(RESULTS.c[name] for name in RESULT_COLUMNS)
_STANDINGS = Children(
    tuple(TABLE.c), TABLE.c.parent_id, true(), (TABLE.c.ns_per_sample, TABLE.c.id), figure
)


def _results(parent: str) -> Children:
    return Children(
        _RESULT_COLUMNS, RESULTS.c[parent], RESULTS.c.rankable, _RESULT_KEY, figure_of_result
    )


CHILDREN = {
    "environment": _results("environment_standing"),
    "machine": _results("machine_standing"),
    "owner": _STANDINGS,
    "hardware": _STANDINGS,
}


def children_of(level: str, identity: str) -> Select[Any]:
    of = CHILDREN[level]
    return select(*of.columns).where(of.parent == identity, of.counted).order_by(*of.key)


def few_children(connection: Connection, rows: Iterable[Any]) -> dict[str, list[Any]]:
    """All children of those standings that have few, each one's in their order."""
    few: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.children <= FEW:
            few[row.level].append(row.id)
    found: dict[str, list[Any]] = {identity: [] for ids in few.values() for identity in ids}
    for level, ids in few.items():
        for child in connection.execute(CHILDREN_OF[level], {"ids": ids}):
            found[child.parent].append(child)
    return found


def locked(identity: str) -> Select[Any]:
    return select(TABLE).where(TABLE.c.id == identity).with_for_update()


# Statements of every ingest, put together once.
OWNERS = select(TABLE.c.parent_id, TABLE.c.owner, TABLE.c.ns_per_sample).where(
    TABLE.c.parent_id.in_(bindparam("parents", expanding=True))
)
LOCKED = (
    select(TABLE)
    .where(TABLE.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(TABLE.c.id)
    .with_for_update()
)
NEW = insert(TABLE)
MOVE = update(TABLE).where(TABLE.c.id == bindparam("identity"))
CHILDREN_OF = {
    level: select(of.parent.label("parent"), *of.columns)
    .where(of.parent.in_(bindparam("ids", expanding=True)), of.counted)
    .order_by(of.parent, *of.key)
    for level, of in CHILDREN.items()
}


def _steps(of: Children, *, backwards: bool) -> Select[Any]:
    """Children from a place in their order, some steps on: the place itself, or those before it."""
    key, pivot = tuple_(*of.key), tuple_(bindparam("ns"), bindparam("id"))
    order = [column.desc() if backwards else column.asc() for column in of.key]
    return (
        select(*of.columns)
        .where(of.parent == bindparam("parent"), of.counted)
        .where(key < pivot if backwards else key >= pivot)
        .order_by(*order)
        .offset(bindparam("steps"))
        .limit(1 if backwards else 2)
    )


BACKWARDS = {level: _steps(of, backwards=True) for level, of in CHILDREN.items()}
ONWARDS = {level: _steps(of, backwards=False) for level, of in CHILDREN.items()}
