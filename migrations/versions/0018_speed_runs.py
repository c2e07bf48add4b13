"""Witnessed runs: those in progress, their opened segments, and the statements in the log.

Revision: 0018
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

KIND = "ck_log_entry_kind_known"
OLD = "kind IN ('result', 'key_event', 'act', 'recomputation')"
NEW = "kind IN ('result', 'key_event', 'act', 'recomputation', 'speed_run')"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "speed_run",
        sa.Column("challenge_id", sa.String(32), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("nonce", sa.String(64), nullable=False),
        sa.Column("beacon", sa.String(64), nullable=False),
        sa.Column("draw", sa.String(64), nullable=False),
        sa.Column("begun_at", moment, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.Column("committed_at", moment, nullable=True),
        sa.Column("root", sa.String(64), nullable=True),
        sa.Column("segments", sa.Integer(), nullable=True),
        sa.Column("commitment", sa.Text(), nullable=True),
        sa.Column("opened", sa.Text(), nullable=True),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("leased_until", moment, nullable=True),
        sa.Column("outcome", sa.String(16), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("statement_index", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "outcome IN ('witnessed', 'refuted')", name="ck_speed_run_outcome_known"
        ),
        sa.PrimaryKeyConstraint("challenge_id", name="pk_speed_run"),
    )
    op.create_index("ix_speed_run_queue", "speed_run", ["complete", "outcome", "committed_at"])
    op.create_index("ix_speed_run_key", "speed_run", ["key_id", "begun_at"])
    op.create_table(
        "opened_segment",
        sa.Column("challenge_id", sa.String(32), nullable=False),
        sa.Column("segment", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("challenge_id", "segment", name="pk_opened_segment"),
    )
    op.create_table(
        "witnessed_speed",
        sa.Column("log_index", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("challenge_id", sa.String(32), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("machine_id", sa.String(16), nullable=False),
        sa.Column("framework", sa.String(64), nullable=False),
        sa.Column("device", sa.String(8), nullable=False),
        sa.Column("samples_per_second", sa.BigInteger(), nullable=False),
        sa.Column("training_ns", sa.BigInteger(), nullable=False),
        sa.Column("segments", sa.Integer(), nullable=False),
        sa.Column("begun_at", moment, nullable=False),
        sa.Column("committed_at", moment, nullable=False),
        sa.PrimaryKeyConstraint("log_index", name="pk_witnessed_speed"),
    )
    op.create_index("ix_witnessed_speed_machine", "witnessed_speed", ["machine_id", "log_index"])
    _kinds(NEW)


def downgrade() -> None:
    # The log keeps its entries. The version before knows no such statements, so it takes none.
    if not op.get_bind().scalar(sa.text("SELECT count(*) FROM log_entry WHERE kind = 'speed_run'")):
        _kinds(OLD)
    op.drop_table("witnessed_speed")
    op.drop_table("opened_segment")
    op.drop_table("speed_run")


def _kinds(condition: str) -> None:
    with op.batch_alter_table("log_entry") as entries:
        entries.drop_constraint(KIND, type_="check")
        entries.create_check_constraint(KIND, condition)
