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
from .standing_rows import (
    FIGURE_COLUMNS,
    LEVELS,
    RESULT_COLUMNS,
    RESULTS,
    TABLE,
    Child,
    child_of_result,
    child_of_standing,
    figure,
    figure_of_result,
)
from .statements import Write, among

# So many children are read whole, those of all standings at once; among more the median moves along
# the index, in statements of its own.
FEW = 30


class Children(NamedTuple):
    """Where the children of a level are: what they belong to, which count, their order, and their
    columns: all that make a figure, and those of a :class:`.standing_rows.Child`."""

    parent: ColumnElement[str]
    counted: ColumnElement[bool]
    key: tuple[ColumnElement[Any], ColumnElement[Any]]
    columns: tuple[ColumnElement[Any], ...]
    read: Callable[[Any], Figure]
    child_columns: tuple[ColumnElement[Any], ...]
    read_child: Callable[[Any], Child]


_EVIDENCE = ("spread", "accuracy", "joules_per_sample", "energy_scope")
_RESULT_KEY = (RESULTS.c.ns_per_sample, RESULTS.c.submission_id)
_STANDING_KEY = (TABLE.c.ns_per_sample, TABLE.c.id)
_VALUES = ("value_unit", "value_count", "value_log_mean", "value_log_variance")
_STANDINGS = Children(
    TABLE.c.parent_id,
    true(),
    _STANDING_KEY,
    tuple(TABLE.c),
    figure,
    (*_STANDING_KEY, *(TABLE.c[name] for name in (*_VALUES, "result_id", *_EVIDENCE))),
    child_of_standing,
)


def _results(parent: str) -> Children:
    return Children(
        RESULTS.c[parent],
        RESULTS.c.rankable,
        _RESULT_KEY,
        tuple(RESULTS.c[name] for name in RESULT_COLUMNS),
        figure_of_result,
        (*_RESULT_KEY, *(RESULTS.c[name] for name in _EVIDENCE)),
        child_of_result,
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
    """All children of those standings that have few: rows that begin with their time and id.

    A machine's results are those of its environments: what is read for it serves them too.
    """
    few: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.children <= FEW:
            few[row.level].append(row.id)
    found: defaultdict[str, list[Any]] = defaultdict(list)
    if machines := few["machine"]:
        for row in connection.execute(RESULTS_OF, {"ids": machines}).all():
            found[row.machine_standing].append(row)
            found[row.environment_standing].append(row)
    if others := few["owner"] + few["hardware"]:
        for row in connection.execute(STANDINGS_OF, {"ids": others}).all():
            found[row.parent_id].append(row)
    return dict(found)


# Statements of every ingest, put together once.
# What the arithmetic of an arrival takes; whose a standing is, the arrival knows.
HELD = select(
    *(TABLE.c[name] for name in ("id", "level", "ns_per_sample", "fastest_ns", "slowest_ns")),
    *(TABLE.c[name] for name in ("children", "middle_ns", "middle_id", "log_mean", "log_m2")),
    *(TABLE.c[name] for name in ("repeats", "machines", "trust_level", "newest_at")),
).where(among(TABLE.c.id, "ids"))
NEW = Write(insert(TABLE))
MOVE = Write(
    update(TABLE)
    .where(TABLE.c.id == bindparam("identity"))
    .values({name: bindparam(name) for name in FIGURE_COLUMNS})
)
RESULTS_OF = select(
    *CHILDREN["machine"].child_columns, RESULTS.c.machine_standing, RESULTS.c.environment_standing
).where(among(RESULTS.c.machine_standing, "ids"), RESULTS.c.rankable)
STANDINGS_OF = select(*_STANDINGS.child_columns, TABLE.c.parent_id).where(
    among(TABLE.c.parent_id, "ids")
)


def _steps(of: Children, *, backwards: bool) -> Select[Any]:
    """Children from a place in their order, some steps on: the place itself, or those before it."""
    key, pivot = tuple_(*of.key), tuple_(bindparam("ns"), bindparam("id"))
    order = [column.desc() if backwards else column.asc() for column in of.key]
    return (
        select(*of.child_columns)
        .where(of.parent == bindparam("parent"), of.counted)
        .where(key < pivot if backwards else key >= pivot)
        .order_by(*order)
        .offset(bindparam("steps"))
        .limit(1 if backwards else 2)
    )


BACKWARDS = {level: _steps(CHILDREN[level], backwards=True) for level in LEVELS}
ONWARDS = {level: _steps(CHILDREN[level], backwards=False) for level in LEVELS}
