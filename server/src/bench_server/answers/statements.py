"""Statements of the server as the log has them, each with its receipt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from bench_protocol.training import recomputation

from ..db.tables import LogEntry, Submission
from ..ingest.columns import stored_result
from ..log import reader
from ..recompute import jobs
from .types import ReceiptAnswer, envelope_document, receipt_answer


@dataclass(frozen=True)
class StatementsAnswer:
    """Statements in the order of the log. ``receipts``: the proof that the log has each."""

    statements: tuple[dict[str, Any], ...]
    receipts: tuple[ReceiptAnswer, ...]


def of_entries(session: Session, indices: Sequence[int]) -> StatementsAnswer:
    """The statements of these entries, in this order."""
    found = session.exec(select(LogEntry).where(col(LogEntry.log_index).in_(indices)))
    entries = {entry.log_index: entry for entry in found}
    ordered = [entries[index] for index in indices]
    opened = [reader.envelope_of(entry, None) for entry in ordered]
    return StatementsAnswer(
        tuple(envelope_document(each) for each in opened if each is not None),
        tuple(receipt_answer(receipt) for receipt in reader.receipts(session, ordered)),
    )


def about(session: Session, submission: Submission) -> StatementsAnswer:
    """What the server has stated about the seeded jobs of a result."""
    keys = [job.key for job in recomputation.jobs(stored_result(submission.payload))]
    stated = jobs.stated(session.connection(), keys)
    return of_entries(session, sorted(item.log_index for item in stated.values()))
