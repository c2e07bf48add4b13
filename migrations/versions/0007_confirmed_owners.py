"""An index of the owners that are confirmed, who are few.

Revision: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_owner_confirmed",
        "owner",
        ["label"],
        sqlite_where=sa.text("confirmed = 1"),
        postgresql_where=sa.text("confirmed"),
    )


def downgrade() -> None:
    op.drop_index("ix_owner_confirmed", "owner")
