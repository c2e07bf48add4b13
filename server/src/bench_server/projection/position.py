"""The projector's position in the log: how far the shown tables follow it."""

from typing import NamedTuple

from sqlalchemy import Connection, select, text
from sqlmodel import Session

from ..db.tables import Projection, table_of
from ..db.upsert import upsert
from ..log import reader

_PROJECTION = table_of(Projection)


class Position(NamedTuple):
    """All entries before ``next_index`` are applied. ``stopped_reason``: why the next one cannot
    be, if it cannot."""

    next_index: int
    stopped_reason: str | None


class Lag(NamedTuple):
    """How far the projection is behind the log, in entries."""

    size: int
    position: int
    stopped_reason: str | None

    @property
    def entries(self) -> int:
        return max(0, self.size - self.position)


def read(connection: Connection) -> Position:
    """The stored position; the start of the log if there is none."""
    row = connection.execute(READ).first()
    return Position(0, None) if row is None else Position(row.position, row.stopped_reason)


def take(connection: Connection) -> Position:
    """The stored position, which no other transaction changes until this one ends. On SQLite every
    writer holds the database's lock."""
    if connection.dialect.name == "postgresql":
        connection.execute(LOCK, {"number": ADVISORY_LOCK})
    return read(connection)


def write(connection: Connection, next_index: int, stopped_reason: str | None = None) -> None:
    """Store a position, in the transaction that applied the entries before it."""
    row = {"id": 1, "position": next_index, "stopped_reason": stopped_reason}
    upsert(connection, _PROJECTION, [row])


def lag(session: Session) -> Lag:
    position = read(session.connection())
    return Lag(reader.size(session), *position)


# The number is arbitrary but unique.
ADVISORY_LOCK = 0x7472_6169_6E70_6F73
LOCK = text("SELECT pg_advisory_xact_lock(:number)")
READ = select(_PROJECTION.c.position, _PROJECTION.c.stopped_reason)
