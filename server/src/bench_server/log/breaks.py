"""Breaks of the log: the operator states that the newest entries of a restored log are lost."""

from datetime import datetime

from sqlalchemy.exc import DatabaseError
from sqlmodel import Session, col, select

from bench_protocol.base.units import utc_text
from bench_protocol.signing.breaks import LogBreak as Statement
from bench_protocol.signing.receipts import open_checkpoint

from ..db.store import is_damage
from ..db.tables import LogBreak, LogCheckpoint, LogEntry
from ..errors import NotFound
from .server_keys import Authority


def state(session: Session, authority: Authority, reason: str, now: datetime, size: int) -> None:
    """Sign and store the statement that all entries from number ``size`` on are lost.

    Raises:
        NotFound: the log has no checkpoint of this size.
    """
    checkpoint = session.get(LogCheckpoint, size)
    if checkpoint is None:
        near = select(LogCheckpoint.size).where(col(LogCheckpoint.size) <= size)
        below = session.exec(near.order_by(col(LogCheckpoint.size).desc())).first()
        raise NotFound(f"the log signed no checkpoint of {size} entries; a smaller one has {below}")
    newest = session.get(LogEntry, size - 1)
    last = "none" if newest is None else utc_text(newest.logged_at)
    tree = open_checkpoint(checkpoint.note, authority.log_key)
    note = Statement(tree, last, utc_text(now), reason).signed(authority.log)
    session.add(LogBreak(kept_size=size, stated_at=now, note=note))


def notes(session: Session) -> tuple[str, ...]:
    """All statements, the newest first; one empty text if the database cannot read them."""
    newest = select(LogBreak.note).order_by(col(LogBreak.stated_at).desc())
    try:
        return tuple(map(str, session.exec(newest)))  # SQLite may return any type
    except DatabaseError as error:
        if not is_damage(error):
            raise
        return ("",)
