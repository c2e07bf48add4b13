"""Tables. Never wire models: what is sent or answered has models of its own.

``submission`` holds what was received, byte for byte; ``measurement`` is an index of it that can
be rebuilt from the payload (:mod:`.derive`). Every integer of nanoseconds, millijoules or bytes is
a BigInteger. Migrations are written by hand and compared with these tables by a test.
"""

from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    Index,
    LargeBinary,
    MetaData,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlmodel import Field, SQLModel

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC with microseconds; refuses moments without a time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment needs a time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class Table(SQLModel):
    """Base of the tables: constraints get their names from one convention."""

    metadata: ClassVar[MetaData] = MetaData(naming_convention=NAMING)


COUNTED = ("rankable", "ns_per_sample", "submission_id")
NEWEST = ("received_at", "submission_id")
UNRANKED: dict[str, Any] = {
    "sqlite_where": text("rankable IS 0"),
    "postgresql_where": text("rankable IS false"),
}


class Owner(Table, table=True):
    """A label that groups keys; ``confirmed`` when the operator vouches for it."""

    __tablename__ = "owner"

    label: str = Field(primary_key=True, max_length=80)
    confirmed: bool = False


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
    display_name: str | None = Field(default=None, max_length=80)
    owner: str = Field(foreign_key="owner.label", max_length=80, index=True)
    first_key_id: str = Field(max_length=64)
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
    """A nonce given to a key for one run. ``used``: a result was bound to it."""

    __tablename__ = "challenge"
    __table_args__ = (Index(None, "used", "expires_at"),)

    id: str = Field(primary_key=True, max_length=32)
    nonce: str = Field(max_length=64)
    key_id: str = Field(foreign_key="signing_key.key_id", max_length=64)
    issued_at: datetime = Field(sa_type=UtcDateTime)
    expires_at: datetime = Field(sa_type=UtcDateTime)
    used: bool = False


