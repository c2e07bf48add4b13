"""Check what a log states of lost entries: signature, and whether the entries that are left are
those of the log."""

from collections.abc import Iterator, Sequence

from bench_protocol.base.errors import ProtocolError
from bench_protocol.base.units import utc_text
from bench_protocol.signing import merkle
from bench_protocol.signing.breaks import LogBreak, open_break
from bench_protocol.signing.note import NoteKey
from bench_protocol.signing.receipts import Checkpoint, open_checkpoint

from ..answers.log_entries import stated
from ..answers.types.trust import StatedBreak
from .chunk import Chunk, Fault
from .shown import Record


class Losses:
    """The statements of a log. ``stated``: those that verify, as the server shows them."""

    def __init__(self, shown: Sequence[StatedBreak], key: NoteKey) -> None:
        read = [(one, stated(one.statement, key)) for one in shown]
        self.stated = [right for _, right in read if right.damage is None]
        self._breaks = [open_break(one.statement, key) for one in self.stated]
        self._key = key
        self._details = [
            f"a statement of a loss does not verify: {right.damage}"
            if right.damage
            else "a statement of a loss is shown with other values than its note has"
            for one, right in read
            if right.damage or one != right
        ]

    def faults(self, chunk: Chunk) -> Iterator[Fault]:
        """The statements whose newest kept entry is in this chunk and not the log's."""
        for one in self._breaks:
            last = one.kept.size - 1
            if chunk.start <= last < chunk.end and not self._fits(one, chunk.records.get(last)):
                yield Fault(last, "a statement of a loss keeps another tree than the log has here")

    def other_faults(self, newest: Checkpoint) -> Iterator[Fault]:
        """The faults that are of no entry."""
        for detail in self._details:
            yield Fault(None, detail)
        for one in self._breaks:
            size = one.kept.size
            if size > newest.size:
                words = f"a statement of a loss keeps {size} entries, the log has {newest.size}"
                yield Fault(None, words)
            if not size and (one.kept.root, one.last) != (merkle.EMPTY_ROOT, "none"):
                yield Fault(None, "a statement of a loss keeps no entry, but a tree")

    def _fits(self, one: LogBreak, record: Record | None) -> bool:
        if record is None or record["checkpoint"] is None:
            return False
        try:
            tree = open_checkpoint(record["checkpoint"], self._key)
        except ProtocolError:
            return False
        return (one.kept, one.last) == (tree, utc_text(record["logged_at"]))
