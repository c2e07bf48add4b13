"""Aggregates: the stored figures of runs, machines, owners and hardware (table ``aggregate``).

:func:`refresh` computes aggregates from all of their children, from the lowest level up. The
database summarises the children (:mod:`.children`), :func:`.medians.combine` makes the figure. An
aggregate depends on nothing but its children and the kinds of owners, so the order of updates does
not matter.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete

from ..db.lists import among
from ..db.upsert import upsert
from .children import CHILDREN, children_of
from .figures import Level, Subject, at_level
from .medians import combine
from .owners import NO_OWNER, facts_of
from .rows import LEVELS, TABLE, aggregate_columns, lineage


@dataclass(frozen=True)
class Stale:
    """Aggregates to compute again: their subjects by id, for each level. Of two subjects with one
    id the later one holds, as when a machine's owner changes."""

    levels: Mapping[Level, Mapping[str, Subject]] = field(default_factory=dict)

    @classmethod
    def above(cls, lowest: Iterable[Subject]) -> "Stale":
        """All aggregates above results, given the subjects of these at the level ``run``."""
        return cls._of(item for subject in lowest for item in lineage(subject).items())

    @classmethod
    def of_owners(cls, owners: Iterable[Subject]) -> "Stale":
        levels: tuple[Level, ...] = ("owner", "hardware")
        return cls._of((level, at_level(level, owner)) for owner in owners for level in levels)

    @classmethod
    def _of(cls, subjects: Iterable[tuple[Level, Subject]]) -> "Stale":
        levels: dict[Level, dict[str, Subject]] = {}
        for level, subject in subjects:
            levels.setdefault(level, {})[subject.id] = subject
        return cls(levels)

    def __or__(self, later: "Stale") -> "Stale":
        return Stale({level: {**self.at(level), **later.at(level)} for level in LEVELS})

    def at(self, level: Level) -> Mapping[str, Subject]:
        return self.levels.get(level, {})

    def only(self, level: Level) -> "Stale":
        return Stale({level: self.at(level)})

    @property
    def owners(self) -> set[str]:
        return {subject.owner for subject in self.at("owner").values()}


def refresh(connection: Connection, stale: Stale, levels: Sequence[Level] = LEVELS) -> None:
    """Compute the stale aggregates of some levels, the lowest first; delete childless ones."""
    for level in levels:
        if subjects := stale.at(level):
            _refresh(connection, level, subjects)


def _refresh(connection: Connection, level: Level, subjects: Mapping[str, Subject]) -> None:
    children = children_of(connection, CHILDREN[level], subjects)
    if gone := subjects.keys() - children.keys():
        connection.execute(DELETE, {"ids": sorted(gone)})
    of_owners = [subject.owner for subject in subjects.values()] if level == "owner" else []
    facts = facts_of(connection, of_owners) if of_owners else {}
    figures = [combine(summary, level, subjects[id]) for id, summary in sorted(children.items())]
    rows = [
        aggregate_columns(level, figure, facts.get(figure.subject.owner, NO_OWNER))
        for figure in figures
    ]
    upsert(connection, TABLE, rows)


DELETE = delete(TABLE).where(among(TABLE.c.id, "ids"))
