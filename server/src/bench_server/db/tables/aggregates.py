"""Figures: of many results, and published ones."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index, Text
from sqlmodel import Field

from .base import InSetup, Table, UtcDateTime


class Aggregate(InSetup, Table, table=True):
    """A figure of one run, machine, owner or hardware in one set-up
    (:class:`bench_server.ranking.figures.Figure`), which the projector keeps up to date so that no
    page reads results. Runs have an environment, for filters by driver and version. One at level
    ``published`` is a copied figure, which no median of measured figures includes.

    ``parent_id`` is the aggregate above. ``value_...`` are
    :attr:`bench_server.ranking.figures.Figure.values`, ``machines_..._ns`` its range of machines,
    ``spread_between`` what its spread is between. ``owner_kind``: of an owner, as its place in
    :data:`bench_server.ranking.owners.OWNER_KINDS`; ``area``: of an owner, if it is known.
    """

    __tablename__ = "aggregate"
    __table_args__ = (
        CheckConstraint(
            "level IN ('run', 'machine', 'owner', 'hardware', 'published')", name="level_known"
        ),
        CheckConstraint("ns_per_sample > 0", name="has_time"),
        # All that a median needs of the children, because a row elsewhere in a large table costs
        # nine times as much as its entry here (docs/results.md#server).
        Index(
            "ix_aggregate_children",
            *("parent_id", "ns_per_sample", "id", "disturbed", "owner_kind"),
            *("fastest_ns", "slowest_ns", "repeats", "runs", "machines", "left_out"),
            *("trust_level", "newest_at", "area"),
        ),
        Index("ix_aggregate_board", "level", "workload_digest", "batch_size", "precision"),
        Index("ix_aggregate_hardware", "level", "hardware_slug", "workload_digest"),
        Index("ix_aggregate_machine", "level", "machine_id", "workload_digest"),
        Index("ix_aggregate_owner", "level", "owner", "machine_id"),
        Index("ix_aggregate_machines", "level", "hardware_slug", "machine_id"),
    )

    id: str = Field(primary_key=True, max_length=32)
    level: str = Field(max_length=16)
    parent_id: str | None = Field(default=None, max_length=32)

    owner: str = Field(default="", max_length=80)
    machine_id: str = Field(default="", max_length=16)
    run_id: str = Field(default="", max_length=32)
    environment_id: str = Field(default="", max_length=32)

    ns_per_sample: float
    fastest_ns: float
    slowest_ns: float
    value_unit: str = Field(max_length=8)
    value_count: int
    value_log_mean: float
    value_log_variance: float
    repeats: int
    runs: int
    machines: int
    owners: int
    confirmed_owners: int = 0
    established_owners: int = 0
    owner_kind: int = 0
    area: int | None = None
    trust_level: int
    newest_at: datetime = Field(sa_type=UtcDateTime)
    result_id: str = Field(max_length=16)
    spread: float
    spread_between: str = Field(max_length=8)
    machines_fastest_ns: float | None = None
    machines_slowest_ns: float | None = None
    disturbed: bool = False
    left_out: int = 0
    accuracy: float | None = None
    joules_per_sample: float | None = None
    energy_scope: str | None = Field(default=None, max_length=64)


class OwnerSpread(Table, table=True):
    """Differences of the confirmed owners of one set-up on one hardware, from their results of
    trust level 3 and above (:class:`bench_server.ranking.reproduction.Pairs`); only where two or
    more have one. ``id`` is that of the hardware's aggregate. A projection of the log."""

    __tablename__ = "owner_spread"
    __table_args__ = (Index(None, "hardware_slug", "framework"),)

    id: str = Field(primary_key=True, max_length=32)
    hardware_slug: str = Field(max_length=400)
    workload_digest: str = Field(max_length=64)
    framework: str = Field(max_length=64)
    device: str = Field(max_length=8)
    recipe: str = Field(max_length=16)
    batch_size: int = Field(sa_type=BigInteger)
    precision: str = Field(max_length=32)
    data: str = Field(max_length=16)
    timing: str = Field(max_length=8)
    owners: int
    squares: int = Field(sa_type=BigInteger)
    degrees: int


class PublishedFigure(InSetup, Table, table=True):
    """A figure that was copied from elsewhere, with its source
    (:mod:`bench_protocol.catalogue.published`)."""

    __tablename__ = "published_figure"
    __table_args__ = (CheckConstraint("ns_per_sample > 0", name="has_time"),)

    id: str = Field(primary_key=True, max_length=16)
    source: str = Field(max_length=100)
    url: str = Field(max_length=400)
    licence: str = Field(max_length=64)
    note: str = Field(sa_type=Text)
    source_table: str = Field(max_length=40)
    published_at: datetime = Field(sa_type=UtcDateTime)
    ns_per_sample: float
    accuracy: float | None = None
