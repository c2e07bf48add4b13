"""Indexes for lists of results by device, recipe and data, of which there may be few or none.

Revision: 0006
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

COLUMNS = ("device", "recipe", "data")


def upgrade() -> None:
    for name in COLUMNS:
        op.create_index(
            f"ix_measurement_{name}", "measurement", [name, "received_at", "submission_id"]
        )


def downgrade() -> None:
    for name in COLUMNS:
        op.drop_index(f"ix_measurement_{name}", "measurement")
