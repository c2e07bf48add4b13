"""Disturbed results stay out of figures that have others, and spreads say between what.

Derived rows are rebuilt by ``bench-server migrate`` after this step.

Revision: 0014
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

NEW_COLUMNS = {
    "spread_between": (sa.String(8), "blocks"),
    "machines_fastest_ns": (sa.Float, None),
    "machines_slowest_ns": (sa.Float, None),
    "disturbed": (sa.Boolean, sa.false()),
    "left_out": (sa.Integer, "0"),
}
INDEXES = {
    "standing": ("ix_standing_children", ["parent_id", "ns_per_sample", "id"]),
    "measurement": (
        "ix_measurement_run_standing",
        ["run_standing", "rankable", "ns_per_sample", "submission_id"],
    ),
}


def upgrade() -> None:
    _add("measurement", "disturbed")
    for name in NEW_COLUMNS:
        _add("standing", name)
    for table, (name, columns) in INDEXES.items():
        op.drop_index(name, table)
        op.create_index(name, table, [*columns, "disturbed"])


def downgrade() -> None:
    for table, (name, columns) in INDEXES.items():
        op.drop_index(name, table)
        op.create_index(name, table, columns)
    for name in NEW_COLUMNS:
        op.drop_column("standing", name)
    op.drop_column("measurement", "disturbed")


def _add(table: str, name: str) -> None:
    kind, default = NEW_COLUMNS[name]
    column = sa.Column(name, kind, nullable=default is None, server_default=default)
    op.add_column(table, column)