class LogEntry(Table, table=True):
    """One leaf of the log. ``commitment`` is all of it that is public for ever.

    A result's envelope is its submission; those of key events and acts are kept here, as sent.
    ``submission_id``: the result that an entry is, or is about; ``key_chain``: the first key of the
    rotations that a key event, or the operator's act about a key, is about. What is erased when a
    result is withdrawn: ``salt``, ``envelope`` and ``submission_id`` of all its entries.
    """

    __tablename__ = "log_entry"
    __table_args__ = (
        CheckConstraint("kind IN ('result', 'key_event', 'act')", name="kind_known"),
        UniqueConstraint("payload_sha256"),
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
    key_chain: str | None = Field(default=None, max_length=64, index=True)
    logged_at: datetime = Field(sa_type=UtcDateTime)


class LogNode(Table, table=True):
    """Root of a complete subtree of the log (:mod:`bench_protocol.merkle`); never changes."""

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


class Withdrawn(Table, table=True):
    """What is left of a result that its key withdrew: what it was a result of, not whose."""

    __tablename__ = "withdrawn"
    __table_args__ = (UniqueConstraint("payload_sha256"),)

    id: str = Field(primary_key=True, max_length=16)
    payload_sha256: str = Field(max_length=64)
    log_index: int = Field(sa_type=BigInteger)
    hardware: str = Field(max_length=400)
    hardware_slug: str = Field(max_length=400)
    workload: str = Field(max_length=64)
    workload_digest: str = Field(max_length=64, index=True)
    framework: str = Field(max_length=64)
    device: str = Field(max_length=8)
    recipe: str = Field(max_length=16)
    batch_size: int = Field(sa_type=BigInteger)
    precision: str = Field(max_length=32)
    data: str = Field(max_length=16)
    received_at: datetime = Field(sa_type=UtcDateTime)
    withdrawn_at: datetime = Field(sa_type=UtcDateTime)


class Submission(Table, table=True):
    """What was received: payload and signature exactly, and when. ``id``: 16 random hex digits."""

    __tablename__ = "submission"
    __table_args__ = (
        UniqueConstraint("payload_sha256"),
        CheckConstraint("length(id) = 16", name="id_has_16_digits"),
        CheckConstraint("length(payload_sha256) = 64", name="payload_sha256_is_sha256"),
        Index(None, "received_at", "id"),
    )

    id: str = Field(primary_key=True, max_length=16)
    payload: bytes = Field(sa_type=LargeBinary)
    payload_sha256: str = Field(max_length=64)
    payload_type: str = Field(max_length=200)
    signature: bytes = Field(sa_type=LargeBinary)
    key_id: str = Field(foreign_key="signing_key.key_id", max_length=64)
    received_at: datetime = Field(sa_type=UtcDateTime)


class Measurement(Table, table=True):
    """One result's columns, derived from its payload; units in the names.

    ``block_median_ns`` is the median time of a block of ``steps_per_block`` steps; ``spread`` the
    within-run spread of the blocks, relative. ``verdicts`` is a JSON list (:mod:`.checks`).
    ``moderation`` is what was last said about the result: ``flagged``, ``quarantined``, ``hidden``
    or ``restored``. ``rankable``, ``unranked_reason`` and ``trust_level`` follow from all of these
    (:mod:`.standing`).
    """

    __tablename__ = "measurement"
    __table_args__ = (
        # One payload for a repeat: what a second one would mean, nobody could say.
        UniqueConstraint("run_id", "key_id", "cell_digest", "repeat"),
        UniqueConstraint("challenge_id", "cell_digest", "repeat"),
        UniqueConstraint("log_index"),
        CheckConstraint("status IN ('measured', 'failed')", name="status_known"),
        CheckConstraint("data IN ('real', 'generated')", name="data_known"),
        CheckConstraint("device IN ('metal', 'cuda', 'cpu')", name="device_known"),
        CheckConstraint("batch_size > 0", name="batch_size_positive"),
        CheckConstraint("trust_level BETWEEN 0 AND 4", name="trust_level_known"),
        CheckConstraint("NOT rankable OR ns_per_sample > 0", name="rankable_has_time"),
        CheckConstraint(
            "moderation IN ('flagged', 'quarantined', 'hidden', 'restored')",
            name="moderation_known",
        ),
        CheckConstraint("rankable OR unranked_reason IS NOT NULL", name="unranked_has_reason"),
        # Those that count in a standing, in the order of their times; the median is among them.
        Index("ix_measurement_machine_standing", "machine_standing", *COUNTED),
        Index("ix_measurement_environment_standing", "environment_standing", *COUNTED),
        # The boards' results, those that do not count, and the lists, newest first: so that one of
        # what few results are finds them.
        Index("ix_measurement_board", "workload_digest", "batch_size", "precision", *COUNTED),
        Index("ix_measurement_unranked", "workload_digest", *NEWEST, **UNRANKED),
        Index("ix_measurement_unranked_newest", *NEWEST, **UNRANKED),
        Index("ix_measurement_machine", "machine_id", "cell_digest", "started_at"),
        Index("ix_measurement_hardware", "hardware_slug", *NEWEST),
        Index("ix_measurement_newest", *NEWEST),
        *(
            Index(f"ix_measurement_{name}", name, *NEWEST)
            for name in ("key_id", "workload", "framework", "precision", "batch_size")
        ),
        # What few results have, for boards of results in that order.
        *(
            Index(
                f"ix_measurement_{name}",
                "workload_digest",
                name,
                "submission_id",
                sqlite_where=text(f"{name} IS NOT NULL"),
                postgresql_where=text(f"{name} IS NOT NULL"),
            )
            for name in ("joules_per_sample", "mfu", "accuracy")
        ),
    )

    submission_id: str = Field(
        primary_key=True, foreign_key="submission.id", ondelete="CASCADE", max_length=16
    )
    key_id: str = Field(foreign_key="signing_key.key_id", max_length=64)
    owner: str = Field(max_length=80)
    log_index: int = Field(sa_type=BigInteger)
    challenge_id: str | None = Field(default=None, max_length=32)
    received_at: datetime = Field(sa_type=UtcDateTime)
    started_at: datetime = Field(sa_type=UtcDateTime)

    machine_id: str = Field(max_length=16)
    machine_standing: str = Field(default="", max_length=32)
    environment_standing: str = Field(default="", max_length=32)
    environment_id: str = Field(default="", max_length=32)
    hardware: str = Field(max_length=400)
    hardware_slug: str = Field(max_length=400)

    workload: str = Field(max_length=64)
    workload_digest: str = Field(max_length=64)
    framework: str = Field(max_length=64)
    framework_version: str | None = Field(default=None, max_length=64)
    device: str = Field(max_length=8)
    device_index: int = Field(sa_type=BigInteger)
    recipe: str = Field(max_length=16)
    batch_size: int = Field(sa_type=BigInteger)
    precision: str = Field(max_length=32)
    data: str = Field(max_length=16)
    cell_digest: str = Field(max_length=64)
    run_id: str = Field(max_length=32)
    repeat: int

    status: str = Field(max_length=16)
    failure_kind: str | None = Field(default=None, max_length=32)
    rankable: bool
    unranked_reason: str | None = Field(default=None, sa_type=Text)
    trust_level: int
    verdicts: str = Field(sa_type=Text)
    moderation: str | None = Field(default=None, max_length=16)
    moderation_reason: str | None = Field(default=None, sa_type=Text)

    layers: str | None = Field(default=None, max_length=16)
    block_count: int | None = None
    steps_per_block: int | None = Field(default=None, sa_type=BigInteger)
    block_median_ns: int | None = Field(default=None, sa_type=BigInteger)
    spread: float | None = None
    ns_per_sample: float | None = None
    samples_per_second: float | None = None
    epoch_ns: int | None = Field(default=None, sa_type=BigInteger)
    startup_ns: int | None = Field(default=None, sa_type=BigInteger)
    parameter_count: int | None = Field(default=None, sa_type=BigInteger)
    last_loss: float | None = None
    accuracy: float | None = None
    peak_memory_bytes: int | None = Field(default=None, sa_type=BigInteger)
    energy_mj: int | None = Field(default=None, sa_type=BigInteger)
    joules_per_sample: float | None = None
    energy_scope: str | None = Field(default=None, max_length=64)
    mfu: float | None = None


class Standing(Table, table=True):
    """A figure of one machine, owner or hardware in one set-up (:class:`.rank.Figure`), kept up to
    date by :mod:`.standings` so that no page reads results. One at level ``environment`` is a
    machine's in one environment, for questions about drivers and versions; one at level
    ``published`` is a copied figure, which no median of measured ones ever meets.

    ``parent_id`` is the standing above. ``middle_ns`` and ``middle_id`` are the child in the
    middle, the faster one of an even number, from which the next median is found. ``log_mean`` and
    ``log_m2`` (sum of squared deviations) are of the children's times; ``value_...`` are
    :attr:`.rank.Figure.values`.
    """

    __tablename__ = "standing"
    __table_args__ = (
        CheckConstraint(
            "level IN ('environment', 'machine', 'owner', 'hardware', 'published')",
            name="level_known",
        ),
        CheckConstraint("ns_per_sample > 0", name="has_time"),
        CheckConstraint("children > 0", name="has_children"),
        Index("ix_standing_children", "parent_id", "ns_per_sample", "id"),
        Index("ix_standing_board", "level", "workload_digest", "batch_size", "precision"),
        Index("ix_standing_hardware", "level", "hardware_slug", "workload_digest"),
        Index("ix_standing_machine", "level", "machine_id", "workload_digest"),
        Index("ix_standing_machines", "level", "hardware_slug", "machine_id"),
    )

    id: str = Field(primary_key=True, max_length=32)
    level: str = Field(max_length=16)
    parent_id: str | None = Field(default=None, max_length=32)

    hardware: str = Field(max_length=400)
    hardware_slug: str = Field(max_length=400)
    workload: str = Field(max_length=64)
    workload_digest: str = Field(max_length=64)
    framework: str = Field(max_length=64)
    device: str = Field(max_length=8)
    recipe: str = Field(max_length=16)
    batch_size: int = Field(sa_type=BigInteger)
    precision: str = Field(max_length=32)
    data: str = Field(max_length=16)
    owner: str = Field(default="", max_length=80)
    machine_id: str = Field(default="", max_length=16)
    environment_id: str = Field(default="", max_length=32)

    ns_per_sample: float
    fastest_ns: float
    slowest_ns: float
    children: int
    middle_ns: float
    middle_id: str = Field(max_length=32)
    log_mean: float
    log_m2: float
    value_unit: str = Field(max_length=8)
    value_count: int
    value_log_mean: float
    value_log_variance: float
    repeats: int
    machines: int
    owners: int
    trust_level: int
    newest_at: datetime = Field(sa_type=UtcDateTime)
    result_id: str = Field(max_length=16)
    spread: float
    accuracy: float | None = None
    joules_per_sample: float | None = None
    energy_scope: str | None = Field(default=None, max_length=64)


class PublishedFigure(Table, table=True):
    """A figure that was copied from elsewhere, with its source (:mod:`.published`)."""

    __tablename__ = "published_figure"
    __table_args__ = (CheckConstraint("ns_per_sample > 0", name="has_time"),)

    id: str = Field(primary_key=True, max_length=16)
    source: str = Field(max_length=100)
    url: str = Field(max_length=400)
    licence: str = Field(max_length=64)
    note: str = Field(sa_type=Text)
    source_table: str = Field(max_length=40)
    published_at: datetime = Field(sa_type=UtcDateTime)
    hardware: str = Field(max_length=400)
    hardware_slug: str = Field(max_length=400)
    workload: str = Field(max_length=64)
    workload_digest: str = Field(max_length=64)
    framework: str = Field(max_length=64)
    device: str = Field(max_length=8)
    recipe: str = Field(max_length=16)
    batch_size: int = Field(sa_type=BigInteger)
    precision: str = Field(max_length=32)
    data: str = Field(max_length=16)
    ns_per_sample: float
    accuracy: float | None = None


class EnvironmentRow(Table, table=True):
    """What a result may be filtered by, once for all results that agree in it. A version has a key
    beside it that sorts as versions do (:func:`.attributes.version_key`)."""

    __tablename__ = "environment"

    id: str = Field(primary_key=True, max_length=32)
    os: str = Field(max_length=16)
    os_version: str = Field(max_length=200)
    os_version_key: str | None = Field(default=None, max_length=80)
    python: str = Field(max_length=64)
    python_key: str | None = Field(default=None, max_length=80)
    agent: str = Field(max_length=64)
    agent_key: str | None = Field(default=None, max_length=80)
    framework_version: str | None = Field(default=None, max_length=64)
    framework_version_key: str | None = Field(default=None, max_length=80)
    driver: str | None = Field(default=None, max_length=64)
    driver_key: str | None = Field(default=None, max_length=80)
    cuda: str | None = Field(default=None, max_length=200)
    cuda_key: str | None = Field(default=None, max_length=80)
    memory_bytes: int | None = Field(default=None, sa_type=BigInteger)
    gpu_memory_bytes: int | None = Field(default=None, sa_type=BigInteger)
    cores: int | None = Field(default=None, sa_type=BigInteger)
