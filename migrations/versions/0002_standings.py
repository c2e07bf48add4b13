"""Standings, environments, and the indexes that let no page read all results.

The new tables and columns are derived: ``bench-server migrate`` fills them after this step.

Revision: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

OLD_INDEXES = {
    "ix_measurement_machine_id": ["machine_id"],
    "ix_measurement_workload_digest_rankable_batch_size": [
        "workload_digest", "rankable", "batch_size",
    ],
    "ix_measurement_hardware_slug_workload_digest": ["hardware_slug", "workload_digest"],
    "ix_measurement_received_at_submission_id": ["received_at", "submission_id"],
}
COUNTED = ["rankable", "ns_per_sample", "submission_id"]
NEWEST = ["received_at", "submission_id"]
NEW_INDEXES = {
    "ix_measurement_machine_standing": ["machine_standing", *COUNTED],
    "ix_measurement_environment_standing": ["environment_standing", *COUNTED],
    "ix_measurement_board": ["workload_digest", "batch_size", "precision", *COUNTED],
    "ix_measurement_unranked": ["workload_digest", "rankable", *NEWEST],
    "ix_measurement_machine": ["machine_id", "cell_digest", "started_at"],
    "ix_measurement_hardware": ["hardware_slug", *NEWEST],
    "ix_measurement_newest": NEWEST,
}
FEW_HAVE = ("joules_per_sample", "mfu", "accuracy")


def new_columns() -> tuple[sa.Column, ...]:
    return (
        sa.Column("owner", sa.String(80), nullable=False, server_default=""),
        sa.Column("machine_standing", sa.String(32), nullable=False, server_default=""),
        sa.Column("environment_standing", sa.String(32), nullable=False, server_default=""),
        sa.Column("environment_id", sa.String(32), nullable=False, server_default=""),
        sa.Column("joules_per_sample", sa.Float(), nullable=True),
        sa.Column("energy_scope", sa.String(64), nullable=True),
        sa.Column("mfu", sa.Float(), nullable=True),
    )


def upgrade() -> None:
    for name in OLD_INDEXES:
        op.drop_index(name, "measurement")
    for column in new_columns():
        op.add_column("measurement", column)
    for name, columns in NEW_INDEXES.items():
        op.create_index(name, "measurement", columns)
    for name in FEW_HAVE:
        there = sa.text(f"{name} IS NOT NULL")
        op.create_index(
            f"ix_measurement_{name}",
            "measurement",
            ["workload_digest", name, "submission_id"],
            sqlite_where=there,
            postgresql_where=there,
        )
    op.create_table(
        "environment",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("os", sa.String(16), nullable=False),
        sa.Column("os_version", sa.String(200), nullable=False),
        sa.Column("os_version_key", sa.String(80), nullable=True),
        sa.Column("python", sa.String(64), nullable=False),
        sa.Column("python_key", sa.String(80), nullable=True),
        sa.Column("agent", sa.String(64), nullable=False),
        sa.Column("agent_key", sa.String(80), nullable=True),
        sa.Column("framework_version", sa.String(64), nullable=True),
        sa.Column("framework_version_key", sa.String(80), nullable=True),
        sa.Column("driver", sa.String(64), nullable=True),
        sa.Column("driver_key", sa.String(80), nullable=True),
        sa.Column("cuda", sa.String(200), nullable=True),
        sa.Column("cuda_key", sa.String(80), nullable=True),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("gpu_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("cores", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_environment"),
    )
    op.create_table(
        "standing",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("level", sa.String(16), nullable=False),
        sa.Column("parent_id", sa.String(32), nullable=True),
        sa.Column("hardware", sa.String(400), nullable=False),
        sa.Column("hardware_slug", sa.String(400), nullable=False),
        sa.Column("workload", sa.String(64), nullable=False),
        sa.Column("workload_digest", sa.String(64), nullable=False),
        sa.Column("framework", sa.String(64), nullable=False),
        sa.Column("device", sa.String(8), nullable=False),
        sa.Column("recipe", sa.String(16), nullable=False),
        sa.Column("batch_size", sa.BigInteger(), nullable=False),
        sa.Column("precision", sa.String(32), nullable=False),
        sa.Column("data", sa.String(16), nullable=False),
        sa.Column("owner", sa.String(80), nullable=False),
        sa.Column("machine_id", sa.String(16), nullable=False),
        sa.Column("environment_id", sa.String(32), nullable=False),
        sa.Column("ns_per_sample", sa.Float(), nullable=False),
        sa.Column("fastest_ns", sa.Float(), nullable=False),
        sa.Column("slowest_ns", sa.Float(), nullable=False),
        sa.Column("children", sa.Integer(), nullable=False),
        sa.Column("middle_ns", sa.Float(), nullable=False),
        sa.Column("middle_id", sa.String(32), nullable=False),
        sa.Column("log_mean", sa.Float(), nullable=False),
        sa.Column("log_m2", sa.Float(), nullable=False),
        sa.Column("value_unit", sa.String(8), nullable=False),
        sa.Column("value_count", sa.Integer(), nullable=False),
        sa.Column("value_log_mean", sa.Float(), nullable=False),
        sa.Column("value_log_variance", sa.Float(), nullable=False),
        sa.Column("repeats", sa.Integer(), nullable=False),
        sa.Column("machines", sa.Integer(), nullable=False),
        sa.Column("owners", sa.Integer(), nullable=False),
        sa.Column("trust_level", sa.Integer(), nullable=False),
        sa.Column("newest_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("result_id", sa.String(16), nullable=False),
        sa.Column("spread", sa.Float(), nullable=False),
        sa.Column("accuracy", sa.Float(), nullable=True),
        sa.Column("joules_per_sample", sa.Float(), nullable=True),
        sa.Column("energy_scope", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_standing"),
        sa.CheckConstraint(
            "level IN ('environment', 'machine', 'owner', 'hardware', 'published')",
            name="ck_standing_level_known",
        ),
        sa.CheckConstraint("ns_per_sample > 0", name="ck_standing_has_time"),
        sa.CheckConstraint("children > 0", name="ck_standing_has_children"),
    )
    op.create_index("ix_standing_children", "standing", ["parent_id", "ns_per_sample", "id"])
    op.create_index(
        "ix_standing_board", "standing", ["level", "workload_digest", "batch_size", "precision"]
    )
    op.create_index(
        "ix_standing_hardware", "standing", ["level", "hardware_slug", "workload_digest"]
    )
    op.create_index("ix_standing_machine", "standing", ["level", "machine_id", "workload_digest"])


def downgrade() -> None:
    op.drop_table("standing")
    op.drop_table("environment")
    for name in (*NEW_INDEXES, *(f"ix_measurement_{column}" for column in FEW_HAVE)):
        op.drop_index(name, "measurement")
    with op.batch_alter_table("measurement") as batch:
        for column in new_columns():
            batch.drop_column(column.name)
    for name, columns in OLD_INDEXES.items():
        op.create_index(name, "measurement", columns)
