"""Owners by cost: which owners are established, and how many of each kind a figure has.

Derived rows are rebuilt by ``bench-server migrate`` after this step.

Revision: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

NEW_COLUMNS = {
    "owner": {"established": (sa.Boolean, sa.false())},
    "standing": {"established_owners": (sa.Integer, "0"), "owner_kind": (sa.Integer, "0")},
}
CHILDREN = ["parent_id", "ns_per_sample", "id", "disturbed"]
TRUSTED = "ix_measurement_trusted"


def upgrade() -> None:
    for table, columns in NEW_COLUMNS.items():
        for name, (kind, default) in columns.items():
            op.add_column(table, sa.Column(name, kind, nullable=False, server_default=default))
    _index_children([*CHILDREN, "owner_kind"])
    op.create_index(
        TRUSTED,
        "measurement",
        ["owner", "received_at"],
        sqlite_where=sa.text("rankable = 1 AND trust_level >= 3"),
        postgresql_where=sa.text("rankable AND trust_level >= 3"),
    )


def downgrade() -> None:
    op.drop_index(TRUSTED, "measurement")
    _index_children(CHILDREN)
    for table, columns in NEW_COLUMNS.items():
        for name in columns:
            op.drop_column(table, name)


def _index_children(columns: list[str]) -> None:
    op.drop_index("ix_standing_children", "standing")
    op.create_index("ix_standing_children", "standing", columns)
