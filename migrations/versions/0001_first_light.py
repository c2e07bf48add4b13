"""First light: keys, submissions and the measurements derived from them.

Revision: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "signing_key",
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("spki", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("display_name", sa.String(80), nullable=True),
        sa.Column("event_payload", sa.LargeBinary(), nullable=False),
        sa.Column("event_signature", sa.LargeBinary(), nullable=False),
        sa.Column("enrolled_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key_id", name="pk_signing_key"),
        sa.CheckConstraint("length(key_id) = 64", name="ck_signing_key_key_id_is_sha256"),
        sa.CheckConstraint(
            "status IN ('active', 'revoked')", name="ck_signing_key_status_known"
        ),
    )
    op.create_table(
        "submission",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("payload_sha256", sa.String(64), nullable=False),
        sa.Column("payload_type", sa.String(200), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_submission"),
        sa.ForeignKeyConstraint(
            ["key_id"], ["signing_key.key_id"], name="fk_submission_key_id_signing_key"
        ),
        sa.UniqueConstraint("payload_sha256", name="uq_submission_payload_sha256"),
        sa.CheckConstraint("length(id) = 16", name="ck_submission_id_has_16_digits"),
        sa.CheckConstraint(
            "length(payload_sha256) = 64", name="ck_submission_payload_sha256_is_sha256"
        ),
    )
    op.create_index("ix_submission_key_id", "submission", ["key_id"])
    op.create_index("ix_submission_received_at_id", "submission", ["received_at", "id"])
    op.create_table(
        "measurement",
        sa.Column("submission_id", sa.String(16), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("machine_id", sa.String(16), nullable=False),
        sa.Column("hardware", sa.String(400), nullable=False),
        sa.Column("hardware_slug", sa.String(400), nullable=False),
        sa.Column("workload", sa.String(64), nullable=False),
        sa.Column("workload_digest", sa.String(64), nullable=False),
        sa.Column("framework", sa.String(64), nullable=False),
        sa.Column("framework_version", sa.String(64), nullable=True),
        sa.Column("device", sa.String(8), nullable=False),
        sa.Column("device_index", sa.BigInteger(), nullable=False),
        sa.Column("recipe", sa.String(16), nullable=False),
        sa.Column("batch_size", sa.BigInteger(), nullable=False),
        sa.Column("precision", sa.String(32), nullable=False),
        sa.Column("data", sa.String(16), nullable=False),
        sa.Column("cell_digest", sa.String(64), nullable=False),
        sa.Column("run_id", sa.String(32), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("failure_kind", sa.String(32), nullable=True),
        sa.Column("rankable", sa.Boolean(), nullable=False),
        sa.Column("unranked_reason", sa.Text(), nullable=True),
        sa.Column("trust_level", sa.Integer(), nullable=False),
        sa.Column("verdicts", sa.Text(), nullable=False),
        sa.Column("layers", sa.String(16), nullable=True),
        sa.Column("block_count", sa.Integer(), nullable=True),
        sa.Column("steps_per_block", sa.BigInteger(), nullable=True),
        sa.Column("block_median_ns", sa.BigInteger(), nullable=True),
        sa.Column("spread", sa.Float(), nullable=True),
        sa.Column("ns_per_sample", sa.Float(), nullable=True),
        sa.Column("samples_per_second", sa.Float(), nullable=True),
        sa.Column("epoch_ns", sa.BigInteger(), nullable=True),
        sa.Column("startup_ns", sa.BigInteger(), nullable=True),
        sa.Column("parameter_count", sa.BigInteger(), nullable=True),
        sa.Column("last_loss", sa.Float(), nullable=True),
        sa.Column("accuracy", sa.Float(), nullable=True),
        sa.Column("peak_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("energy_mj", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("submission_id", name="pk_measurement"),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submission.id"],
            name="fk_measurement_submission_id_submission",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["key_id"], ["signing_key.key_id"], name="fk_measurement_key_id_signing_key"
        ),
        sa.UniqueConstraint(
            "key_id",
            "run_id",
            "cell_digest",
            "repeat",
            name="uq_measurement_key_id_run_id_cell_digest_repeat",
        ),
        sa.CheckConstraint(
            "status IN ('measured', 'failed')", name="ck_measurement_status_known"
        ),
        sa.CheckConstraint("data IN ('real', 'generated')", name="ck_measurement_data_known"),
        sa.CheckConstraint(
            "device IN ('metal', 'cuda', 'cpu')", name="ck_measurement_device_known"
        ),
        sa.CheckConstraint("batch_size > 0", name="ck_measurement_batch_size_positive"),
        sa.CheckConstraint(
            "trust_level BETWEEN 0 AND 4", name="ck_measurement_trust_level_known"
        ),
        sa.CheckConstraint(
            "NOT rankable OR ns_per_sample > 0", name="ck_measurement_rankable_has_time"
        ),
        sa.CheckConstraint(
            "rankable OR unranked_reason IS NOT NULL", name="ck_measurement_unranked_has_reason"
        ),
    )
    op.create_index("ix_measurement_machine_id", "measurement", ["machine_id"])
    op.create_index(
        "ix_measurement_workload_digest_rankable_batch_size",
        "measurement",
        ["workload_digest", "rankable", "batch_size"],
    )
    op.create_index(
        "ix_measurement_hardware_slug_workload_digest",
        "measurement",
        ["hardware_slug", "workload_digest"],
    )
    op.create_index(
        "ix_measurement_received_at_submission_id", "measurement", ["received_at", "submission_id"]
    )


def downgrade() -> None:
    op.drop_table("measurement")
    op.drop_table("submission")
    op.drop_table("signing_key")
