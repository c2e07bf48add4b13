"""Read the children of stored aggregates: sums, the one in the middle, and their range.

The database adds up the children of each parent by kind of owner and disturbance. The one in the
middle is found among the ids and times of all if they are few; else the database skips to it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Row,
    Select,
    String,
    Subquery,
    bindparam,
    cast,
    func,
    literal,
    select,
    true,
)

from ..db.lists import among
from .figures import Figure, Level
from .medians import LOG_SCALE, Children, counting
from .owners import OwnerCounts
from .rows import FIGURE_COLUMNS, RESULT_COLUMNS, RESULTS, TABLE, figure, figure_of_result
from .spread import Range, range_ends

# Up to this number, ids and times of all children are read to find the middle; with more, the
# database skips to it, if all of a kind count.
FEW = 200
TRUST_LEVELS = (4, 3, 2, 1, 0)
# These columns of a table are none of its children's.
UNNAMED = ("ranked", "figure_columns", "figure")


class ChildTable(NamedTuple):
    """How to read the children of a level: their parent and id, which of them are ranked, the kind
    of their owner and whether it is the first of its area (both matter among owners alone), whether
    they were disturbed, the columns that are summed (constants for results, which are one repeat
    each), and how to read a middle one."""

    parent: ColumnElement[str]
    id: ColumnElement[str]
    ranked: ColumnElement[bool]
    kind: ColumnElement[int]
    first: ColumnElement[bool]
    disturbed: ColumnElement[bool]
    time: ColumnElement[float]
    fastest: ColumnElement[float]
    slowest: ColumnElement[float]
    repeats: ColumnElement[int]
    runs: ColumnElement[int]
    machines: ColumnElement[int]
    left_out: ColumnElement[int]
    trust_level: ColumnElement[int]
    newest_at: ColumnElement[Any]
    figure_columns: tuple[ColumnElement[Any], ...]
    figure: Callable[[Any], Figure]


_R, _A = RESULTS.c, TABLE.c
CHILD_RESULTS = ChildTable(
    *(_R.run_aggregate, _R.submission_id, _R.rankable, literal(0), true(), _R.disturbed),
    *(_R.ns_per_sample, _R.ns_per_sample, _R.ns_per_sample),
    *(literal(1), literal(1), literal(1), literal(0), _R.trust_level, _R.received_at),
    figure_columns=RESULT_COLUMNS,
    figure=figure_of_result,
)
CHILD_AGGREGATES = ChildTable(
    *(_A.parent_id, _A.id, true(), literal(0), true(), _A.disturbed),
    *(_A.ns_per_sample, _A.fastest_ns, _A.slowest_ns),
    *(_A.repeats, _A.runs, _A.machines, _A.left_out, _A.trust_level, _A.newest_at),
    figure_columns=FIGURE_COLUMNS,
    figure=figure,
)
CHILD_OWNERS = CHILD_AGGREGATES._replace(
    kind=_A.owner_kind,
    first=func.row_number().over(
        partition_by=(_A.parent_id, func.coalesce(cast(_A.area, String), _A.id)),
        order_by=(_A.disturbed, _A.ns_per_sample, _A.id),
    )
    == 1,
)
CHILDREN: Mapping[Level, ChildTable] = {
    "run": CHILD_RESULTS,
    "machine": CHILD_AGGREGATES,
    "owner": CHILD_AGGREGATES,
    "hardware": CHILD_OWNERS,
}


def children_of(
    connection: Connection, table: ChildTable, parents: Iterable[str]
) -> dict[str, Children]:
    """Summaries of the children of each parent that has any, by the parents' ids."""
    groups = _groups(connection.execute(sums(table), {"ids": list(parents)}).all())
    places = _places(connection, table, groups)
    ids = [place.middle_id for place in places.values()]
    rows = connection.execute(_middles(table), {"ids": ids}) if ids else ()
    middles = {middle.id: middle for middle in map(table.figure, rows)}
    return {
        parent: group.children(places[parent], middles[places[parent].middle_id])
        for parent, group in groups.items()
    }


class Group:
    """Sums of a parent's children, in groups of one kind and disturbance, and of those that are the
    first of their area. ``counted``: those of the deciding owners, the undisturbed ones if there
    are any, as :meth:`.medians.Children.of`."""

    def __init__(self, parent: str, sums: Sequence[Row[Any]]) -> None:
        self.parent = parent
        self.owners = OwnerCounts.add_up((row.kind, row.number) for row in sums)
        deciding = [row for row in sums if self._decides(row)]
        self.counted = counting(deciding)
        self.disturbed = bool(self.counted[0].disturbed)
        # Below a disturbed child all is disturbed, so nothing is left out there.
        others = [] if self.disturbed else [row for row in deciding if row.disturbed]
        self.left_out = self.sum("left_out") + sum(int(row.repeats) for row in others)

    def sum(self, column: str) -> int:
        return sum(int(row._mapping[column]) for row in self.counted)

    def counts(self, row: Row[Any]) -> bool:
        return bool(row.disturbed == self.disturbed and self._decides(row))

    def _decides(self, row: Row[Any]) -> bool:
        return bool(row.kind <= self.owners.deciding and (row.first or self.owners.older))

    def children(self, place: "Place", middle: Figure) -> Children:
        count = self.sum("number")
        return Children(
            count=count,
            owners=self.owners,
            disturbed=self.disturbed,
            left_out=self.left_out,
            fastest_ns=min(row.fastest for row in self.counted),
            slowest_ns=max(row.slowest for row in self.counted),
            repeats=self.sum("repeats"),
            runs=self.sum("runs"),
            machines=self.sum("machines"),
            trust_level=next(
                level for level in TRUST_LEVELS if 2 * self.sum(f"trust_{level}") > count
            ),
            newest_at=max(row.newest_at for row in self.counted),
            log_sum=self.sum("log_sum"),
            log_square_sum=self.sum("log_square_sum"),
            range=place.range,
            middle=middle,
        )


