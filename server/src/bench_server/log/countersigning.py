"""Countersignatures of a daily checkpoint by others: time-stamps and cosignatures of witnesses.

Each signer is asked once a day (UTC) for the newest checkpoint. It is asked outside of any
transaction, so that a slow one is in nobody's way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from sqlmodel import Session, col, select

from bench_protocol.signing import merkle

from ..db.store import Store
from ..db.tables import Countersignature, LogCheckpoint, table_of
from ..db.upsert import upsert
from . import reader


class NoCountersignature(RuntimeError):
    """A signer gave none; the message says why, in one line."""


@dataclass(frozen=True)
class Wanted:
    """What a signer is asked for. ``note``: the checkpoint as the log signed it;
    ``signed_before``: the largest size that this signer has countersigned, 0 if none; ``growth``:
    the consistency proof from an older size."""

    note: str
    size: int
    signed_before: int
    growth: Callable[[int], Sequence[bytes]]


class Countersigned(NamedTuple):
    """What a signer answered, verified: a signature line, or a time-stamp response in DER."""

    value: bytes
    at: datetime


class Signer(Protocol):
    """Who countersigns. ``kind``: ``stamp`` or ``cosignature``."""

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...

    def sign(self, wanted: Wanted) -> Countersigned:
        """Raises NoCountersignature."""


def due(store: Store, signers: Sequence[Signer], now: datetime) -> tuple[Signer, ...]:
    """The signers that have not countersigned today; none while the log is empty."""
    with store.reading() as session:
        if reader.newest_checkpoint(session).size == 0:
            return ()
        rows = session.exec(
            select(Countersignature.kind, Countersignature.signer).where(
                Countersignature.day == _day(now)
            )
        ).all()
    done = {tuple(row) for row in rows}
    return tuple(signer for signer in signers if (signer.kind, signer.name) not in done)


def countersign(store: Store, signer: Signer, now: datetime) -> int:
    """Ask a signer for the newest checkpoint, and store what it signed.

    Returns:
        The size of the checkpoint.

    Raises:
        NoCountersignature: it gave none.
    """
    wanted = _wanted(store, signer)
    signed = signer.sign(wanted)
    row = {
        "day": _day(now),
        "kind": signer.kind,
        "signer": signer.name,
        "size": wanted.size,
        "value": signed.value,
        "signed_at": signed.at,
    }
    with store.writing() as session:
        # Another server of this database may have asked too; the last one is kept.
        upsert(session.connection(), table_of(Countersignature), [row])
    return wanted.size


def with_cosignatures(session: Session, checkpoint: LogCheckpoint) -> str:
    """The note of a checkpoint, with the newest cosignature of each witness."""
    rows = session.exec(
        select(Countersignature)
        .where(Countersignature.size == checkpoint.size, Countersignature.kind == "cosignature")
        .order_by(col(Countersignature.day))
    ).all()
    lines = {row.signer: row.value.decode() for row in rows}
    return checkpoint.note + "".join(lines[name] for name in sorted(lines))


def _wanted(store: Store, signer: Signer) -> Wanted:
    with store.reading() as session:
        newest = reader.newest_checkpoint(session)
        before = session.exec(
            select(Countersignature.size)
            .where(Countersignature.kind == signer.kind, Countersignature.signer == signer.name)
            .order_by(col(Countersignature.size).desc())
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
