"""Indexes for lists that few results fit: a run, a rare workload or framework, what does not count;
and for the machines of a hardware. Those that no question uses go, and what counts leaves the index
of what does not.

Revision: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

COLUMNS = ("key_id", "workload", "framework", "precision", "batch_size")
NEWEST = ["received_at", "submission_id"]
UNRANKED = {
    "sqlite_where": sa.text("rankable IS 0"),
    "postgresql_where": sa.text("rankable IS false"),
}
REPEAT = ("key_id", "run_id", "cell_digest", "repeat")
RUN_FIRST = ("run_id", "key_id", "cell_digest", "repeat")


def upgrade() -> None:
    _replace(REPEAT, RUN_FIRST)
    op.drop_index("ix_submission_key_id", "submission")
    op.drop_index("ix_measurement_owner", "measurement")
    op.drop_index("ix_measurement_unranked", "measurement")
    op.create_index(
        "ix_measurement_unranked", "measurement", ["workload_digest", *NEWEST], **UNRANKED
    )
    op.create_index("ix_measurement_unranked_newest", "measurement", NEWEST, **UNRANKED)
    for name in COLUMNS:
        op.create_index(f"ix_measurement_{name}", "measurement", [name, *NEWEST])
    op.create_index("ix_standing_machines", "standing", ["level", "hardware_slug", "machine_id"])


def downgrade() -> None:
    op.drop_index("ix_standing_machines", "standing")
    for name in (*COLUMNS, "unranked_newest", "unranked"):
        op.drop_index(f"ix_measurement_{name}", "measurement")
    op.create_index(
        "ix_measurement_unranked", "measurement", ["workload_digest", "rankable", *NEWEST]
    )
    op.create_index("ix_measurement_owner", "measurement", ["owner"])
    op.create_index("ix_submission_key_id", "submission", ["key_id"])
    _replace(RUN_FIRST, REPEAT)


def _replace(old: tuple[str, ...], new: tuple[str, ...]) -> None:
    with op.batch_alter_table("measurement") as measurements:
        measurements.drop_constraint(f"uq_measurement_{'_'.join(old)}", type_="unique")
        measurements.create_unique_constraint(f"uq_measurement_{'_'.join(new)}", list(new))
