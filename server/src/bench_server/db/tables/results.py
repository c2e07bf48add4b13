"""Tables of submissions as received, of measurements derived from them, and of environments."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, Index, LargeBinary, Text, UniqueConstraint, text
from sqlmodel import Field

from .base import InSetup, Table, UtcDateTime

IN_RUN = ("rankable", "ns_per_sample", "submission_id", "disturbed")
NEWEST = ("received_at", "submission_id")
TRUSTED: dict[str, Any] = {
    "sqlite_where": text("rankable = 1 AND trust_level >= 3"),
    "postgresql_where": text("rankable AND trust_level >= 3"),
}
OTHER_NAME: dict[str, Any] = {
    f"{name}_where": text("hardware_sent != hardware") for name in ("sqlite", "postgresql")
}
UNRANKED: dict[str, Any] = {
    "sqlite_where": text("rankable IS 0"),
    "postgresql_where": text("rankable IS false"),
}


class Submission(Table, table=True):
    """A result as it was received: exact payload and signature, and the time. ``id``: 16 hex digits
    (:func:`bench_server.ingest.inbox.new_id`).

    ``run_id``, ``cell_digest`` and ``repeat`` are copied from the payload, and ``challenge_id``
    from the challenge that the result is bound to, so that the database refuses a second payload
    for a repeat.

    ``outlier``: the finding of the outlier check (:class:`bench_server.checks.verdicts.Finding` in
    JSON), stored by the projector when it first applies the result, because it depends on results
    of other owners, which may be erased later. NULL where nothing was measured, and before the
    projection. ``ask_id``: the ask that it answers, stored likewise.
    """

    __tablename__ = "submission"
    __table_args__ = (
        UniqueConstraint("payload_sha256"),
        # One payload for a repeat: a second one would have no defined meaning.
        UniqueConstraint("run_id", "key_id", "cell_digest", "repeat"),
        UniqueConstraint("challenge_id", "cell_digest", "repeat"),
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
    run_id: str = Field(max_length=32)
    cell_digest: str = Field(max_length=64)
    repeat: int
    challenge_id: str | None = Field(default=None, max_length=32)
    outlier: str | None = Field(default=None, sa_type=Text)
    ask_id: str | None = Field(default=None, max_length=32)


class Measurement(InSetup, Table, table=True):
    """One result's columns, a projection of its log entry; units in the names. No foreign key
    leads to the submission: a withdrawal erases it before the projector removes this row.

    ``spread`` is the within-run spread of the blocks, relative. ``verdicts`` is a JSON list
    (:mod:`bench_server.checks.table`). ``moderation`` is what was last said about the result:
    ``flagged``, ``quarantined``, ``hidden`` or ``restored``. ``rankable``, ``unranked_reason`` and
    ``trust_level`` follow from all of these (:mod:`bench_server.projection.eligibility`).
    ``disturbed``: its agent says so (:func:`bench_protocol.payload.doubts.disturbances`).
    ``ask_id``: the ask that it answers. ``hardware_sent``: the name of the hardware in the payload;
    ``hardware`` is the one that all results of a slug share.
    """

    __tablename__ = "measurement"
    __table_args__ = (
        UniqueConstraint("log_index"),
        CheckConstraint("status IN ('measured', 'failed')", name="status_known"),
        CheckConstraint("data IN ('real', 'generated')", name="data_known"),
        CheckConstraint("timing IN ('long', 'short')", name="timing_known"),
        CheckConstraint("device IN ('metal', 'cuda', 'cpu')", name="device_known"),
        CheckConstraint("batch_size > 0", name="batch_size_positive"),
        CheckConstraint("trust_level BETWEEN 0 AND 4", name="trust_level_known"),
        CheckConstraint("NOT rankable OR ns_per_sample > 0", name="rankable_has_time"),
        CheckConstraint(
            "moderation IN ('flagged', 'quarantined', 'hidden', 'restored')",
            name="moderation_known",
        ),
        CheckConstraint("rankable OR unranked_reason IS NOT NULL", name="unranked_has_reason"),
        # Measurements that count in a run's aggregate, in the order of their times, for its median.
        Index("ix_measurement_run_aggregate", "run_aggregate", *IN_RUN),
        # Indexes for unranked rows and lists, newest first: a rare value (workload, precision, ...)
        # is found by its index.
        Index("ix_measurement_unranked", "workload_digest", *NEWEST, **UNRANKED),
        Index("ix_measurement_unranked_newest", *NEWEST, **UNRANKED),
        Index("ix_measurement_machine", "machine_id", "cell_digest", "started_at"),
        Index("ix_measurement_hardware", "hardware_slug", *NEWEST),
        Index("ix_measurement_newest", *NEWEST),
        Index("ix_measurement_spellings", "hardware_slug", **OTHER_NAME),
        # The oldest and the newest trusted result of an owner (:mod:`bench_server.ranking.owners`).
        Index("ix_measurement_trusted", "owner", "received_at", **TRUSTED),
        Index("ix_measurement_challenge", "challenge_id", "workload_digest"),
        *(
            Index(f"ix_measurement_{name}", name, *NEWEST)
            for name in (
                *("key_id", "owner", "workload", "framework", "precision", "batch_size"),
                *("device", "recipe", "data", "timing"),
            )
        ),
    )

    submission_id: str = Field(primary_key=True, max_length=16)
    key_id: str = Field(max_length=64)
    owner: str = Field(max_length=80)
    log_index: int = Field(sa_type=BigInteger)
    challenge_id: str | None = Field(default=None, max_length=32)
    received_at: datetime = Field(sa_type=UtcDateTime)
    started_at: datetime = Field(sa_type=UtcDateTime)

    machine_id: str = Field(max_length=16)
    run_aggregate: str = Field(default="", max_length=32)
    environment_id: str = Field(default="", max_length=32)

    framework_version: str | None = Field(default=None, max_length=64)
    page_bytes: int | None = Field(default=None, sa_type=BigInteger)
    hardware_sent: str = Field(default="", max_length=400)
    device_index: int = Field(sa_type=BigInteger)
    cell_digest: str = Field(max_length=64)
    run_id: str = Field(max_length=32)
    repeat: int

    status: str = Field(max_length=16)
    failure_kind: str | None = Field(default=None, max_length=32)
    rankable: bool
    unranked_reason: str | None = Field(default=None, sa_type=Text)
    trust_level: int
    disturbed: bool = False
    ask_id: str | None = Field(default=None, max_length=32)
    verdicts: str = Field(sa_type=Text)
    moderation: str | None = Field(default=None, max_length=16)
    moderation_reason: str | None = Field(default=None, sa_type=Text)

    spread: float | None = None
    ns_per_sample: float | None = None
    samples_per_second: float | None = None
    epoch_ns: int | None = Field(default=None, sa_type=BigInteger)
    startup_ns: int | None = Field(default=None, sa_type=BigInteger)
    parameter_count: int | None = Field(default=None, sa_type=BigInteger)
    last_loss: float | None = None
    accuracy: float | None = None
    joules_per_sample: float | None = None
    energy_scope: str | None = Field(default=None, max_length=64)
    peak_memory_bytes: int | None = Field(default=None, sa_type=BigInteger)


class EnvironmentRow(Table, table=True):
    """The changes of an update are computed once for all results that share it."""

    __tablename__ = "environment"

    id: str = Field(primary_key=True, max_length=32)
    os: str = Field(max_length=16)
    os_version: str = Field(max_length=200)
    python: str = Field(max_length=64)
    agent: str = Field(max_length=64)
    framework_version: str | None = Field(default=None, max_length=64)
    driver: str | None = Field(default=None, max_length=64)
    cuda: str | None = Field(default=None, max_length=200)
