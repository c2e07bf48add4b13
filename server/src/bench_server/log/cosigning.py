"""Cosignatures of a daily checkpoint by witnesses.

Each witness is asked once a day (UTC) for the newest checkpoint. It is asked outside of any
transaction, so a slow witness delays nothing else.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlmodel import Session, col, select

from bench_protocol.signing import merkle

from ..db.store import Store
from ..db.tables import Cosignature, LogCheckpoint, table_of
from ..db.upsert import upsert
from . import reader
from .cosigners import Cosigner, Wanted


def due(store: Store, cosigners: Sequence[Cosigner], now: datetime) -> tuple[Cosigner, ...]:
    """The witnesses that have not cosigned today; none while the log is empty."""
    with store.reading() as session:
        if reader.newest_checkpoint(session).size == 0:
            return ()
        today = select(Cosignature.witness).where(Cosignature.day == _day(now))
        done = set(session.exec(today))
    return tuple(cosigner for cosigner in cosigners if cosigner.name not in done)


def cosign(store: Store, cosigner: Cosigner, now: datetime) -> int:
    """Store a witness's cosignature of the newest checkpoint, whose size is returned.

    Raises:
        NoCosignature: it gave none.
    """
    wanted = _wanted(store, cosigner)
    line = cosigner.sign(wanted)
    row = {"day": _day(now), "witness": cosigner.name, "size": wanted.size, "line": line}
    with store.writing() as session:
        # Another server of this database may have asked too; the last one is kept.
        upsert(session.connection(), table_of(Cosignature), [row])
    return wanted.size


def with_cosignatures(session: Session, checkpoint: LogCheckpoint) -> str:
    """The note of a checkpoint, with the newest cosignature of each witness."""
    rows = session.exec(
        select(Cosignature)
        .where(Cosignature.size == checkpoint.size)
        .order_by(col(Cosignature.day))
    ).all()
    lines = {row.witness: row.line for row in rows}
    return checkpoint.note + "".join(lines[name] for name in sorted(lines))


def _wanted(store: Store, cosigner: Cosigner) -> Wanted:
    with store.reading() as session:
        newest = reader.newest_checkpoint(session)
        before = session.exec(
            select(Cosignature.size)
            .where(Cosignature.witness == cosigner.name)
            .order_by(col(Cosignature.size).desc())
            .limit(1)
        ).first()
        note, size = newest.note, newest.size

    def growth(old_size: int) -> Sequence[bytes]:
        if old_size in (0, size):
            return ()
        ranges = merkle.consistency_ranges(old_size, size)
        with store.reading() as session:
            stored = reader.nodes(session, merkle.nodes_of(ranges))
        return [merkle.range_hash(stored, *each) for each in ranges]

    return Wanted(note, size, before or 0, growth)


def _day(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()
