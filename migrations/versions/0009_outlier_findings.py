"""What the outlier check found of a result at acceptance, beside what was received: it depends on
results of other owners, which may be erased later.

Stored verdicts are the only record of it, so it is taken from them before anything rebuilds them.

Revision: 0009
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

BATCH = 1000
SOME = sa.text(
    "SELECT submission_id, verdicts FROM measurement WHERE submission_id > :last"
    " ORDER BY submission_id LIMIT :batch"
)
STORE = sa.text("UPDATE submission SET outlier = :outlier WHERE id = :id")


def upgrade() -> None:
    op.add_column("submission", sa.Column("outlier", sa.Text(), nullable=True))
    db, last = op.get_bind(), ""
    while rows := db.execute(SOME, {"last": last, "batch": BATCH}).all():
        found = [{"id": id, "outlier": finding} for id, text in rows if (finding := outlier(text))]
        if found:
            db.execute(STORE, found)
        last = rows[-1].submission_id


def downgrade() -> None:
    with op.batch_alter_table("submission") as submissions:
        submissions.drop_column("outlier")


def outlier(verdicts: str) -> str | None:
    """The finding of the outlier check among the verdicts on a result."""
    for verdict in json.loads(verdicts):
        if verdict["check"] == "outlier":
            names = ("passed", "sentence", "figures", "checked")
            return json.dumps({name: verdict[name] for name in names if name in verdict})
    return None
