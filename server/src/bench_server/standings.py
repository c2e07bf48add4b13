"""Keeps the ``standing`` table: figures of machines, owners and hardware, up to date at ingest.

:func:`add` takes new results in. Each level's median moves by a step or two along an index, so the
cost grows with the logarithm of the results there are, not with their number. :func:`refresh`
computes anew, by :func:`.rank.combine`, where results ceased to count, count again, or changed
their owner or trust. Both give the same rows; a property test holds them to it.

Rows are taken in one order (from below upwards, then by id), so that writers on PostgreSQL wait for
each other and never in a circle. Two that make the same new row meet in its key: the second is to
be repeated.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    delete,
    insert,
    select,
    true,
    tuple_,
    update,
)
from sqlmodel import Session

from bench_protocol.verdicts import LogSample

from .rank import Evidence, Figure, Setup, Subject, Unit, combine
from .tables import Measurement, Standing

TABLE = Standing.__table__  # type: ignore[attr-defined]
RESULTS = Measurement.__table__  # type: ignore[attr-defined]
# A level's children: what each is called where it is counted.
UNIT_OF_LEVEL: dict[str, Unit] = {
    "environment": "repeats",
    "machine": "repeats",
    "owner": "machines",
    "hardware": "owners",
}
LEVELS = tuple(UNIT_OF_LEVEL)
RESULT_COLUMNS = (
    *("submission_id", "owner", "machine_id", "environment_id", "hardware", "hardware_slug"),
    *("workload", "workload_digest", *Setup._fields, "received_at", "trust_level"),
    *("ns_per_sample", "spread", "accuracy", "joules_per_sample", "energy_scope"),
)
ABOVE = {"machine": "owner", "owner": "hardware"}
# So many children are read whole, those of all standings in one statement; among more the median
# moves along the index, in statements of its own.
FEW = 30


class Arrival(NamedTuple):
    """A child as it is now, and as it was before; None where it is new."""

    child: Figure
    before: Figure | None


Arrivals = dict[Subject, list[Arrival]]


def add(session: Session, rows: Iterable[Measurement]) -> None:
    """Take new results into the standings they count in; those that do not count are passed over.

    The rows themselves must have been flushed.
    """
    arrivals: Arrivals = defaultdict(list)
    for row in rows:
        if row.rankable:
            arrival = Arrival(figure_of_result(row), None)
            whole = arrival.child.subject
            arrivals[whole].append(arrival)
            arrivals[replace(whole, environment_id="")].append(arrival)
    while arrivals:
        above: Arrivals = defaultdict(list)
        for arrival in _arrive(session, arrivals):
            subject, level = arrival.child.subject, arrival.child.subject.level
            if level in ABOVE:
                above[_above(level, subject)].append(arrival)
        arrivals = above


def refresh(session: Session, rows: Iterable[Measurement]) -> None:
    """Compute the standings of these results' machines anew, and those above them.

    To be called in the transaction that changed ``rankable``, ``owner`` or ``trust_level`` of the
    rows, after a flush.
    """
    session.flush()
    ids: dict[str, set[str]] = {level: set() for level in LEVELS}
    for row in rows:
        ids["environment"].add(row.environment_standing)
        ids["machine"].add(row.machine_standing)
    for level in LEVELS:
        for identity in sorted(ids[level]):
            ids[ABOVE.get(level, level)] |= _refresh(session, level, identity)


def owner_times(session: Session, places: Iterable[str]) -> dict[str, dict[str, float]]:
    """Nanoseconds per sample of each owner, one value each, by :func:`place`."""
    found: dict[str, dict[str, float]] = {place: {} for place in places}
    for row in session.connection().execute(OWNERS, {"parents": list(found)}):
        found[row.parent_id][row.owner] = row.ns_per_sample
    return found


def place(result: Measurement) -> str:
    """Id of the standing of a result's hardware in its set-up."""
    whole = subject_of_result(result)
    return replace(whole, owner="", machine_id="", environment_id="").id


def subject_of_result(row: Measurement) -> Subject:
    """Whose figure a result is, in its environment."""
    return Subject(
        hardware=row.hardware,
        hardware_slug=row.hardware_slug,
        workload=row.workload,
        workload_digest=row.workload_digest,
        setup=Setup._make(getattr(row, name) for name in Setup._fields),
        owner=row.owner,
        machine_id=row.machine_id,
        environment_id=row.environment_id,
    )


def figure_of_result(row: Any) -> Figure:
    """A measured result as a figure of one repeat, whether it counts or not."""
    time = row.ns_per_sample
    return Figure(
        id=row.submission_id,
        subject=subject_of_result(row),
        ns_per_sample=time,
        fastest_ns=time,
        slowest_ns=time,
        values=LogSample(1, math.log(time), 0.0),
        unit="repeats",
        repeats=1,
        machines=1,
        owners=1,
        trust_level=row.trust_level,
        newest_at=row.received_at,
        evidence=Evidence(
            row.submission_id,
            row.spread or 0.0,
            row.accuracy,
            row.joules_per_sample,
            row.energy_scope,
        ),
    )


