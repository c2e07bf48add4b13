"""Tables. Never wire models: what is sent or answered has models of its own.

The log is the truth: ``submission`` and ``log_entry`` hold what was received, byte for byte, and
``signing_key``, ``challenge``, ``invite`` and ``withdrawn`` what acceptance must know.
``measurement``, ``environment``, ``standing``, ``witnessed_speed`` and ``owner.confirmed`` are a
projection of the log, which the projector can rebuild. ``speed_run`` and ``opened_segment`` hold
witnessed runs until they are judged. Every integer of nanoseconds, millijoules or bytes is a
BigInteger. Migrations are written by hand and compared with these tables by a test.
"""

from .aggregates import Aggregate, PublishedFigure
from .base import Table, UtcDateTime, table_of
from .results import EnvironmentRow, Measurement, Submission
from .speed_runs import OpenedSegment, SpeedRunRow, WitnessedSpeed
from .trust import (
    Challenge,
    Invite,
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
    "Challenge",
    "EnvironmentRow",
    "Invite",
    "LogCheckpoint",
    "LogEntry",
    "LogNode",
    "Measurement",
    "OpenedSegment",
    "Owner",
    "Projection",
    "PublishedFigure",
    "RecomputeJob",
    "SigningKey",
    "SpeedRunRow",
    "Submission",
    "Table",
    "UtcDateTime",
    "Withdrawn",
    "WitnessedSpeed",
    "table_of",
]
