"""All that a median needs of an aggregate's children is in their index.

Revision: 0020
"""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

NAME = "ix_standing_children"
OLD = ["parent_id", "ns_per_sample", "id", "disturbed", "owner_kind"]
NEW = [
    *OLD,
    *("fastest_ns", "slowest_ns", "repeats", "runs", "machines", "left_out"),
    *("trust_level", "newest_at"),
]


def upgrade() -> None:
    _index(NEW)


def downgrade() -> None:
    _index(OLD)


def _index(columns: list[str]) -> None:
    op.drop_index(NAME, table_name="standing")
    op.create_index(NAME, "standing", columns)
