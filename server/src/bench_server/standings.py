"""Keeps the ``standing`` table: figures of machines, owners and hardware, up to date at ingest.

:func:`add` takes new results in. Each level's median moves by a step or two along an index, so the
cost grows with the logarithm of the results there are, not with their number. :func:`refresh`
computes anew, by :func:`.rank.combine`, where results ceased to count, count again, or changed
their owner or trust. Both give the same rows; a property test holds them to it.

Rows are taken in one order (level, then id), so that writers on PostgreSQL wait for each other and
never in a circle. Two that make the same new row meet in its key: the second is to be repeated.
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


def add(session: Session, rows: Iterable[Measurement]) -> None:
    """Take new results into the standings they count in; those that do not count are passed over.

    The rows themselves must have been flushed.
    """
    arrivals: dict[str, dict[Subject, list[Arrival]]] = {
        level: defaultdict(list) for level in LEVELS
    }
    for row in rows:
        if row.rankable:
            arrival = Arrival(figure_of_result(row), None)
            whole = arrival.child.subject
            arrivals["machine"][replace(whole, environment_id="")].append(arrival)
            arrivals["environment"][whole].append(arrival)
    for level in LEVELS:
        for arrival in _arrive(session, level, arrivals[level]):
            if level in ABOVE:
                arrivals[ABOVE[level]][_above(level, arrival.child.subject)].append(arrival)


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


def owner_times(session: Session, result: Measurement) -> dict[str, float]:
    """Nanoseconds per sample of each owner on a result's hardware in its set-up, one value each."""
    whole = replace(subject_of_result(result), owner="", machine_id="", environment_id="")
    query = select(TABLE.c.owner, TABLE.c.ns_per_sample).where(TABLE.c.parent_id == whole.id)
    return {row.owner: row.ns_per_sample for row in session.connection().execute(query)}


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


def _arrive(session: Session, level: str, arrivals: dict[Subject, list[Arrival]]) -> list[Arrival]:
    """Bring standings of one level up to date with children that are new or have moved.

    Returns:
        These standings, as arrivals of the level above.
    """
    connection = session.connection()
    subjects = sorted((subject.id, subject) for subject in arrivals)
    ids = [identity for identity, _ in subjects]
    rows = {row.id: row for row in connection.execute(LOCKED, {"ids": ids})} if ids else {}
    few = [i for i, row in rows.items() if row.children <= FEW]
    children = _children_of(connection, level, few) if few else {}
    made, moved, done = [], [], []
    for identity, subject in subjects:
        own = arrivals[subject]
        if identity not in rows:
            found = combine([arrival.child for arrival in own], UNIT_OF_LEVEL[level], subject)
            made.append(standing_values(level, found, [arrival.child for arrival in own]))
            done.append(Arrival(found, None))
            continue
        before = figure(rows[identity])
        found, columns = _moved(session, level, rows[identity], own, children.get(identity))
        moved.append(columns | {"identity": identity})
        done.append(Arrival(found, before))
    if made:
        connection.execute(insert(TABLE), made)
    if moved:
        connection.execute(MOVE, moved)
    return done


def _moved(
    session: Session, level: str, row: Any, arrivals: list[Arrival], children: list[Any] | None
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
        middle, upper = _middle(session, level, row.id, logs.n, below, pivot)
    else:
        read = CHILDREN[level].read
        middle, upper = read(children[(logs.n - 1) // 2]), read(children[logs.n // 2])
    old, unit = figure(row), UNIT_OF_LEVEL[level]
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


def _middle(
    session: Session, level: str, identity: str, count: int, below: int, pivot: tuple[float, str]
) -> tuple[Figure, Figure]:
    """The two children in the middle, twice the same where their number is odd.

    ``below`` children stand before ``pivot``, so it takes only the difference in steps.
    """
    place = (count - 1) // 2
    key = tuple_(*CHILDREN[level].key)
    if place < below:
        before = key < pivot
        steps = _children(level, identity, backwards=True).where(before).offset(below - 1 - place)
        found = session.connection().execute(steps.limit(1)).one()
        pivot, below = _key(level, found), place
    onwards = _children(level, identity).where(key >= pivot).offset(place - below).limit(2)
    rows = session.connection().execute(onwards).all()
    first, last = rows[0], rows[-1 if count % 2 == 0 else 0]
    read = CHILDREN[level].read
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


def _children(level: str, identity: str, *, backwards: bool = False) -> Select[Any]:
    of = CHILDREN[level]
    order = [column.desc() if backwards else column.asc() for column in of.key]
    return select(*of.columns).where(of.parent == identity, of.counted).order_by(*order)


def _children_of(connection: Connection, level: str, ids: list[str]) -> dict[str, list[Any]]:
    """All children of several standings, each one's in their order."""
    found: dict[str, list[Any]] = {identity: [] for identity in ids}
    for row in connection.execute(CHILDREN_OF[level], {"ids": ids}):
        found[row.parent].append(row)
    return found


def _key(level: str, row: Any) -> tuple[float, str]:
    child = CHILDREN[level].read(row)
    return child.ns_per_sample, child.id


def _locked(identity: str) -> Select[Any]:
    return select(TABLE).where(TABLE.c.id == identity).with_for_update()


# Statements of every ingest, put together once.
LOCKED = (
    select(TABLE)
    .where(TABLE.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(TABLE.c.id)
    .with_for_update()
)
MOVE = update(TABLE).where(TABLE.c.id == bindparam("identity"))
CHILDREN_OF = {
    level: select(of.parent.label("parent"), *of.columns)
    .where(of.parent.in_(bindparam("ids", expanding=True)), of.counted)
    .order_by(of.parent, *of.key)
    for level, of in CHILDREN.items()
}
