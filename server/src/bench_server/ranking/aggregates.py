"""Aggregates: the stored figures of runs, machines, owners and hardware (table ``standing``).

:func:`refresh` computes aggregates from all of their children, from the lowest level up. The
database summarises the children and finds the one in the middle, :func:`.figures.combine` makes the
figure. An aggregate depends on nothing but its children and on which owners are confirmed, so
the order of updates does not matter.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
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
from .rows import (
    LEVELS,
    RESULTS,
    TABLE,
    aggregate_columns,
    evidence,
    lineage,
    machines_range,
    sample_of,
    spread_of,
    spread_of_result,
)
from .spread import Range, range_ends

# Up to this number, ids and times of all children are read to find the middle; with more, the
# database skips to it.
FEW = 200
TRUST_LEVELS = (4, 3, 2, 1, 0)
_EVIDENCE = ("accuracy", "joules_per_sample", "energy_scope", "spread")


class ChildTable(NamedTuple):
    """How to read the children of a level: their parent and id, which of them decide, whether they
    were disturbed, the columns that are summed (constants for results, which are one repeat each),
    and how to read a middle one."""

    parent: ColumnElement[str]
    id: ColumnElement[str]
    counted: ColumnElement[bool]
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
    middle_columns: tuple[ColumnElement[Any], ...]
    read_middle: Callable[[Any], Middle]


def _middle_result(row: Any) -> Middle:
    time = row.ns_per_sample
    proof, spread = evidence(row, row.id), spread_of_result(row)
    return Middle(time, "runs", sample_of_one(time), proof, spread, None)


def _middle_aggregate(row: Any) -> Middle:
    return Middle(
        row.ns_per_sample,
        row.value_unit,
        sample_of(row),
        evidence(row, row.result_id),
        spread_of(row),
        machines_range(row.machines_fastest_ns, row.machines_slowest_ns),
    )


_R, _A = RESULTS.c, TABLE.c
CHILD_RESULTS = ChildTable(
    *(_R.run_standing, _R.submission_id, _R.rankable, _R.disturbed),
    *(_R.ns_per_sample, _R.ns_per_sample, _R.ns_per_sample),
    *(literal(1), literal(1), literal(1), literal(0), _R.trust_level, _R.received_at),
    middle_columns=(
        _R.submission_id.label("id"),
        *(_R[name] for name in ("ns_per_sample", *_EVIDENCE)),
    ),
    read_middle=_middle_result,
)
CHILD_AGGREGATES = ChildTable(
    *(_A.parent_id, _A.id, true(), _A.disturbed),
    *(_A.ns_per_sample, _A.fastest_ns, _A.slowest_ns),
    *(_A.repeats, _A.runs, _A.machines, _A.left_out, _A.trust_level, _A.newest_at),
    middle_columns=(
        _A.id,
        *(_A[name] for name in ("ns_per_sample", "value_unit", "value_count")),
        *(_A[name] for name in ("value_log_mean", "value_log_variance", "result_id")),
        *(_A[name] for name in (*_EVIDENCE, "spread_between")),
        *(_A.machines_fastest_ns, _A.machines_slowest_ns),
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
    groups = _groups(connection.execute(_sums(table), {"ids": list(parents)}).all())
    places = _places(connection, table, groups)
    ids = [place.middle_id for place in places.values()]
    rows = connection.execute(_middles(table), {"ids": ids}) if ids else ()
    middles = {row.id: table.read_middle(row) for row in rows}
    return {
        parent: _children(group, places[parent], middles[places[parent].middle_id])
        for parent, group in groups.items()
    }


class Group(NamedTuple):
    """Sums of a parent's children: of those that count, and of the disturbed ones that do not."""

    counted: Row[Any]
    others: Row[Any] | None

    @property
    def total(self) -> int:
        number: int = self.counted.number + (self.others.number if self.others else 0)
        return number


