"""Check cosignatures of a log: the cosigned checkpoints are the log's own, and the cosignatures of
the witnesses that the auditor names verify."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from bench_protocol.base.errors import ProtocolError
from bench_protocol.signing import cosignatures, receipts
from bench_protocol.signing.cosignatures import WitnessKey
from bench_protocol.signing.note import NoteKey, split

from . import shown

PATH = "/api/v1/log/cosigned?limit=366"


def faults(
    fetch: Callable[[str], bytes],
    key: NoteKey,
    notes: Mapping[int, str],
    witnesses: Sequence[WitnessKey],
) -> Iterator[tuple[int | None, str]]:
    """Faults, each with the log index that it concerns.

    Args:
        notes: checkpoints by the index of the last entry in them, which the audit compares with
            the tree.
    """
    seen: set[str] = set()
    for one in shown.read(shown.COSIGNED, PATH, fetch(PATH))["checkpoints"]:
        size, note = one["size"], one["checkpoint"]
        try:
            receipts.open_checkpoint(note, key)
            signed = cosignatures.cosignatures(note, witnesses)
            same = split(note)[0] == _signed_then(notes, size)
        except ProtocolError as error:
            yield size - 1, f"its cosigned checkpoint does not verify: {error.detail}"
            continue
        if not same:
            yield size - 1, "witnesses signed another checkpoint than the log shows"
            continue
        seen |= {cosignature.witness for cosignature in signed}
    for witness in witnesses:
        if witness.name not in seen:
            yield None, f"no checkpoint is cosigned by {witness.name}"


def _signed_then(notes: Mapping[int, str], size: int) -> str | None:
    signed = notes.get(size - 1)
    return None if signed is None else split(signed)[0]
