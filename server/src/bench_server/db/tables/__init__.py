"""Tables. Never wire models: what is sent or answered has models of its own.

The log is the truth: ``submission`` and ``log_entry`` hold what was received, byte for byte, and
``signing_key``, ``challenge``, ``invite`` and ``withdrawn`` what acceptance must know. ``left_out``
counts what is no entry of the log.
``measurement``, ``environment``, ``aggregate``, ``owner_spread`` and the kinds of ``owner`` are a
projection of the log, which the projector can rebuild. ``ask`` and ``ask_day`` are drawn once, and
kept. Every integer of nanoseconds, millijoules or bytes is a BigInteger. Migrations are written by
hand and compared with these tables by a test.
"""

from .aggregates import Aggregate, OwnerSpread, PublishedFigure
from .asks import Ask, AskDay
from .base import Table, UtcDateTime, table_of
from .results import EnvironmentRow, Measurement, Submission
from .trust import (
    Challenge,
    Cosignature,
    Invite,
    LeftOut,
    LogBreak,
    LogCheckpoint,
    LogEntry,
    LogNode,
    Owner,
    Projection,
    RecomputeJob,
    SigningKey,
    Withdrawn,
)

__all__ = [
    "Aggregate",
    "Ask",
    "AskDay",
    "Challenge",
    "Cosignature",
    "EnvironmentRow",
    "Invite",
    "LeftOut",
    "LogBreak",
    "LogCheckpoint",
    "LogEntry",
    "LogNode",
    "Measurement",
    "Owner",
    "OwnerSpread",
    "Projection",
    "PublishedFigure",
    "RecomputeJob",
    "SigningKey",
    "Submission",
    "Table",
    "UtcDateTime",
    "Withdrawn",
    "table_of",
]