class Place(NamedTuple):
    """The id of the child in the middle, and the range of those that count."""

    middle_id: str
    range: Range


def _groups(sums: Iterable[Row[Any]]) -> dict[str, Group]:
    """As :func:`.figures.counting`, from one row for the undisturbed children of a parent and one
    for the disturbed ones."""
    groups: dict[str, Group] = {}
    for row in sorted(sums, key=lambda row: row.disturbed):
        earlier = groups.get(row.parent)
        groups[row.parent] = Group(earlier.counted, row) if earlier else Group(row, None)
    return groups


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


def _children(group: Group, place: Place, middle: Middle) -> Children:
    row, others = group
    # Below a disturbed child all is disturbed, so nothing is left out there.
    left_out = row.left_out + (others.repeats if others else 0)
    return Children(
        count=row.number,
        total=group.total,
        disturbed=bool(row.disturbed),
        left_out=int(left_out),
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
        range=place.range,
        middle=middle,
    )


def _places(
    connection: Connection, table: ChildTable, groups: Mapping[str, Group]
) -> dict[str, Place]:
    """Where the middle of each parent's children is, and their range."""
    few = [parent for parent, group in groups.items() if group.total <= FEW]
    ordered: dict[str, list[tuple[str, float]]] = {parent: [] for parent in few}
    for row in connection.execute(_ordered(table), {"ids": few}) if few else ():
        if row.disturbed == groups[row.parent].counted.disturbed:
            ordered[row.parent].append((row.id, row.time))
    places = {
        parent: _place(len(children), children.__getitem__) for parent, children in ordered.items()
    }
    for parent in groups.keys() - set(few):
        counted = groups[parent].counted
        places[parent] = _place(counted.number, partial(_nth, connection, table, counted))
    return places


def _place(count: int, child: Callable[[int], tuple[str, float]]) -> Place:
    """From a function that gives id and time of the nth child."""
    fastest, slowest = range_ends(count)
    return Place(child(count // 2)[0], Range(child(fastest)[1], child(slowest)[1]))


def _nth(
    connection: Connection, table: ChildTable, counted: Row[Any], number: int
) -> tuple[str, float]:
    place = {"parent": counted.parent, "disturbed": counted.disturbed, "skip": number}
    row = connection.execute(skipped_to(table), place).one()
    return row.id, row.time


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
            c.disturbed.label("disturbed"),
            func.count().label("number"),
            func.min(c.fastest).label("fastest"),
            func.max(c.slowest).label("slowest"),
            func.sum(c.repeats).label("repeats"),
            func.sum(c.runs).label("runs"),
            func.sum(c.machines).label("machines"),
            func.sum(c.left_out).label("left_out"),
            *(
                func.sum(cast(c.trust_level >= level, Integer)).label(f"trust_{level}")
                for level in TRUST_LEVELS
            ),
            func.max(c.newest_at).label("newest_at"),
            func.sum(log).label("log_sum"),
            func.sum(log * log).label("log_square_sum"),
        )
        .where(among(c.parent, "ids"), c.counted)
        .group_by(c.parent, c.disturbed)
    )


@cache
def _ordered(c: ChildTable) -> Executable:
    return (
        select(
            *(c.parent.label("parent"), c.id.label("id"), c.time.label("time")),
            c.disturbed.label("disturbed"),
        )
        .where(among(c.parent, "ids"), c.counted)
        .order_by(c.parent, c.time, c.id)
    )


@cache
def skipped_to(c: ChildTable) -> Executable:
    return (
        select(c.id.label("id"), c.time.label("time"))
        .where(c.parent == bindparam("parent"), c.counted)
        .where(c.disturbed == bindparam("disturbed", type_=Boolean))
        .order_by(c.time, c.id)
        .limit(1)
        .offset(bindparam("skip", type_=Integer))
    )


@cache
def _middles(c: ChildTable) -> Select[Any]:
    return select(*c.middle_columns).where(among(c.id, "ids"))
