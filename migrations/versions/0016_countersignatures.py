"""Countersignatures of daily checkpoints: time-stamps and cosignatures of witnesses.

Revision: 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

INDEX = "ix_countersignature_size"


def upgrade() -> None:
    op.create_table(
        "countersignature",
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("signer", sa.String(400), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("signed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("day", "kind", "signer", name="pk_countersignature"),
        sa.CheckConstraint(
            "kind IN ('stamp', 'cosignature')", name="ck_countersignature_kind_known"
        ),
    )
    op.create_index(INDEX, "countersignature", ["size"])


def downgrade() -> None:
    op.drop_index(INDEX, "countersignature")
    op.drop_table("countersignature")
