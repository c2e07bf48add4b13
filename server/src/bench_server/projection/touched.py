"""Rows that applied entries touch, and the order in which they are updated."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, Row

from bench_protocol.trust.asks import HardwareSetup

from ..ingest import hardware_names
from ..ranking import aggregates, owners
from ..ranking.aggregates import Stale
from ..ranking.figures import Level, Subject
from ..ranking.rows import subject_of
from . import reproduced
from .reproduced import setup_of

OWNERS_AND_BELOW: tuple[Level, ...] = ("run", "machine", "owner")


@dataclass(frozen=True)
class Touched:
    """``stale``: the aggregates to compute again. ``set_ups``: those in which results may have
    another trust level. ``trusted``: subjects of new results at level 3 or above, whose set-ups
    count only where enough owners have a figure."""

    stale: Stale = field(default_factory=Stale)
    set_ups: frozenset[HardwareSetup] = frozenset()
    trusted: tuple[Subject, ...] = ()

    def __or__(self, later: "Touched") -> "Touched":
        return Touched(
            self.stale | later.stale,
            self.set_ups | later.set_ups,
            self.trusted + later.trusted,
        )


NOTHING = Touched()


def by_results(rows: Iterable[Row[Any]]) -> Touched:
    """The rows that rows of results touch, before or after a change."""
    subjects = [subject_of(row) for row in rows]
    return Touched(Stale.above(subjects), frozenset(map(setup_of, subjects)))


def by_owner(connection: Connection, label: str) -> Touched:
    """The rows that a change of an owner's kind or area touches."""
    hardware = reproduced.hardware_of_owner(connection, label)
    stale = Stale.of_owners(subject._replace(owner=label) for subject in hardware)
    return Touched(stale, frozenset(map(setup_of, hardware)))


def refresh_owners(connection: Connection, touched: Touched) -> Touched:
    """Update the kinds of the owners and the aggregates up to these, which new results are compared
    with; returns what is left: hardware and trust levels."""
    stale = touched.stale
    if not stale.owners:
        return touched
    for label in owners.establish(connection, stale.owners):
        stale |= by_owner(connection, label).stale
    aggregates.refresh(connection, stale, OWNERS_AND_BELOW)
    return replace(touched, stale=stale.only("hardware"))


def refresh_all(connection: Connection, touched: Touched) -> None:
    """Update trust levels, then owners, then hardware: each follows from the one before. Then the
    names of hardware."""
    confirmed = owners.confirmed_owners(connection)
    set_ups = touched.set_ups
    if len(confirmed) >= reproduced.OWNERS_TO_REPRODUCE:
        set_ups |= reproduced.reproducible(connection, touched.trusted, confirmed)
    changed = reproduced.update_levels(connection, sorted(set_ups), confirmed)
    touched |= Touched(Stale.above(changed))
    touched = refresh_owners(connection, touched)
    aggregates.refresh(connection, touched.stale)
    hardware = touched.stale.at("hardware").values()
    hardware_names.put_again(connection, {subject.hardware_slug for subject in hardware})
