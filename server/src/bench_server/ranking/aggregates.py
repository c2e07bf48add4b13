"""Aggregates: figures of machines, owners and hardware, updated at ingest (table ``standing``).

:func:`add` adds new results. The median of each level moves by a step or two along an index, so the
cost grows with the logarithm of the number of results. :func:`refresh` recomputes aggregates with
:func:`.figures.combine` when results stop or start to count, or change owner or trust level. Both
give the same rows; a property test compares them.

A writer holds the log's lock (:func:`.writer.take_turn`), so writers never overlap.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection, Row, delete, insert
from sqlmodel import Session

from ..db.tables import Measurement, NewRow
from .aggregates_sql import (
    CHILDREN,
    HELD,
    MOVE,
    NEW,
    Place,
    children_of,
    few_children,
    middles_of_many,
)
from .figures import Figure, Subject, combine
from .rows import (
    ABOVE,
    LEVELS,
    TABLE,
    UNIT_OF_LEVEL,
    Child,
    Logs,
    at_level,
    child_of_figure,
    columns_of,
    figure_of_result,
    lineage,
    standing_values,
)


class InStandings(Protocol):
    """A result, by the ids of its machine's aggregates."""

    @property
    def machine_standing(self) -> str: ...

    @property
    def environment_standing(self) -> str: ...


class NewChild(NamedTuple):
    """A child's new figure, and its row before; None if it is new."""

    child: Figure
    before: Row[Any] | None


class Level(NamedTuple):
    """New children of the aggregates of one level, and the aggregates' subjects, by id."""

    subjects: dict[str, Subject]
    arrivals: defaultdict[str, list[NewChild]]


class Moved(NamedTuple):
    """The sums of an aggregate after an update. ``below``: children before its previous median."""

    logs: Logs
    below: int
    repeats: int
    machines: int


def add(session: Session, rows: Iterable[Measurement | NewRow]) -> None:
    """Add new results to their aggregates; unranked results are skipped.

    The rows themselves must be written already. The aggregates of all levels are read at once,
    updated from the lowest level up, and written at once.
    """
    counted = [row for row in rows if row.rankable]
    if not counted:
        return
    levels = {level: Level({}, defaultdict(list)) for level in LEVELS}
    above: dict[str, str] = {}
    for row in counted:
        keys = lineage(row)
        for level, (identity, subject) in keys.items():
            levels[level].subjects[identity] = subject
        for level, over in ABOVE.items():
            above[keys[level].id] = keys[over].id
        for level in ("environment", "machine"):
            levels[level].arrivals[keys[level].id].append(NewChild(figure_of_result(row), None))
    held = Aggregates(session.connection(), [id for of in levels.values() for id in of.subjects])
    for level, of in levels.items():
        for arrival in held.take(level, of):
            if level in ABOVE:
                levels[ABOVE[level]].arrivals[above[arrival.child.id]].append(arrival)
    held.write()


def refresh(session: Session, rows: Iterable[InStandings]) -> None:
    """Recompute the aggregates of these results' machines, and those above them.

    Call it in the transaction that changed ``rankable``, ``owner`` or ``trust_level`` of the rows.
    """
    session.flush()
    ids: dict[str, set[str]] = {level: set() for level in LEVELS}
    for row in rows:
        ids["environment"].add(row.environment_standing)
        ids["machine"].add(row.machine_standing)
    for level in LEVELS:
        for identity in sorted(ids[level]):
            ids[ABOVE.get(level, level)] |= _refresh(session, level, identity)


