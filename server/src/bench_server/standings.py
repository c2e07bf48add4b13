"""Keeps the ``standing`` table: figures of machines, owners and hardware, up to date at ingest.

:func:`add` takes new results in. Each level's median moves by a step or two along an index, so the
cost grows with the logarithm of the results there are, not with their number. :func:`refresh`
computes anew, by :func:`.rank.combine`, where results ceased to count, count again, or changed
their owner or trust. Both give the same rows; a property test holds them to it.

Whoever writes here has the log's turn (:func:`.log.take_turn`), so no two do at a time.
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
    HELD,
    MOVE,
    NEW,
    ONWARDS,
    OWNERS,
    children_of,
    few_children,
)
from .standing_rows import (
    ABOVE,
    LEVELS,
    TABLE,
    UNIT_OF_LEVEL,
    Child,
    Logs,
    at_level,
    child_of_figure,
    columns_of,
    figure,
    figure_of_result,
    standing_values,
)
from .tables import Measurement, NewRow


class Arrival(NamedTuple):
    """A child as it is now, and as it was before; None where it is new."""

    child: Figure
    before: Figure | None


Arrivals = dict[Subject, list[Arrival]]


def add(session: Session, rows: Iterable[Measurement | NewRow]) -> None:
    """Take new results into the standings they count in; those that do not count are passed over.

    The rows themselves must have been written. The standings of all levels are read at once, moved
    from below upwards, and written at once.
    """
    counted = [figure_of_result(row) for row in rows if row.rankable]
    arrivals: dict[str, Arrivals] = {level: defaultdict(list) for level in LEVELS}
    ids = set()
    for result in counted:
        ids |= {at_level(level, result.subject).id for level in LEVELS}
        for level in ("environment", "machine"):
            arrivals[level][at_level(level, result.subject)].append(Arrival(result, None))
    if not counted:
        return
    held = Standings(session.connection(), ids)
    for level in LEVELS:
        for subject, own in arrivals[level].items():
            arrival = held.take(subject, own)
            if level in ABOVE:
                above = ABOVE[level]
                arrivals[above][at_level(above, subject)].append(arrival)
    held.write()


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
    """Nanoseconds per sample of each owner, one value each by the id of its standing, by the
    hardware's (:func:`.standing_rows.place`)."""
    found: dict[str, dict[str, float]] = {place: {} for place in places}
    for place, owner, time in session.connection().execute(OWNERS, {"parents": list(found)}):
        found[place][owner] = time
    return found


class Standings:
    """Standings while results are taken in: read at once, moved in memory, written at once."""

    def __init__(self, connection: Connection, ids: Iterable[str]) -> None:
        self._connection = connection
        self._rows = {row.id: row for row in connection.execute(HELD, {"ids": list(ids)})}
        self._children = few_children(connection, self._rows.values())
        self._new: list[dict[str, Any]] = []
        self._moved: list[dict[str, Any]] = []

    def take(self, subject: Subject, arrivals: list[Arrival]) -> Arrival:
        """Bring one up to date with children that are new or have moved.

        Returns:
            It, as an arrival of the level above.
        """
        row, level = self._rows.get(subject.id), subject.level
        if row is None:
            children = [arrival.child for arrival in arrivals]
            found = combine(children, UNIT_OF_LEVEL[level], subject)
            self._new.append(standing_values(level, found, children))
            return Arrival(found, None)
        before = figure(row)
        found, columns = self._after(row, before, arrivals)
        self._moved.append(columns | {"identity": subject.id})
        return Arrival(found, before)

    def write(self) -> None:
        """Write what is not written yet."""
        if self._new:
            self._connection.execute(NEW, self._new)
        if self._moved:
            self._connection.execute(MOVE, self._moved)
        self._new, self._moved = [], []

    def _after(
        self, row: Any, old: Figure, arrivals: list[Arrival]
    ) -> tuple[Figure, dict[str, Any]]:
        """A standing after its arrivals, and its columns."""
        logs = Logs(row.children, row.log_mean, row.log_m2)
        pivot = (row.middle_ns, row.middle_id)
        below = (row.children - 1) // 2
        for child, before in arrivals:
            if before is not None:
                below -= (before.ns_per_sample, child.id) < pivot
                logs = logs.without(math.log(before.ns_per_sample))
            below += (child.ns_per_sample, child.id) < pivot
            logs = logs.plus(math.log(child.ns_per_sample))
        unit = UNIT_OF_LEVEL[row.level]
        if row.id in self._children:
            middle, upper = self._middle_of_few(row, arrivals)
        else:
            if unit != "repeats":
                self.write()  # the children are standings that may just have moved
            middle, upper = _middle(self._connection, row, logs.n, below)
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

    def _middle_of_few(self, row: Any, arrivals: list[Arrival]) -> tuple[Child, Child]:
        """The two children in the middle of those at hand, which may just have moved."""
        moved = {child.id: child_of_figure(child) for child, _ in arrivals}
        children = sorted((self._children[row.id] | moved).values())
        return children[(len(children) - 1) // 2], children[len(children) // 2]


def _more(arrival: Arrival, name: str) -> int:
    before = getattr(arrival.before, name) if arrival.before else 0
    return int(getattr(arrival.child, name)) - before


def _middle(connection: Connection, row: Any, count: int, below: int) -> tuple[Child, Child]:
    """The two children in the middle, found from where it was; twice the same where their number is
    odd.

    ``below`` children stand before the middle of the row, so it takes only the difference in steps.
    """
    read = CHILDREN[row.level].read_child
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
    above = set(
        connection.scalars(delete(TABLE).where(TABLE.c.id == identity).returning(TABLE.c.parent_id))
    )
    found = connection.execute(children_of(level, identity)).all()
    if found:
        children = [CHILDREN[level].read(child) for child in found]
        subject = at_level(level, children[0].subject)
        figure_now = combine(children, UNIT_OF_LEVEL[level], subject)
        values = standing_values(level, figure_now, children)
        connection.execute(insert(TABLE), [values])
        above.add(values["parent_id"])
    return above - {None}