def figure(row: Any) -> Figure:
    """A row of the table as a figure."""
    return Figure(
        id=row.id,
        subject=Subject(
            row.hardware,
            row.hardware_slug,
            row.workload,
            row.workload_digest,
            Setup(row.framework, row.device, row.recipe, row.batch_size, row.precision, row.data),
            row.owner,
            row.machine_id,
            row.environment_id,
        ),
        ns_per_sample=row.ns_per_sample,
        fastest_ns=row.fastest_ns,
        slowest_ns=row.slowest_ns,
        values=LogSample(row.value_count, row.value_log_mean, row.value_log_variance),
        unit=row.value_unit,
        repeats=row.repeats,
        machines=row.machines,
        owners=row.owners,
        trust_level=row.trust_level,
        newest_at=row.newest_at,
        evidence=Evidence(
            row.result_id, row.spread, row.accuracy, row.joules_per_sample, row.energy_scope
        ),
        published=row.level == "published",
    )


def standing_values(level: str, found: Figure, children: Sequence[Figure]) -> dict[str, Any]:
    """The columns of a figure that was combined from these children."""
    ordered = sorted(children, key=lambda child: (child.ns_per_sample, child.id))
    middle = ordered[(len(ordered) - 1) // 2]
    own = LogSample.of([child.ns_per_sample for child in ordered])
    logs = Logs(own.n, own.mean, own.variance * (own.n - 1))
    key = (middle.ns_per_sample, middle.id)
    return _identity(level, found.subject) | _columns(found, key, logs)


def _above(level: str, subject: Subject) -> Subject:
    owner = subject.owner if level == "machine" else ""
    return replace(subject, machine_id="", environment_id="", owner=owner)


def _identity(level: str, subject: Subject) -> dict[str, Any]:
    fields = {name: getattr(subject, name) for name in Subject.__slots__ if name != "setup"}
    parent = _above(level, subject).id if level in ABOVE else None
    return {
        "id": subject.id,
        "level": level,
        "parent_id": parent,
        **fields,
        **subject.setup._asdict(),
    }


def _columns(found: Figure, middle: tuple[float, str], logs: "Logs") -> dict[str, Any]:
    return {
        "ns_per_sample": found.ns_per_sample,
        "fastest_ns": found.fastest_ns,
        "slowest_ns": found.slowest_ns,
        "children": logs.n,
        "middle_ns": middle[0],
        "middle_id": middle[1],
        "log_mean": logs.mean,
        "log_m2": logs.m2,
        "value_unit": found.unit,
        "value_count": found.values.n,
        "value_log_mean": found.values.mean,
        "value_log_variance": found.values.variance,
        "repeats": found.repeats,
        "machines": found.machines,
        "owners": found.owners,
        "trust_level": found.trust_level,
        "newest_at": found.newest_at,
        "result_id": found.evidence.result_id,
        "spread": found.evidence.spread,
        "accuracy": found.evidence.accuracy,
        "joules_per_sample": found.evidence.joules_per_sample,
        "energy_scope": found.evidence.energy_scope,
    }


def _arrive(session: Session, arrivals: Arrivals) -> list[Arrival]:
    """Bring standings up to date with children that are new or have moved.

    Returns:
        These standings, as arrivals of the level above.
    """
    connection = session.connection()
    subjects = {subject.id: subject for subject in arrivals}
    rows = {row.id: row for row in connection.execute(LOCKED, {"ids": sorted(subjects)})}
    children = _few_children(connection, rows.values())
    made, moved, done = [], [], []
    for identity, subject in sorted(subjects.items()):
        own = arrivals[subject]
        if identity not in rows:
            figures = [arrival.child for arrival in own]
            found = combine(figures, UNIT_OF_LEVEL[subject.level], subject)
            made.append(standing_values(subject.level, found, figures))
            done.append(Arrival(found, None))
            continue
        before = figure(rows[identity])
        found, columns = _moved(connection, before, rows[identity], own, children.get(identity))
        moved.append(columns | {"identity": identity})
        done.append(Arrival(found, before))
    if made:
        connection.execute(NEW, made)
    if moved:
        connection.execute(MOVE, moved)
    return done


def _moved(
    connection: Connection,
    old: Figure,
    row: Any,
    arrivals: list[Arrival],
    children: list[Any] | None,
) -> tuple[Figure, dict[str, Any]]:
    """A standing after its arrivals, and its columns. ``children``: its rows as they are now, in
    their order, where they are few; else the middle is found from where it was."""
    logs = Logs(row.children, row.log_mean, row.log_m2)
    pivot = (row.middle_ns, row.middle_id)
    below = (row.children - 1) // 2
    for child, before in arrivals:
        if before is not None:
            below -= (before.ns_per_sample, child.id) < pivot
            logs = logs.without(math.log(before.ns_per_sample))
        below += (child.ns_per_sample, child.id) < pivot
        logs = logs.plus(math.log(child.ns_per_sample))
    if children is None:
        middle, upper = _middle(connection, row, logs.n, below)
    else:
        read = CHILDREN[row.level].read
        middle, upper = read(children[(logs.n - 1) // 2]), read(children[logs.n // 2])
    unit = UNIT_OF_LEVEL[row.level]
    alone = logs.n == 1 and unit != "repeats"
    found = replace(
        old,
        ns_per_sample=(middle.ns_per_sample + upper.ns_per_sample) / 2,
        fastest_ns=min(old.fastest_ns, *(a.child.fastest_ns for a in arrivals)),
        slowest_ns=max(old.slowest_ns, *(a.child.slowest_ns for a in arrivals)),
        values=middle.values if alone else logs.sample,
        unit=middle.unit if alone else unit,
        repeats=old.repeats + sum(_more(a, "repeats") for a in arrivals),
        machines=old.machines + sum(_more(a, "machines") for a in arrivals)
        if unit != "repeats"
        else 1,
        owners=logs.n if unit == "owners" else 1,
        trust_level=min(old.trust_level, *(a.child.trust_level for a in arrivals)),
        newest_at=max(old.newest_at, *(a.child.newest_at for a in arrivals)),
        evidence=middle.evidence,
    )
    return found, _columns(found, (middle.ns_per_sample, middle.id), logs)


def _more(arrival: Arrival, name: str) -> int:
    before = getattr(arrival.before, name) if arrival.before else 0
    return int(getattr(arrival.child, name)) - before


def _middle(connection: Connection, row: Any, count: int, below: int) -> tuple[Figure, Figure]:
    """The two children in the middle, twice the same where their number is odd.

    ``below`` children stand before the middle of the row, so it takes only the difference in steps.
    """
    read = CHILDREN[row.level].read
    place = (count - 1) // 2
    start = {"parent": row.id, "ns": row.middle_ns, "id": row.middle_id}
    if place < below:
        steps = BACKWARDS[row.level]
        child = read(connection.execute(steps, start | {"steps": below - 1 - place}).one())
        start |= {"ns": child.ns_per_sample, "id": child.id}
        below = place
    onwards = connection.execute(ONWARDS[row.level], start | {"steps": place - below})
    rows = onwards.all()
    first, last = rows[0], rows[-1 if count % 2 == 0 else 0]
    return read(first), read(last)


def _refresh(session: Session, level: str, identity: str) -> set[str]:
    """Compute one standing anew from all of its children.

    Returns:
        The standings above it, before and now.
    """
    connection = session.connection()
    row = connection.execute(_locked(identity)).first()
    above = {row.parent_id} if row else set()
    found = connection.execute(_children(level, identity)).all()
    connection.execute(delete(TABLE).where(TABLE.c.id == identity))
    if found:
        children = [CHILDREN[level].read(child) for child in found]
        subject = children[0].subject
        if level == "machine":
            subject = replace(subject, environment_id="")
        elif level != "environment":
            subject = _above("machine" if level == "owner" else "owner", subject)
        figure_now = combine(children, UNIT_OF_LEVEL[level], subject)
        values = standing_values(level, figure_now, children)
        connection.execute(insert(TABLE), [values])
        above.add(values["parent_id"])
    return above - {None}


class Logs(NamedTuple):
    """Count, mean and squared deviations of logarithms, one value more or less at a time.

    Welford, Note on a method for calculating corrected sums of squares and products (1962).
    """

    n: int
    mean: float
    m2: float

    @property
    def sample(self) -> LogSample:
        return LogSample(self.n, self.mean, self.m2 / (self.n - 1) if self.n > 1 else 0.0)

    def plus(self, value: float) -> "Logs":
        mean = self.mean + (value - self.mean) / (self.n + 1)
        return Logs(self.n + 1, mean, self.m2 + (value - self.mean) * (value - mean))

    def without(self, value: float) -> "Logs":
        if self.n == 1:
            return Logs(0, 0.0, 0.0)
        mean = self.mean - (value - self.mean) / (self.n - 1)
        return Logs(self.n - 1, mean, max(self.m2 - (value - self.mean) * (value - mean), 0.0))


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


def _children(level: str, identity: str) -> Select[Any]:
    of = CHILDREN[level]
    return select(*of.columns).where(of.parent == identity, of.counted).order_by(*of.key)


def _few_children(connection: Connection, rows: Iterable[Any]) -> dict[str, list[Any]]:
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


def _locked(identity: str) -> Select[Any]:
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
