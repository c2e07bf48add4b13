"""Breaks of a log: which statement explains that entries are gone, and what went with them.

A statement explains the loss of what was seen before it was made, and of nothing later. So a server
cannot use it twice.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from bench_protocol.base.errors import ProtocolError
from bench_protocol.base.units import utc_text
from bench_protocol.signing import receipts
from bench_protocol.signing.breaks import LogBreak, open_break
from bench_protocol.signing.note import NoteKey
from bench_protocol.signing.receipts import Checkpoint, Receipt

from .log_receipts import parse_receipt
from .outbox import Entry, Outbox

# A server's clock may be ahead of this machine's by this much.
AHEAD = timedelta(minutes=5)


def explaining(
    statements: Iterable[str], key: NoteKey, seen: Checkpoint, seen_at: str, now: datetime
) -> tuple[LogBreak, str] | None:
    """The statement, made after this checkpoint was seen, that keeps fewer entries than it has; of
    several the one that keeps fewest.

    Raises:
        InvalidProof: one is not signed by this log, or says something else.
    """
    opened = [(open_break(text, key), text) for text in statements]
    latest = utc_text(now + AHEAD)
    later = [
        (one, text)
        for one, text in opened
        if seen_at < one.at <= latest and one.kept.size < seen.size
    ]
    return min(later, key=lambda pair: pair[0].kept.size, default=None)


def sent_to(outbox: Outbox, key: NoteKey) -> Iterator[tuple[Entry, Receipt, Checkpoint]]:
    """What was sent to this log, with its receipts and their checkpoints."""
    for entry in outbox.sent():
        answer = entry.answer or {}
        if "receipt" in answer:
            with suppress(ProtocolError):  # of another log
                receipt = parse_receipt(answer["receipt"])
                yield entry, receipt, receipts.open_checkpoint(receipt.checkpoint, key)
