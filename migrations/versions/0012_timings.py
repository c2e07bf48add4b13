"""Long and short timings are kept apart: results, aggregates and published figures say which.

Every row begins as short. Derived rows and published figures are made again by ``bench-server
migrate`` after this step.

Revision: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TABLES = ("measurement", "standing", "published_figure")
CHECK = "ck_measurement_timing_known"
INDEX = "ix_measurement_timing"


def upgrade() -> None:
    for table in TABLES:
        column = sa.Column("timing", sa.String(8), nullable=False, server_default="short")
        op.add_column(table, column)
    with op.batch_alter_table("measurement") as measurements:
        measurements.create_check_constraint(CHECK, "timing IN ('long', 'short')")
    op.create_index(INDEX, "measurement", ["timing", "received_at", "submission_id"])


def downgrade() -> None:
    op.drop_index(INDEX, "measurement")
    with op.batch_alter_table("measurement") as measurements:
        measurements.drop_constraint(CHECK, type_="check")
    for table in TABLES:
        op.drop_column(table, "timing")
