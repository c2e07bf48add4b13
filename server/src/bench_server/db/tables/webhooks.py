"""Tables of webhooks: where messages are posted, and those that are not delivered yet."""

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Text
from sqlmodel import Field

from .base import Table, UtcDateTime


class Webhook(Table, table=True):
    """An address that the operator registered, for one machine, one hardware or everything.

    Log entries before ``position`` are turned into messages. ``ranks``: the ranks that the last
    message about them left, JSON, by workload and hardware's slug. ``attempts``: failed ones of the
    oldest message, which is sent again at ``next_attempt_at``. ``failing_since``: the first failed
    attempt since something was delivered. ``disabled``: nothing more is sent.
    """

    __tablename__ = "webhook"
    __table_args__ = (
        CheckConstraint("machine_id IS NULL OR hardware_slug IS NULL", name="one_subject"),
    )

    id: str = Field(primary_key=True, max_length=16)
    url: str = Field(max_length=400)
    machine_id: str | None = Field(default=None, max_length=16)
    hardware_slug: str | None = Field(default=None, max_length=400)
    created_at: datetime = Field(sa_type=UtcDateTime)
    position: int = Field(sa_type=BigInteger)
    ranks: str = Field(default="{}", sa_type=Text)
    attempts: int = 0
    next_attempt_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
    failing_since: datetime | None = Field(default=None, sa_type=UtcDateTime)
    last_error: str | None = Field(default=None, sa_type=Text)
    disabled: bool = False


class WebhookMessage(Table, table=True):
    """A message that a webhook's receiver has not accepted yet. ``number``: its place among those
    of its webhook. ``body``: JSON, as it is signed. ``submission_id``: the result that it is about;
    a withdrawal erases the message with it."""

    __tablename__ = "webhook_message"

    webhook_id: str = Field(primary_key=True, max_length=16, foreign_key="webhook.id")
    number: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    id: str = Field(max_length=40)
    submission_id: str | None = Field(
        default=None, max_length=16, foreign_key="submission.id", ondelete="CASCADE", index=True
    )
    body: str = Field(sa_type=Text)
