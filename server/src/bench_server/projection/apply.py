"""Apply a batch of log entries in their order: rows first, then what these touch.

Each stage changes rows and returns what it touched (:class:`.touched.Touched`). Trust levels, kinds
of owners and aggregates are computed once, at the end of the batch. Owners alone are computed
before new results too, because these are compared with the figures of owners.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection

from ..ranking import owners
from . import compared, decisions, new_results, recomputed
from .entries import Entry, KeyEventEntry, RecomputationEntry
from .measurements import ResultEntry
from .touched import NOTHING, Touched, refresh_all, refresh_owners


def apply_entries(connection: Connection, entries: Sequence[Entry]) -> None:
    touched = NOTHING
    for kind, group in groupby(entries, key=type):
        together: list[Any] = list(group)
        if kind is ResultEntry:
            touched = _add_results(connection, touched, together)
        elif kind is RecomputationEntry:
            touched |= recomputed.judge_again(connection, together)
        elif kind is KeyEventEntry:
            for entry in together:
                touched |= decisions.key_event(connection, entry)
        else:
            for entry in together:
                touched |= decisions.act(connection, entry)
    refresh_all(connection, touched)


def _add_results(
    connection: Connection, touched: Touched, entries: Sequence[ResultEntry]
) -> Touched:
    """Add results in parts, so that an outlier is compared with all earlier entries, however the
    log is cut into batches."""
    labels = {entry.subject.owner for entry in entries if entry.outlier is None}
    for part in compared.independent(entries, owners.first_trusted(connection, labels)):
        touched = refresh_owners(connection, touched)
        touched |= new_results.add(connection, part)
    return touched
