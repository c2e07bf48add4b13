"""Webhooks, and their messages that are not delivered yet.

Revision: 0019
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "webhook",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("url", sa.String(400), nullable=False),
        sa.Column("machine_id", sa.String(16), nullable=True),
        sa.Column("hardware_slug", sa.String(400), nullable=True),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("ranks", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", moment, nullable=True),
        sa.Column("failing_since", moment, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "machine_id IS NULL OR hardware_slug IS NULL", name="ck_webhook_one_subject"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_webhook"),
    )
    op.create_table(
        "webhook_message",
        sa.Column("webhook_id", sa.String(16), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("submission_id", sa.String(16), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhook.id"], name="fk_webhook_message_webhook_id_webhook"
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submission.id"],
            name="fk_webhook_message_submission_id_submission",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("webhook_id", "number", name="pk_webhook_message"),
    )
    op.create_index("ix_webhook_message_submission_id", "webhook_message", ["submission_id"])


def downgrade() -> None:
    op.drop_table("webhook_message")
    op.drop_table("webhook")
