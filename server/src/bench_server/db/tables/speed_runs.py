"""Witnessed runs: in progress, their opened segments, and what the log states of them."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, Text
from sqlmodel import Field

from .base import Table, UtcDateTime


class SpeedRunRow(Table, table=True):
    """A witnessed run until a day after its end; its statement is in the log.

    ``begun_at``: R0; ``committed_at``: R1, with ``root`` and ``commitment``, the signed payload.
    ``opened``: the drawn segments, a JSON list. ``complete``: all of them are here, so a worker may
    judge; ``leased_until``: no other worker does before. ``outcome``: what was judged, with the
    reason or the index of the statement's entry.
    """

    __tablename__ = "speed_run"
    __table_args__ = (
        CheckConstraint("outcome IN ('witnessed', 'refuted')", name="outcome_known"),
        Index("ix_speed_run_queue", "complete", "outcome", "committed_at"),
        Index("ix_speed_run_key", "key_id", "begun_at"),
    )

    challenge_id: str = Field(primary_key=True, max_length=32)
    key_id: str = Field(max_length=64)
    nonce: str = Field(max_length=64)
    beacon: str = Field(max_length=64)
    draw: str = Field(max_length=64)
    begun_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime = Field(sa_type=UtcDateTime)
    committed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    root: str | None = Field(default=None, max_length=64)
    segments: int | None = None
    commitment: str | None = Field(default=None, sa_type=Text)
    opened: str | None = Field(default=None, sa_type=Text)
    complete: bool = False
    leased_until: datetime | None = Field(default=None, sa_type=UtcDateTime)
    outcome: str | None = Field(default=None, max_length=16)
    reason: str | None = Field(default=None, sa_type=Text)
    statement_index: int | None = Field(default=None, sa_type=BigInteger)


class OpenedSegment(Table, table=True):
    """The body of an opened segment; deleted when its run is judged or has expired."""

    __tablename__ = "opened_segment"

    challenge_id: str = Field(primary_key=True, max_length=32)
    segment: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    body: bytes = Field(sa_type=LargeBinary)


class WitnessedSpeed(Table, table=True):
    """A projection of the log's statements about witnessed runs."""

    __tablename__ = "witnessed_speed"
    __table_args__ = (Index("ix_witnessed_speed_machine", "machine_id", "log_index"),)

    log_index: int = Field(
        primary_key=True, sa_type=BigInteger, sa_column_kwargs={"autoincrement": False}
    )
    challenge_id: str = Field(max_length=32)
    key_id: str = Field(max_length=64)
    machine_id: str = Field(max_length=16)
    framework: str = Field(max_length=64)
    device: str = Field(max_length=8)
    samples_per_second: int = Field(sa_type=BigInteger)
    training_ns: int = Field(sa_type=BigInteger)
    segments: int
    begun_at: datetime = Field(sa_type=UtcDateTime)
    committed_at: datetime = Field(sa_type=UtcDateTime)
