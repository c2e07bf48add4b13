"""SQL statements of :mod:`.aggregates`, built once."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Integer,
    Select,
    String,
    bindparam,
    insert,
    select,
    true,
    tuple_,
    union_all,
    update,
)

from ..db.bulk import TOGETHER, BulkWrite, among, numbered
from .figures import Figure
from .rows import (
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

# Up to this number, all children are read, for all aggregates at once. With more, the median moves
# along the index.
FEW = 30


class Children(NamedTuple):
    """How to read the children of a level: their parent, which count, their order, the columns of a
    figure, and those of a :class:`.rows.Child`."""

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
    """All children of the aggregates that have up to ``FEW``, as rows that begin with time and id.

    A machine's results are those of its environments, so one query serves both.
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


class Place(NamedTuple):
    """The position of an aggregate's median: it has ``children`` now, ``below`` of them before its
    previous median."""

    row: Any
    children: int
    below: int

    def asked(self) -> dict[str, Any]:
        """The offsets of the one or two middle children from the previous median."""
        first, last = (self.children - 1) // 2, self.children // 2
        last_before, first_onwards = min(last, self.below - 1), max(first, self.below)
        return {
            "parent": self.row.id,
            "ns": self.row.middle_ns,
            "id": self.row.middle_id,
            "skip_before": self.below - 1 - last_before,
            "take_before": max(0, last_before - first + 1),
            "skip": first_onwards - self.below,
            "take": max(0, last - first_onwards + 1),
        }


def middles_of_many(
    connection: Connection, level: str, places: Sequence[Place]
) -> dict[str, tuple[Child, Child]]:
    """The two middle children of each aggregate, by its id; the same one twice if there is one.

    The query walks the index from the previous median, so it reads few rows.
    """
    found: defaultdict[str, list[Child]] = defaultdict(list)
    read = CHILDREN[level].read_child
    for parameters in numbered([place.asked() for place in places]):
        for row in connection.execute(MIDDLES[level], parameters).all():
            found[row.parent].append(read(row))
    return {
        identity: (min(middle, key=_order), max(middle, key=_order))
        for identity, middle in found.items()
    }


def _order(child: Child) -> tuple[float, str]:
    return child.ns_per_sample, child.id


# Statements that every batch runs, built once.
# The columns that an update needs; the new results give the subject.
HELD = select(
    *(TABLE.c[name] for name in ("id", "level", "ns_per_sample", "fastest_ns", "slowest_ns")),
    *(TABLE.c[name] for name in ("children", "middle_ns", "middle_id", "log_mean", "log_m2")),
    *(TABLE.c[name] for name in ("repeats", "machines", "trust_level", "newest_at")),
).where(among(TABLE.c.id, "ids"))
NEW = BulkWrite(insert(TABLE))
MOVE = BulkWrite(
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


def _around(of: Children, number: int) -> list[Select[Any]]:
    """For one of several aggregates: the rows at given offsets before and after its previous
    median."""
    key = tuple_(*of.key)
    middle = tuple_(
        *(
            bindparam(f"{name}_{number}", type_=column.type)
            for name, column in zip(("ns", "id"), of.key, strict=True)
        )
    )
    own = select(of.parent.label("parent"), *of.child_columns).where(
        of.parent == bindparam(f"parent_{number}", type_=String), of.counted
    )
    both = (
        own.where(key < middle)
        .order_by(*(column.desc() for column in of.key))
        .offset(bindparam(f"skip_before_{number}", type_=Integer))
        .limit(bindparam(f"take_before_{number}", type_=Integer)),
        own.where(key >= middle)
        .order_by(*of.key)
        .offset(bindparam(f"skip_{number}", type_=Integer))
        .limit(bindparam(f"take_{number}", type_=Integer)),
    )
    return [select(part.subquery()) for part in both]


def _middles(of: Children) -> CompoundSelect[Any]:
    return union_all(*(part for number in range(TOGETHER) for part in _around(of, number)))


MIDDLES = {level: _middles(CHILDREN[level]) for level in LEVELS}
