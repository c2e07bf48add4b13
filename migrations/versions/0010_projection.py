"""Accept and project: what acceptance must know moves to ``submission``, the projector keeps its
position, and derived tables lose what only incremental medians needed.

Derived rows are rebuilt by ``bench-server migrate`` after this step.

Revision: 0010
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

COPIED = ("run_id", "cell_digest", "repeat", "challenge_id")
RUN = ["run_id", "key_id", "cell_digest", "repeat"]
CHALLENGE = ["challenge_id", "cell_digest", "repeat"]
MEDIAN_COLUMNS = {
    "children": sa.Integer,
    "middle_ns": sa.Float,
    "middle_id": lambda: sa.String(32),
    "log_mean": sa.Float,
    "log_m2": sa.Float,
}
FOREIGN_KEYS = {"submission_id": "submission.id", "key_id": "signing_key.key_id"}


def upgrade() -> None:
    op.create_table(
        "projection",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("stopped_reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_projection"),
        sa.CheckConstraint("id = 1", name="ck_projection_one_row"),
    )
    for name, kind in zip(
        COPIED, (sa.String(32), sa.String(64), sa.Integer(), sa.String(32)), strict=True
    ):
        op.add_column("submission", sa.Column(name, kind, nullable=True))
    values = ", ".join(
        f"{name} = (SELECT m.{name} FROM measurement m WHERE m.submission_id = submission.id)"
        for name in COPIED
    )
    op.execute(f"UPDATE submission SET {values}")
    with op.batch_alter_table("submission") as submissions:
        for name in COPIED[:-1]:
            submissions.alter_column(name, nullable=False)
        for columns in (RUN, CHALLENGE):
            submissions.create_unique_constraint(f"uq_submission_{'_'.join(columns)}", columns)
    with op.batch_alter_table("measurement") as measurements:
        for columns in (RUN, CHALLENGE):
            measurements.drop_constraint(f"uq_measurement_{'_'.join(columns)}", type_="unique")
        for name, target in FOREIGN_KEYS.items():
            measurements.drop_constraint(_foreign_key(name, target), type_="foreignkey")
    with op.batch_alter_table("withdrawn") as withdrawn:
        withdrawn.add_column(sa.Column("act_index", sa.BigInteger(), nullable=True))
        withdrawn.create_unique_constraint("uq_withdrawn_act_index", ["act_index"])
    with op.batch_alter_table("standing") as standings:
        standings.drop_constraint("ck_standing_has_children", type_="check")
        for name in MEDIAN_COLUMNS:
            standings.drop_column(name)


def downgrade() -> None:
    # The version before computes these columns again: bench-server reindex.
    with op.batch_alter_table("standing") as standings:
        for name, kind in MEDIAN_COLUMNS.items():
            standings.add_column(sa.Column(name, kind(), nullable=False, server_default="1"))
        standings.create_check_constraint("ck_standing_has_children", "children > 0")
    with op.batch_alter_table("withdrawn") as withdrawn:
        withdrawn.drop_constraint("uq_withdrawn_act_index", type_="unique")
        withdrawn.drop_column("act_index")
    op.execute("DELETE FROM measurement WHERE submission_id NOT IN (SELECT id FROM submission)")
    with op.batch_alter_table("measurement") as measurements:
        for columns in (RUN, CHALLENGE):
            measurements.create_unique_constraint(f"uq_measurement_{'_'.join(columns)}", columns)
        for name, target in FOREIGN_KEYS.items():
            table, column = target.split(".")
            ondelete = "CASCADE" if name == "submission_id" else None
            measurements.create_foreign_key(
                _foreign_key(name, target), table, [name], [column], ondelete=ondelete
            )
    with op.batch_alter_table("submission") as submissions:
        for columns in (RUN, CHALLENGE):
            submissions.drop_constraint(f"uq_submission_{'_'.join(columns)}", type_="unique")
        for name in COPIED:
            submissions.drop_column(name)
    op.drop_table("projection")


def _foreign_key(column: str, target: str) -> str:
    return f"fk_measurement_{column}_{target.split('.')[0]}"
