"""Reindex: clear every projected table, so that the projector applies the log from entry 0.

Keys and owners are rebuilt here, in the same transaction: acceptance depends on them. Two things
are not in the log and do not change: pending approvals, and the findings of the outlier check.
Environments stay too: those of withdrawn results cannot be read from the log any
more, and name nobody.
"""

from collections.abc import Callable

from sqlalchemy import delete, update
from sqlmodel import Session, col, select

from bench_protocol.payload import acts
from bench_protocol.signing import envelope

from ..db.store import Store
from ..db.tables import Aggregate, LogEntry, Measurement, Owner, OwnerSpread
from ..ingest import key_events, moderation
from ..log import writer
from ..ranking import published
from . import position
from .projector import Projector


def reindex(store: Store, progress: Callable[[int], None] = lambda _: None) -> int:
    """Project the log again; returns the number of entries. Pages show those that are applied.

    Raises:
        ProjectionStopped: an entry cannot be applied.
    """
    clear(store)
    return Projector(store).catch_up(progress)


def clear(store: Store) -> None:
    """Go back to entry 0, in one transaction."""
    with store.writing() as session:
        writer.take_turn(session)
        position.take(session.connection())
        for table in (Aggregate, OwnerSpread, Measurement):
            session.execute(delete(table))
        session.execute(update(Owner).values(confirmed=False, established=False, area=None))
        published.remake(session)
        _rebuild_keys(session)
        position.write(session.connection(), 0)


def _rebuild_keys(session: Session) -> None:
    entries = session.exec(
        select(LogEntry)
        .where(col(LogEntry.kind).in_(("key_event", "act")), col(LogEntry.envelope).is_not(None))
        .order_by(col(LogEntry.log_index))
    ).all()
    for entry in entries:
        opened = envelope.read(entry.envelope or b"")
        if entry.kind == "key_event":
            key_events.replay(session, opened, entry.logged_at)
        else:
            moderation.change_keys(session, acts.Act.parse(opened.payload))
