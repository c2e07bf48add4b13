"""Tables. Never wire models: what is sent or answered has models of its own.

``submission`` holds what was received, byte for byte, and what only the server could observe then;
``measurement`` is an index of it that can be rebuilt (:mod:`.columns`). Every integer of
nanoseconds, millijoules or bytes is a BigInteger. Migrations are written by hand and compared with
these tables by a test.
"""

from .aggregates import Aggregate, PublishedFigure
from .base import NewRow, Table, UtcDateTime
from .results import EnvironmentRow, Measurement, Submission
from .trust import Challenge, Invite, LogCheckpoint, LogEntry, LogNode, Owner, SigningKey, Withdrawn

__all__ = [
    "Aggregate",
    "Challenge",
    "EnvironmentRow",
    "Invite",
    "LogCheckpoint",
    "LogEntry",
    "LogNode",
    "Measurement",
    "NewRow",
    "Owner",
    "PublishedFigure",
    "SigningKey",
    "Submission",
    "Table",
    "UtcDateTime",
    "Withdrawn",
]
