"""Add the rows of new results: outlier findings, answered asks, eligibility, jobs."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, update

from ..db.tables import EnvironmentRow, Submission, table_of
from ..db.upsert import insert_new
from ..ranking.aggregates import Stale
from ..ranking.rows import RESULTS
from ..recompute import jobs
from . import asks, compared
from .measurements import ResultEntry
from .touched import Touched


def add(connection: Connection, entries: Sequence[ResultEntry]) -> Touched:
    """Add results, none of which is compared with another one of them (:mod:`.compared`)."""
    new = [entry for entry in entries if entry.outlier is None]
    findings = compared.findings(connection, new)
    answers = _answers(connection, entries)
    rows = {
        entry.submission_id: entry.row(
            findings.get(entry.submission_id, entry.outlier),
            answers.get(entry.submission_id, entry.ask_id),
        )
        for entry in entries
    }
    connection.execute(NEW_MEASUREMENTS, list(rows.values()))
    jobs.add(connection, [job for entry in entries for job in entry.jobs])
    ranked = [entry for entry in entries if rows[entry.submission_id]["rankable"]]
    trusted = [entry for entry in ranked if rows[entry.submission_id]["trust_level"] >= 3]
    return Touched(
        Stale.above(entry.subject for entry in ranked),
        trusted=tuple(entry.subject for entry in trusted),
    )


def add_environments(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    insert_new(connection, _ENVIRONMENTS, rows)


def _answers(connection: Connection, entries: Sequence[ResultEntry]) -> dict[str, str]:
    """Find the asks that results answer, and store their ids, which are returned by result id."""
    answers = {
        entry.submission_id: ask_id
        for entry in entries
        if entry.ask_id is None
        and (asked := entry.asked) is not None
        and (ask_id := asks.answered(connection, asked, entry.subject))
    }
    if answers:
        rows = [{"of": id, "ask_id": ask_id} for id, ask_id in answers.items()]
        connection.execute(SET_ASK, rows)
    return answers


# Statements, built once.
_SUBMISSIONS, _ENVIRONMENTS = map(table_of, (Submission, EnvironmentRow))
NEW_MEASUREMENTS = insert(RESULTS)
SET_ASK = update(_SUBMISSIONS).where(_SUBMISSIONS.c.id == bindparam("of"))
