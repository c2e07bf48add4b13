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
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, insert
from sqlmodel import Session

from .rank import Figure, Subject, combine
from .standing_queries import (
    BACKWARDS,
    CHILDREN,
    LOCKED,
    MOVE,
    NEW,
    ONWARDS,
    OWNERS,
    children_of,
    few_children,
    locked,
)
from .standing_rows import (
    ABOVE,
    LEVELS,
    TABLE,
    UNIT_OF_LEVEL,
    Logs,
    columns_of,
    figure,
    figure_of_result,
    standing_values,
    subject_above,
)
from .tables import Measurement, NewRow


class Arrival(NamedTuple):
    """A child as it is now, and as it was before; None where it is new."""

    child: Figure
    before: Figure | None


Arrivals = dict[Subject, list[Arrival]]


def add(session: Session, rows: Iterable[Measurement | NewRow]) -> None:
    """Take new results into the standings they count in; those that do not count are passed over.

    The rows themselves must have been written.
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
                above[subject_above(level, subject)].append(arrival)
        arrivals = above


def refresh(session: Session, rows: Iterable[Measurement | NewRow]) -> None:
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


def _arrive(session: Session, arrivals: Arrivals) -> list[Arrival]:
    """Bring standings up to date with children that are new or have moved.

    Returns:
        These standings, as arrivals of the level above.
    """
    connection = session.connection()
    subjects = {subject.id: subject for subject in arrivals}
    rows = {row.id: row for row in connection.execute(LOCKED, {"ids": sorted(subjects)})}
    children = few_children(connection, rows.values())
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
        middle = read(children[(logs.n - 1) // 2])
        upper = middle if logs.n % 2 else read(children[logs.n // 2])
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
    return found, columns_of(found, (middle.ns_per_sample, middle.id), logs)


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
    middle = read(rows[0])
    return middle, middle if count % 2 else read(rows[-1])


def _refresh(session: Session, level: str, identity: str) -> set[str]:
    """Compute one standing anew from all of its children.

    Returns:
        The standings above it, before and now.
    """
    connection = session.connection()
    row = connection.execute(locked(identity)).first()
    above = {row.parent_id} if row else set()
    found = connection.execute(children_of(level, identity)).all()
    connection.execute(delete(TABLE).where(TABLE.c.id == identity))
    if found:
        children = [CHILDREN[level].read(child) for child in found]
        subject = children[0].subject
        if level == "machine":
            subject = replace(subject, environment_id="")
        elif level != "environment":
            subject = subject_above("machine" if level == "owner" else "owner", subject)
        figure_now = combine(children, UNIT_OF_LEVEL[level], subject)
        values = standing_values(level, figure_now, children)
        connection.execute(insert(TABLE), [values])
        above.add(values["parent_id"])
    return above - {None}