class Aggregates:
    """Aggregates during an update: read at once, updated in memory, written at once."""

    def __init__(self, connection: Connection, ids: list[str]) -> None:
        self._connection = connection
        self._rows = {row.id: row for row in connection.execute(HELD, {"ids": ids}).all()}
        self._children = few_children(connection, self._rows.values())
        self._new: list[dict[str, Any]] = []
        self._moved: list[dict[str, Any]] = []

    def take(self, level: str, of: Level) -> list[NewChild]:
        """Update the aggregates of a level with new or changed children.

        Returns:
            The updated aggregates, as children of the level above.
        """
        moves = {
            identity: _moved(self._rows[identity], arrivals)
            for identity, arrivals in of.arrivals.items()
            if identity in self._rows
        }
        places = [
            Place(self._rows[identity], moved.logs.n, moved.below)
            for identity, moved in moves.items()
            if identity not in self._children
        ]
        if places and UNIT_OF_LEVEL[level] != "repeats":
            # The index must contain the current values of their children.
            self.write()
        middles = middles_of_many(self._connection, level, places)
        taken = []
        for identity, arrivals in of.arrivals.items():
            subject = of.subjects[identity]
            if identity not in moves:
                taken.append(NewChild(self._begun(level, subject, arrivals), None))
                continue
            row = self._rows[identity]
            middle = middles.get(identity) or self._middle_of_few(row, arrivals)
            found, columns = _after(row, subject, arrivals, moves[identity], middle)
            self._moved.append(columns | {"identity": identity})
            taken.append(NewChild(found, row))
        return taken

    def _begun(self, level: str, subject: Subject, arrivals: list[NewChild]) -> Figure:
        """A new aggregate of its first children."""
        children = [arrival.child for arrival in arrivals]
        aggregate = combine(children, UNIT_OF_LEVEL[level], subject)
        self._new.append(standing_values(level, aggregate, children))
        return aggregate

    def write(self) -> None:
        """Write pending changes."""
        NEW.rows(self._connection, self._new)
        MOVE.rows(self._connection, self._moved)
        self._new, self._moved = [], []

    def _middle_of_few(self, row: Row[Any], arrivals: list[NewChild]) -> tuple[Child, Child]:
        """The two middle children of an aggregate whose children are all in memory."""
        moved = {child.id: child for child, _ in arrivals}
        children: list[tuple[float, str, Any]] = [
            (child[0], child[1], child) for child in self._children[row.id] if child[1] not in moved
        ]
        children += [(child.ns_per_sample, child.id, child) for child in moved.values()]
        children.sort()
        lower, upper = children[(len(children) - 1) // 2][2], children[len(children) // 2][2]
        return _child(row.level, lower), _child(row.level, upper)


def _moved(row: Row[Any], arrivals: list[NewChild]) -> Moved:
    """Add children, and remove the former values of those that changed."""
    logs = Logs(row.children, row.log_mean, row.log_m2)
    middle = (row.middle_ns, row.middle_id)
    below = (row.children - 1) // 2
    repeats, machines = row.repeats, row.machines
    for child, before in arrivals:
        if before is not None:
            below -= (before.ns_per_sample, child.id) < middle
            logs = logs.without(math.log(before.ns_per_sample))
            repeats, machines = repeats - before.repeats, machines - before.machines
        below += (child.ns_per_sample, child.id) < middle
        logs = logs.plus(math.log(child.ns_per_sample))
        repeats, machines = repeats + child.repeats, machines + child.machines
    return Moved(logs, below, repeats, machines)


def _after(
    row: Row[Any],
    subject: Subject,
    arrivals: list[NewChild],
    moved: Moved,
    middles: tuple[Child, Child],
) -> tuple[Figure, dict[str, Any]]:
    """An aggregate after an update, and its columns."""
    middle, upper = middles
    logs, unit = moved.logs, UNIT_OF_LEVEL[row.level]
    alone = logs.n == 1 and unit != "repeats"
    children = [arrival.child for arrival in arrivals]
    aggregate = Figure(
        id=row.id,
        subject=subject,
        ns_per_sample=(middle.ns_per_sample + upper.ns_per_sample) / 2,
        fastest_ns=min(row.fastest_ns, *(child.fastest_ns for child in children)),
        slowest_ns=max(row.slowest_ns, *(child.slowest_ns for child in children)),
        values=middle.values if alone else logs.sample,
        unit=middle.unit if alone else unit,
        repeats=moved.repeats,
        machines=1 if unit == "repeats" else moved.machines,
        owners=logs.n if unit == "owners" else 1,
        trust_level=min(row.trust_level, *(child.trust_level for child in children)),
        newest_at=max(row.newest_at, *(child.newest_at for child in children)),
        evidence=middle.evidence,
    )
    return aggregate, columns_of(aggregate, (middle.ns_per_sample, middle.id), logs)


def _child(level: str, found: Any) -> Child:
    return (
        child_of_figure(found) if isinstance(found, Figure) else CHILDREN[level].read_child(found)
    )


def _refresh(session: Session, level: str, identity: str) -> set[str]:
    """Recompute one aggregate from all of its children.

    Returns:
        The ids of the aggregates above it, before and now.
    """
    connection = session.connection()
    above = set(
        connection.scalars(delete(TABLE).where(TABLE.c.id == identity).returning(TABLE.c.parent_id))
    )
    rows = connection.execute(children_of(level, identity)).all()
    if rows:
        children = [CHILDREN[level].read(child) for child in rows]
        subject = at_level(level, children[0].subject)
        figure_now = combine(children, UNIT_OF_LEVEL[level], subject)
        values = standing_values(level, figure_now, children)
        connection.execute(insert(TABLE), [values])
        above.add(values["parent_id"])
    return above - {None}
