"""Check what others signed of a log: the checkpoints are the log's own, and the signatures verify.

Only signatures of witnesses and authorities that the auditor names are checked.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from cryptography.x509 import Certificate

from bench_protocol.base.errors import ProtocolError
from bench_protocol.signing import cosignatures, receipts
from bench_protocol.signing.cosignatures import WitnessKey
from bench_protocol.signing.note import NoteKey, split

from ..log import stamps
from . import shown

PATH = "/api/v1/log/countersigned?limit=366"


@dataclass(frozen=True)
class Trusted:
    """Whom the auditor trusts: keys of witnesses, and root certificates of time-stamp
    authorities."""

    witnesses: tuple[WitnessKey, ...] = ()
    certificates: tuple[Certificate, ...] = ()


NOBODY = Trusted()


def faults(
    fetch: Callable[[str], bytes],
    key: NoteKey,
    notes: Mapping[int, str],
    trusted: Trusted,
) -> Iterator[tuple[int | None, str]]:
    """What is wrong, with the log index that it concerns.

    Args:
        notes: checkpoints by the index of the last entry in them, which the audit compares with
            the tree.
    """
    seen: set[str] = set()
    stamped = False
    for one in shown.read(shown.COUNTERSIGNED, PATH, fetch(PATH))["checkpoints"]:
        size = one["size"]
        try:
            note, text = one["checkpoint"], split(one["note"])[0]
            receipts.open_checkpoint(one["note"], key)
            signed = cosignatures.cosignatures(note, trusted.witnesses)
            same = split(note)[0] == text == _signed_then(notes, size)
        except ProtocolError as error:
            yield size - 1, f"its countersigned checkpoint does not verify: {error.detail}"
            continue
        if not same:
            yield size - 1, "others signed another checkpoint than the log shows"
            continue
        for found in signed:
            if found.verified:
                seen.add(found.witness)
            else:
                yield None, f"{found.witness}: this machine cannot verify {found.algorithm}"
        for stamp in one["stamps"] if trusted.certificates else ():
            try:
                stamps.verify(
                    base64.b64decode(stamp["response"], validate=True),
                    one["note"],
                    trusted.certificates,
                )
                stamped = True
            except ValueError as error:  # NoStamp, or no base64
                yield size - 1, f"{stamp['authority']}: {error}"
    for witness in trusted.witnesses:
        if witness.name not in seen:
            yield None, f"no checkpoint is cosigned by {witness.name}"
    if trusted.certificates and not stamped:
        yield None, "no checkpoint has a time-stamp under these certificates"


def _signed_then(notes: Mapping[int, str], size: int) -> str | None:
    """The text of the checkpoint that the log signed at a size."""
    signed = notes.get(size - 1)
    return None if signed is None else split(signed)[0]
