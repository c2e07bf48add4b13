"""Tables of asks: the set-ups that are wanted again."""

from sqlalchemy import BigInteger, Index
from sqlmodel import Field

from .base import InSetup, Table


class AskDay(Table, table=True):
    """A day (UTC, ISO 8601) whose asks were drawn, from the log's root at a size."""

    __tablename__ = "ask_day"

    day: str = Field(primary_key=True, max_length=10)
    root: str = Field(max_length=64)
    size: int = Field(sa_type=BigInteger)


class Ask(InSetup, Table, table=True):
    """A set-up that was drawn (:mod:`.asks`), kept for a week. ``result_id``: the
    result to be reproduced, if it is one. Drawn once: a reindex leaves these rows alone."""

    __tablename__ = "ask"
    __table_args__ = (Index(None, "day", "hardware_slug"), Index(None, "root", "hardware_slug"))

    id: str = Field(primary_key=True, max_length=32)
    day: str = Field(max_length=10)
    root: str = Field(max_length=64)
    reason: str = Field(max_length=16)
    result_id: str | None = Field(default=None, max_length=16)
