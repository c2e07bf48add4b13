"""Recomputation: the queue of seeded jobs, and the server's statements in the log.

``bench-server migrate`` projects the log again after this step, which fills the queue.

Revision: 0013
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

KIND = "ck_log_entry_kind_known"
OLD = "kind IN ('result', 'key_event', 'act')"
NEW = "kind IN ('result', 'key_event', 'act', 'recomputation')"
CHALLENGE = "ix_measurement_challenge"


def upgrade() -> None:
    op.create_table(
        "recompute_job",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("seed", sa.String(32), nullable=False),
        sa.Column("batch_size", sa.BigInteger(), nullable=False),
        sa.Column("challenge_id", sa.String(32), nullable=False),
        sa.Column("nonce", sa.String(64), nullable=False),
        sa.Column("workload", sa.String(64), nullable=False),
        sa.Column("workload_digest", sa.String(64), nullable=False),
        sa.Column("purpose", sa.String(16), nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("first_index", sa.BigInteger(), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("statement_index", sa.BigInteger(), nullable=True),
        sa.Column("processor_seconds", sa.Float(), nullable=True),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_recompute_job"),
    )
    queue = ["statement_index", "first_index", "id"]
    op.create_index("ix_recompute_job_queue", "recompute_job", queue)
    op.create_index("ix_recompute_job_spent", "recompute_job", ["key_id", "settled_at"])
    op.create_index(CHALLENGE, "measurement", ["challenge_id", "workload_digest"])
    _kinds(NEW)


def downgrade() -> None:
    # The log keeps its entries. The version before knows no statements, so it takes none.
    if not op.get_bind().scalar(
        sa.text("SELECT count(*) FROM log_entry WHERE kind = 'recomputation'")
    ):
        _kinds(OLD)
    op.drop_index(CHALLENGE, "measurement")
    op.drop_table("recompute_job")


def _kinds(condition: str) -> None:
    with op.batch_alter_table("log_entry") as entries:
        entries.drop_constraint(KIND, type_="check")
        entries.create_check_constraint(KIND, condition)
