"""Keys and owners, challenges, the log."""

from datetime import date, datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, Text, UniqueConstraint, text
from sqlmodel import Field

from .base import InCell, Table, UtcDateTime


class Owner(Table, table=True):
    """A label that groups keys; ``confirmed`` when the operator vouches for it, ``established`` by
    its results (:mod:`bench_server.ranking.owners`). ``area``: of the network of its first key,
    NULL if that is not known."""

    __tablename__ = "owner"
    __table_args__ = (
        Index(
            "ix_owner_confirmed",
            "label",
            sqlite_where=text("confirmed = 1"),
            postgresql_where=text("confirmed"),
        ),
    )

    label: str = Field(primary_key=True, max_length=80)
    confirmed: bool = False
    established: bool = False
    area: int | None = None


class SigningKey(Table, table=True):
    """A key that may sign results while it is ``active``. ``spki``: DER, 44 bytes.

    ``first_key_id``: the key at the beginning of its rotations, which its machines are named by.
    ``compromised_since``: the log index from which its results count no more.
    """

    __tablename__ = "signing_key"
    __table_args__ = (
        CheckConstraint("length(key_id) = 64", name="key_id_is_sha256"),
        CheckConstraint(
            "status IN ('active', 'pending', 'rotated', 'revoked')", name="status_known"
        ),
    )

    key_id: str = Field(primary_key=True, max_length=64)
    spki: bytes = Field(sa_type=LargeBinary)
    status: str = Field(default="active", max_length=16)
    owner: str = Field(foreign_key="owner.label", max_length=80, index=True)
    first_key_id: str = Field(max_length=64, index=True)
    revoked_reason: str | None = Field(default=None, sa_type=Text)
    compromised_since: int | None = Field(default=None, sa_type=BigInteger)
    enrolled_at: datetime = Field(sa_type=UtcDateTime)


class Invite(Table, table=True):
    """A right to enroll one key; only the digest of its code is kept."""

    __tablename__ = "invite"

    code_sha256: str = Field(primary_key=True, max_length=64)
    owner: str | None = Field(default=None, max_length=80)
    expires_at: datetime = Field(sa_type=UtcDateTime)
    used_by: str | None = Field(default=None, max_length=64)


class Challenge(Table, table=True):
    """A nonce given to a key for one run. ``used``: a result was bound to it; ``counted``: it is
    among the challenges of a :class:`LeftOut`."""

    __tablename__ = "challenge"
    __table_args__ = (Index(None, "key_id", "issued_at"), Index(None, "key_id", "run_id"))

    id: str = Field(primary_key=True, max_length=32)
    nonce: str = Field(max_length=64)
    key_id: str = Field(foreign_key="signing_key.key_id", max_length=64)
    run_id: str = Field(default="", max_length=32)
    issued_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime = Field(sa_type=UtcDateTime)
    used: bool = False
    counted: bool = False


class LeftOut(Table, table=True):
    """What a key left out on a day (UTC): challenges of runs without a result, but for its newest
    one, and results that it withdrew or hides."""

    __tablename__ = "left_out"

    key_id: str = Field(primary_key=True, max_length=64)
    day: date = Field(primary_key=True)
    challenges: int = 0
    withdrawn: int = 0


class LogEntry(Table, table=True):
    """One leaf of the log. ``commitment`` is all of it that is public for ever.

    A result's envelope is its submission; those of key events, acts and recomputations are kept
    here, as signed.
    ``submission_id``: the result that an entry is, or is about; ``key_chain``: the first key of the
    rotations that a key event, or the operator's act about a key, is about; ``signer_chain``: of
    the key that signed a revocation, if it is another. What is erased when a
    result is withdrawn: ``salt``, ``envelope`` and ``submission_id`` of all its entries.
    """

    __tablename__ = "log_entry"
    __table_args__ = (
        CheckConstraint(
            "kind IN ('result', 'key_event', 'act', 'recomputation')", name="kind_known"
        ),
        UniqueConstraint("payload_sha256"),
        Index(None, "key_chain", "log_index"),
        Index(
            "ix_log_entry_signer_chain",
            "key_chain",
            "signer_chain",
            sqlite_where=text("signer_chain IS NOT NULL"),
            postgresql_where=text("signer_chain IS NOT NULL"),
        ),
    )

    log_index: int = Field(
        primary_key=True, sa_type=BigInteger, sa_column_kwargs={"autoincrement": False}
    )
    kind: str = Field(max_length=16)
    commitment: bytes = Field(sa_type=LargeBinary)
    salt: bytes | None = Field(default=None, sa_type=LargeBinary)
    payload_sha256: str | None = Field(default=None, max_length=64)
    envelope: bytes | None = Field(default=None, sa_type=LargeBinary)
    submission_id: str | None = Field(default=None, max_length=16, index=True)
    key_chain: str | None = Field(default=None, max_length=64)
    signer_chain: str | None = Field(default=None, max_length=64)
    logged_at: datetime = Field(sa_type=UtcDateTime)


