"""The spread between owners of each set-up.

Its rows are derived: ``bench-server migrate`` projects the log again after this step.

Revision: 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
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


def downgrade() -> None:
    op.drop_table("owner_spread")
