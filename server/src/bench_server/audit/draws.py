"""Check the draws that left recomputations out: nobody may choose the root they follow from."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

from bench_protocol.signing import note, receipts

from .chunk import Fault
from .replay import LeftOut


def faults(
    left_out: Iterable[LeftOut], notes: Mapping[int, str], key: note.NoteKey, *, complete: bool
) -> Iterator[Fault]:
    """Find draws whose root is not that of the first checkpoint with the job's first result.

    Args:
        notes: the signed checkpoints, by the index of their last entry.
        complete: every entry is shown. Else the first result may be one that is not.
    """
    lasts = sorted(notes)
    for log_index, first_index, draw in left_out:
        at = bisect_right(lasts, first_index - 1)
        right = lasts[at] + 1 if at < len(lasts) else None
        if draw.size != right and (complete or right is None or draw.size > right):
            detail = f"its draw is by the checkpoint of {draw.size} entries, not of {right}"
            yield Fault(log_index, detail)
        elif draw.size - 1 not in notes:
            yield Fault(
                log_index, f"its draw is by a checkpoint of {draw.size}, which is not shown"
            )
        elif receipts.open_checkpoint(notes[draw.size - 1], key).root.hex() != draw.root:
            yield Fault(log_index, "its draw is by another root than its checkpoint has")
