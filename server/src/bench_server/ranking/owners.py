"""Kinds of owners by the cost of making one, and which decide (docs/adr/0015-owners-by-cost.md).

An owner is *confirmed* if the operator vouches for it; *established* if 30 days or more lie between
two of its ranked results at trust level 3 or above, whose readings the server has recomputed; else
*new*. So a kind follows from acts and results of the log, and never from a clock.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from sqlalchemy import Connection, and_, bindparam, literal_column, select, update

from ..db.lists import among
from ..db.tables import Measurement, Owner, table_of

OwnerKind = Literal["confirmed", "established", "new"]
# The most expensive first. A kind is stored as its place here.
OWNER_KINDS: tuple[OwnerKind, ...] = ("confirmed", "established", "new")
CONFIRMED, ESTABLISHED, NEW = range(len(OWNER_KINDS))
ESTABLISHED_AFTER = timedelta(days=30)
# From this number of confirmed owners on, they alone make a hardware's figure. One is not enough:
# nobody would have reproduced it.
CONFIRMED_FOR_A_FIGURE = 2
# What backs a hardware's figure: two or more confirmed owners, several owners, or one. Of new ones
# an area counts once.
Backing = Literal["confirmed", "several", "one"]
BACKINGS: tuple[Backing, ...] = ("confirmed", "several", "one")


class OwnerFacts(NamedTuple):
    """The place of an owner's kind in ``OWNER_KINDS``, and its area: one of 256, by the network
    that its first key was enrolled from. One of unknown area shares it with nobody."""

    kind: int = NEW
    area: int | None = None


# Of an owner that nothing is known of, and below and above the level of owners.
NO_OWNER = OwnerFacts()


class OwnerCounts(NamedTuple):
    """Numbers of owners with a figure, by kind."""

    confirmed: int = 0
    established: int = 0
    new: int = 0

    @classmethod
    def add_up(cls, numbers: Iterable[tuple[int, int]]) -> "OwnerCounts":
        sums = [0] * len(OWNER_KINDS)
        for kind, number in numbers:
            sums[kind] += number
        return cls(*sums)

    @property
    def total(self) -> int:
        return sum(self)

    @property
    def older(self) -> int:
        """The number of confirmed and established owners."""
        return self.confirmed + self.established

    @property
    def deciding(self) -> int:
        """The place of the cheapest kind that decides: the confirmed owners alone where there are
        two, else the confirmed and established ones if there are any, else all."""
        if self.confirmed >= CONFIRMED_FOR_A_FIGURE:
            return CONFIRMED
        return ESTABLISHED if self.older else NEW

    def words(self, counted: int) -> str:
        """For example "3 confirmed, 2 established, 100 new; only the 3 confirmed count"."""
        numbers = zip(self, OWNER_KINDS, strict=True)
        kinds = ", ".join(f"{number:,} {kind}" for number, kind in numbers if number)
        if self.deciding == NEW and counted < self.new:
            verb = "counts" if counted == 1 else "count"
            return f"{kinds}; {counted:,} {verb}: one of each area, undisturbed ones first"
        if self.total == sum(self[: self.deciding + 1]):
            return kinds
        if self.deciding == CONFIRMED:
            return f"{kinds}; only the {self.confirmed:,} confirmed count"
        first = "confirmed and established" if self.confirmed else "established"
        if not self.established:
            first = "confirmed"
        verb = "counts" if self.older == 1 else "count"
        return f"{kinds}; only the {self.older:,} {first} {verb}"


# Below the level of hardware a figure has one owner, whose kind does not matter.
ONE_OWNER = OwnerCounts(new=1)


def confirmed_owners(connection: Connection) -> frozenset[str]:
    return frozenset(connection.scalars(CONFIRMED_LABELS))


def facts_of(connection: Connection, labels: Iterable[str]) -> Mapping[str, OwnerFacts]:
    """Kind and area of each owner, by label."""
    rows = connection.execute(FACTS, {"ids": sorted(set(labels))})
    return {
        row.label: OwnerFacts(
            CONFIRMED if row.confirmed else ESTABLISHED if row.established else NEW, row.area
        )
        for row in rows
    }


def first_trusted(connection: Connection, labels: Iterable[str]) -> dict[str, datetime]:
    """When the oldest trusted result of each owner that is not established was received."""
    rows = connection.execute(SPANS, {"ids": sorted(set(labels))})
    return {row.label: row.first for row in rows if row.first and not row.established}


def establish(connection: Connection, labels: Iterable[str]) -> list[str]:
    """Store which of these owners are established by their present results; returns the labels that
    changed."""
    rows = connection.execute(SPANS, {"ids": sorted(set(labels))}).all()
    changed = [
        {"of": row.label, "established": not row.established}
        for row in rows
        if row.established is not _spans(row.first, row.last)
    ]
    if changed:
        connection.execute(SET_ESTABLISHED, changed)
    return [row["of"] for row in changed]


def _spans(first: datetime | None, last: datetime | None) -> bool:
    return first is not None and last is not None and last - first >= ESTABLISHED_AFTER


# -- statements, each built once -------------------------------------------------------------------

_OWNERS, _RESULTS = table_of(Owner), table_of(Measurement)
FACTS = select(_OWNERS.c.label, _OWNERS.c.confirmed, _OWNERS.c.established, _OWNERS.c.area).where(
    among(_OWNERS.c.label, "ids")
)
CONFIRMED_LABELS = select(_OWNERS.c.label).where(_OWNERS.c.confirmed)
# A constant, so that SQLite uses the partial index of these results.
TRUSTED = and_(_RESULTS.c.rankable, _RESULTS.c.trust_level >= literal_column("3"))
_RECEIVED = _RESULTS.c.received_at
_OF_OWNER = select(_RECEIVED).where(_RESULTS.c.owner == _OWNERS.c.label, TRUSTED).limit(1)
SPANS = select(
    _OWNERS.c.label,
    _OWNERS.c.established,
    _OF_OWNER.order_by(_RECEIVED).correlate(_OWNERS).scalar_subquery().label("first"),
    _OF_OWNER.order_by(_RECEIVED.desc()).correlate(_OWNERS).scalar_subquery().label("last"),
).where(among(_OWNERS.c.label, "ids"))
SET_ESTABLISHED = (
    update(_OWNERS)
    .where(_OWNERS.c.label == bindparam("of"))
    .values(established=bindparam("established"))
)
