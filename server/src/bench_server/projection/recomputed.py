"""Recomputations in the log: the results that waited for them are judged again."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from bench_protocol.payload.result import Result
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import Known

from ..checks import table as result_checks
from ..checks import verdicts as check_verdicts
from ..db.tables import Submission, table_of
from ..ingest import columns
from ..ranking.rows import RESULTS
from ..recompute import jobs
from . import decisions
from .entries import RecomputationEntry
from .touched import NOTHING, Touched


def judge_again(connection: Connection, entries: Sequence[RecomputationEntry]) -> Touched:
    """Note recomputations that follow each other in the log, and judge again the results that
    waited for them: those of each challenge and workload."""
    touched = NOTHING
    for entry in entries:
        jobs.note(connection, entry.log_index, entry.said)
    about = {(entry.said.challenge, entry.said.workload_digest) for entry in entries}
    for challenge, digest in sorted(about):
        rows = connection.execute(WAITING, {"challenge": challenge, "digest": digest}).all()
        results = {row.submission_id: columns.stored_result(row.payload) for row in rows}
        found = [recomputation.job(result) for result in results.values()]
        keys = [job.key for job in found if job]
        known = jobs.before(jobs.stated(connection, keys), entries[-1].log_index + 1)
        judged = [
            {"of": row.submission_id, "verdicts": _verdicts(row, results[row.submission_id], known)}
            for row in rows
        ]
        if judged:
            connection.execute(SET_VERDICTS, judged)
            c = RESULTS.c
            judged_again = (c.challenge_id == challenge) & (c.workload_digest == digest)
            touched |= decisions.settle(connection, judged_again)
    return touched


def _verdicts(row: Any, result: Result, known: Known) -> str:
    stored = check_verdicts.from_text(row.verdicts)
    bound = any(verdict.check == "challenge" and verdict.passed for verdict in stored)
    again = result_checks.of_result(result, known, bound)
    others = [verdict for verdict in stored if verdict.check not in result_checks.NAMES]
    return check_verdicts.as_text([*again, *others])


# Statements, built once.
_SUBMISSIONS = table_of(Submission)
SET_VERDICTS = update(RESULTS).where(RESULTS.c.submission_id == bindparam("of"))
WAITING = (
    select(RESULTS.c.submission_id, RESULTS.c.verdicts, _SUBMISSIONS.c.payload)
    .join(_SUBMISSIONS, _SUBMISSIONS.c.id == RESULTS.c.submission_id)
    .where(
        RESULTS.c.challenge_id == bindparam("challenge"),
        RESULTS.c.workload_digest == bindparam("digest"),
    )
    .order_by(RESULTS.c.submission_id)
)
