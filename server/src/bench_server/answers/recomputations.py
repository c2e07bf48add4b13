"""The server's recomputations as the log has them, each with its receipt."""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from bench_protocol.training import recomputation

from ..db.tables import LogEntry, Submission
from ..ingest.columns import stored_result
from ..log import reader
from ..recompute import jobs
from .types.trust import ReceiptAnswer, envelope_document, receipt_answer


@dataclass(frozen=True)
class RecomputationsAnswer:
    """Recomputations in the order of the log, with their receipts."""

    recomputations: tuple[dict[str, Any], ...]
    receipts: tuple[ReceiptAnswer, ...]


def about(session: Session, submission: Submission) -> RecomputationsAnswer:
    job = recomputation.job(stored_result(submission.payload))
    stated = jobs.stated(session.connection(), [job.key] if job else [])
    indices = sorted(item.log_index for item in stated.values())
    found = session.exec(select(LogEntry).where(col(LogEntry.log_index).in_(indices)))
    entries = sorted(found, key=lambda entry: entry.log_index)
    opened = [reader.envelope_of(entry, None) for entry in entries]
    return RecomputationsAnswer(
        tuple(envelope_document(each) for each in opened if each is not None),
        tuple(receipt_answer(receipt) for receipt in reader.receipts(session, entries)),
    )
