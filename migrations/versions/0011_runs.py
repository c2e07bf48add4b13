"""Runs are the units of a figure: level ``run`` takes the place of ``environment``, and figures
count runs and confirmed owners.

Derived rows are rebuilt by ``bench-server migrate`` after this step.

Revision: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

COUNTED = ["rankable", "ns_per_sample", "submission_id"]
OLD = ("machine_standing", "environment_standing")
NEW = ("run_standing",)
NEW_COLUMNS = {"run_id": sa.String(32), "runs": sa.Integer(), "confirmed_owners": sa.Integer()}
LEVELS = "level IN ('{}', 'machine', 'owner', 'hardware', 'published')"


def upgrade() -> None:
    _measurements(OLD, NEW)
    _empty("run", ("environment", "machine", "owner", "hardware"))
    op.execute("UPDATE standing SET value_unit = 'runs' WHERE value_unit = 'repeats'")
    with op.batch_alter_table("standing") as standings:
        for name, kind in NEW_COLUMNS.items():
            default = "" if name == "run_id" else str(int(name == "runs"))
            standings.add_column(sa.Column(name, kind, nullable=False, server_default=default))


def downgrade() -> None:
    with op.batch_alter_table("standing") as standings:
        for name in NEW_COLUMNS:
            standings.drop_column(name)
    op.execute("UPDATE standing SET value_unit = 'repeats' WHERE value_unit = 'runs'")
    _empty("environment", ("run", "machine", "owner", "hardware"))
    _measurements(NEW, OLD)


def _measurements(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    for name in old:
        op.drop_index(f"ix_measurement_{name}", "measurement")
        op.drop_column("measurement", name)
    for name in new:
        column = sa.Column(name, sa.String(32), nullable=False, server_default="")
        op.add_column("measurement", column)
        op.create_index(f"ix_measurement_{name}", "measurement", [name, *COUNTED])


def _empty(lowest: str, gone: tuple[str, ...]) -> None:
    """Remove the aggregates of results, which the other version computes, and change the levels."""
    op.execute(sa.text(f"DELETE FROM standing WHERE level IN {gone}"))  # noqa: S608 - constants
    with op.batch_alter_table("standing") as standings:
        standings.drop_constraint("ck_standing_level_known", type_="check")
        standings.create_check_constraint("ck_standing_level_known", LEVELS.format(lowest))