class LogNode(Table, table=True):
    """Root of a complete subtree of the log (:mod:`bench_protocol.signing.merkle`); never
    changes."""

    __tablename__ = "log_node"

    level: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    position: int = Field(
        primary_key=True, sa_type=BigInteger, sa_column_kwargs={"autoincrement": False}
    )
    hash: bytes = Field(sa_type=LargeBinary)


class LogCheckpoint(Table, table=True):
    """What the log signed at a size: one note, and never another one."""

    __tablename__ = "log_checkpoint"

    size: int = Field(
        primary_key=True, sa_type=BigInteger, sa_column_kwargs={"autoincrement": False}
    )
    note: str = Field(sa_type=Text)


class LogBreak(Table, table=True):
    """A signed statement that the entries from ``kept_size`` on were lost before ``stated_at``."""

    __tablename__ = "log_break"

    kept_size: int = Field(
        primary_key=True, sa_type=BigInteger, sa_column_kwargs={"autoincrement": False}
    )
    stated_at: datetime = Field(primary_key=True, sa_type=UtcDateTime)
    note: str = Field(sa_type=Text)


class Cosignature(Table, table=True):
    """What a witness signed of a checkpoint on a day. ``day``: YYYY-MM-DD in UTC. ``line``: the
    signature line, with its newline."""

    __tablename__ = "cosignature"

    day: str = Field(primary_key=True, max_length=10)
    witness: str = Field(primary_key=True, max_length=200)
    size: int = Field(sa_type=BigInteger, index=True)
    line: str = Field(sa_type=Text)


class Withdrawn(InCell, Table, table=True):
    """What remains of a withdrawn result: its cell and hardware, not its owner. ``log_index`` is
    the result's entry, ``act_index`` that of the withdrawal, whose envelope is erased too."""

    __tablename__ = "withdrawn"
    __table_args__ = (
        UniqueConstraint("payload_sha256"),
        UniqueConstraint("act_index"),
        Index(None, "workload_digest"),
    )

    id: str = Field(primary_key=True, max_length=16)
    payload_sha256: str = Field(max_length=64)
    log_index: int = Field(sa_type=BigInteger)
    act_index: int = Field(sa_type=BigInteger)
    received_at: datetime = Field(sa_type=UtcDateTime)
    withdrawn_at: datetime = Field(sa_type=UtcDateTime)


class Projection(Table, table=True):
    """The projector's position: all entries before ``position`` are applied. One row, written in
    the transaction that applies a batch. ``stopped_reason``: why the entry at the position cannot
    be applied; NULL while the projector makes progress."""

    __tablename__ = "projection"
    __table_args__ = (CheckConstraint("id = 1", name="one_row"),)

    id: int = Field(default=1, primary_key=True, sa_column_kwargs={"autoincrement": False})
    position: int = Field(default=0, sa_type=BigInteger)
    stopped_reason: str | None = Field(default=None, sa_type=Text)


class RecomputeJob(Table, table=True):
    """A session job of a challenge's results
    (:class:`bench_protocol.training.recomputation.SessionJob`).

    ``id``: its seed, batch size and data. ``key_id`` and ``first_index``: the key whose budget it
    counts against, and the log index of its first result. ``leased_until``: no other worker takes
    it before. ``logged_index``: the log entry of its recomputation; while it waits NULL, or
    -1 for a worker that has its real data.
    """

    __tablename__ = "recompute_job"
    __table_args__ = (
        Index("ix_recompute_job_queue", "logged_index", "first_index", "id"),
        Index("ix_recompute_job_spent", "key_id", "settled_at"),
        Index("ix_recompute_job_settled", "settled_at"),
    )

    id: str = Field(primary_key=True, max_length=64)
    seed: str = Field(max_length=32)
    batch_size: int = Field(sa_type=BigInteger)
    challenge_id: str = Field(max_length=32)
    nonce: str = Field(max_length=64)
    workload: str = Field(max_length=64)
    workload_digest: str = Field(max_length=64)
    key_id: str = Field(max_length=64)
    first_index: int = Field(sa_type=BigInteger)
    leased_until: datetime | None = Field(default=None, sa_type=UtcDateTime)
    logged_index: int | None = Field(default=None, sa_type=BigInteger)
    processor_seconds: float | None = None
    settled_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
