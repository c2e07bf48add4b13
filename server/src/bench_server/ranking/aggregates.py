"""Aggregates: the stored figures of runs, machines, owners and hardware (table ``standing``).

:func:`refresh` computes aggregates from all of their children, from the lowest level up. The
database summarises the children (:mod:`.children`), :func:`.medians.combine` makes the figure. An
aggregate depends on nothing but its children and the kinds of owners, so the order of updates does
not matter.
"""

from sqlalchemy import Connection, delete

from ..db.lists import among
from ..db.upsert import upsert
from .children import CHILD_AGGREGATES, CHILD_RESULTS, children_of
from .figures import Level, Subject, at_level
from .medians import combine
from .owners import NEW, kinds_of
from .rows import LEVELS, TABLE, aggregate_columns, lineage


class Touched:
    """The aggregates that a change touches: subjects by id, for each level."""

    def __init__(self) -> None:
        self.levels: dict[Level, dict[str, Subject]] = {level: {} for level in LEVELS}

    def add(self, subject: Subject) -> None:
        """Touch all aggregates above a result, given its subject at the lowest level. A later
        subject replaces an earlier one of the same aggregate, as when a machine's owner changes."""
        for level, of_level in lineage(subject).items():
            self.levels[level][of_level.id] = of_level

    def add_owner(self, subject: Subject) -> None:
        """Touch the aggregates of an owner and of its hardware alone."""
        hardware = at_level("hardware", subject)
        self.levels["owner"][subject.id] = subject
        self.levels["hardware"][hardware.id] = hardware

    @property
    def owners(self) -> set[str]:
        """The labels of the owners."""
        return {subject.owner for subject in self.levels["owner"].values()}


def refresh(connection: Connection, touched: Touched, up_to: Level = "hardware") -> None:
    """Compute the touched aggregates again, up to a level; one without children is deleted. What is
    computed is touched no more."""
    for level in LEVELS[: LEVELS.index(up_to) + 1]:
        subjects = touched.levels[level]
        if not subjects:
            continue
        touched.levels[level] = {}
        table = CHILD_RESULTS if level == "run" else CHILD_AGGREGATES
        children = children_of(connection, table, subjects)
        if gone := subjects.keys() - children.keys():
            connection.execute(DELETE, {"ids": sorted(gone)})
        of_owners = [subject.owner for subject in subjects.values()] if level == "owner" else []
        kinds = kinds_of(connection, of_owners) if of_owners else {}
        figures = [
            combine(summary, level, subjects[id]) for id, summary in sorted(children.items())
        ]
        rows = [
            aggregate_columns(level, figure, kinds.get(figure.subject.owner, NEW))
            for figure in figures
        ]
        upsert(connection, TABLE, rows)


DELETE = delete(TABLE).where(among(TABLE.c.id, "ids"))
