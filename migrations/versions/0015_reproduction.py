"""The spread between owners of each set-up, asks, and which ask a result answers.

Spreads are derived: ``bench-server migrate`` projects the log again after this step.

Revision: 0015
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "owner_spread",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("hardware_slug", sa.String(400), nullable=False),
        sa.Column("workload_digest", sa.String(64), nullable=False),
        sa.Column("framework", sa.String(64), nullable=False),
        sa.Column("device", sa.String(8), nullable=False),
        sa.Column("recipe", sa.String(16), nullable=False),
        sa.Column("batch_size", sa.BigInteger(), nullable=False),
        sa.Column("precision", sa.String(32), nullable=False),
        sa.Column("data", sa.String(16), nullable=False),
        sa.Column("timing", sa.String(8), nullable=False),
        sa.Column("owners", sa.Integer(), nullable=False),
        sa.Column("squares", sa.BigInteger(), nullable=False),
        sa.Column("degrees", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_owner_spread"),
    )
    op.create_index(
        "ix_owner_spread_hardware_slug_framework", "owner_spread", ["hardware_slug", "framework"]
    )
    op.create_table(
        "ask_day",
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("root", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day", name="pk_ask_day"),
    )
    op.create_table(
        "ask",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("root", sa.String(64), nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.Column("result_id", sa.String(16), nullable=True),
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
        sa.Column("timing", sa.String(8), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ask"),
    )
    op.create_index("ix_ask_day_hardware_slug", "ask", ["day", "hardware_slug"])
    op.create_index("ix_ask_root_hardware_slug", "ask", ["root", "hardware_slug"])
    for table in ("submission", "measurement"):
        op.add_column(table, sa.Column("ask_id", sa.String(32), nullable=True))


def downgrade() -> None:
    for table in ("measurement", "submission"):
        op.drop_column(table, "ask_id")
    op.drop_table("ask")
    op.drop_table("ask_day")
    op.drop_table("owner_spread")