class Place(NamedTuple):
    """The id of the child in the middle, and the range of those that count."""

    middle_id: str
    range: Range


def _groups(sums: Iterable[Row[Any]]) -> dict[str, Group]:
    of_parent: defaultdict[str, list[Row[Any]]] = defaultdict(list)
    for row in sums:
        of_parent[row.parent].append(row)
    return {parent: Group(parent, rows) for parent, rows in of_parent.items()}


def _places(
    connection: Connection, table: ChildTable, groups: Mapping[str, Group]
) -> dict[str, Place]:
    """The middle of each parent's children, and their range."""
    few = [
        parent
        for parent, group in groups.items()
        if group.owners.total <= FEW or not group.owners.older
    ]
    ordered: dict[str, list[Row[Any]]] = {parent: [] for parent in few}
    for row in connection.execute(_ordered(table), {"ids": few}) if few else ():
        if groups[row.parent].counts(row):
            ordered[row.parent].append(row)
    places = {parent: _place_among(children) for parent, children in ordered.items()}
    for parent in groups.keys() - set(few):
        places[parent] = _place_of_many(connection, table, groups[parent])
    return places


def _place_among(children: Sequence[Row[Any]]) -> Place:
    fastest, slowest = range_ends(len(children))
    middle = children[len(children) // 2]
    return Place(middle.id, Range(children[fastest].time, children[slowest].time))


def _place_of_many(connection: Connection, table: ChildTable, group: Group) -> Place:
    """The place among many children, no new owners: the database skips to each that is needed."""
    those = {
        "parent": group.parent,
        "disturbed": group.disturbed,
        "deciding": group.owners.deciding,
    }
    count = group.sum("number")
    fastest, slowest, middle = (
        connection.execute(skipped_to(table), {**those, "skip": number}).one()
        for number in (*range_ends(count), count // 2)
    )
    return Place(middle.id, Range(fastest.time, slowest.time))


# -- statements, each built once -------------------------------------------------------------------


def _children(c: ChildTable, which: ColumnElement[bool]) -> Subquery:
    columns = {name: getattr(c, name) for name in ChildTable._fields if name not in UNNAMED}
    named = (column.label(name) for name, column in columns.items())
    return select(*named).where(which, c.ranked).subquery()


@cache
def sums(c: ChildTable) -> Executable:
    of = _children(c, among(c.parent, "ids")).c
    log = cast(func.round(func.ln(of.time) * LOG_SCALE), BigInteger)
    groups = (of.parent, of.disturbed, of.kind, of.first)
    return select(
        *groups,
        func.count().label("number"),
        func.min(of.fastest).label("fastest"),
        func.max(of.slowest).label("slowest"),
        func.sum(of.repeats).label("repeats"),
        func.sum(of.runs).label("runs"),
        func.sum(of.machines).label("machines"),
        func.sum(of.left_out).label("left_out"),
        *(
            func.sum(cast(of.trust_level >= level, Integer)).label(f"trust_{level}")
            for level in TRUST_LEVELS
        ),
        func.max(of.newest_at).label("newest_at"),
        func.sum(log).label("log_sum"),
        func.sum(log * log).label("log_square_sum"),
    ).group_by(*groups)


@cache
def _ordered(c: ChildTable) -> Executable:
    of = _children(c, among(c.parent, "ids")).c
    return select(of.parent, of.id, of.time, of.disturbed, of.kind, of.first).order_by(
        of.parent, of.time, of.id
    )


@cache
def skipped_to(c: ChildTable) -> Executable:
    """One of the children that count where no new owners decide."""
    return (
        select(c.id.label("id"), c.time.label("time"))
        .where(
            *(c.parent == bindparam("parent"), c.ranked),
            c.disturbed == bindparam("disturbed", type_=Boolean),
            c.kind <= bindparam("deciding", type_=Integer),
        )
        .order_by(c.time, c.id)
        .limit(1)
        .offset(bindparam("skip", type_=Integer))
    )


@cache
def _middles(c: ChildTable) -> Select[Any]:
    return select(*c.figure_columns).where(among(c.id, "ids"))
