"""Breaks of a log: which statement explains missing entries, and which results they take along.

A statement explains only the loss of entries that were seen before it was made, so a server cannot
use it twice.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from bench_protocol.base.errors import ProtocolError
from bench_protocol.base.format import plural
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
    """The statement that was made after this checkpoint was seen and keeps fewer entries than the
    checkpoint has; of several, the one that keeps the fewest. A text that is not this log's signed
    statement explains nothing: one damaged row of the server must not stop every agent.
    """
    opened = []
    for text in statements:
        with suppress(ProtocolError):
            opened.append((open_break(text, key), text))
    latest = utc_text(now + AHEAD)
    later = [
        (one, text)
        for one, text in opened
        if seen_at < one.at <= latest and one.kept.size < seen.size
    ]
    return min(later, key=lambda pair: pair[0].kept.size, default=None)


def kept_and_lost(
    outbox: Outbox, key: NoteKey, size: int
) -> tuple[dict[Checkpoint, str], list[Entry]]:
    """What was sent to this log: for entries that a loss after ``size`` entries kept the receipts'
    checkpoints, each with its note, and the other envelopes, but for withdrawn ones."""
    kept, lost = {}, []
    for entry, receipt, tree in _sent_to(outbox, key):
        if receipt.index < size:
            kept[tree] = receipt.checkpoint
        elif "withdrawn" not in (entry.answer or {}):
            lost.append(entry)
    return kept, lost


def sentences(server: str, stated: LogBreak, lost: int, submit: str) -> str:
    """What the user learns of a loss. ``lost``: results of this machine that ``submit`` posts
    again."""
    again = f"; to post them again: {submit}" if lost else ""
    since = "before" if stated.last == "none" else f"after {stated.last}"
    return (
        f"The log of {server} lost every entry from number {stated.kept.size} on, as it states "
        f"(signed {stated.at}): {stated.reason}. {plural(lost, 'result')} of this machine went "
        f"with them{again}. What you hid, showed, withdrew or revoked there {since} is lost too: "
        f"do it again. For a key that you rotated or enrolled then, ask the operator."
    )


def _sent_to(outbox: Outbox, key: NoteKey) -> Iterator[tuple[Entry, Receipt, Checkpoint]]:
    """What was sent to this log, each with its receipt and the receipt's checkpoint."""
    for entry in outbox.sent():
        answer = entry.answer or {}
        if "receipt" in answer:
            with suppress(ProtocolError):  # of another log
                receipt = parse_receipt(answer["receipt"])
                yield entry, receipt, receipts.open_checkpoint(receipt.checkpoint, key)
