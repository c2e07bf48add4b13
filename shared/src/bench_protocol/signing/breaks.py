"""Statements of a break: a log states that its newest entries are lost, as after a restore.

A statement is a note signed with the log's key that names the tree that is left. Its lines differ
from those of a checkpoint, so neither is taken for the other.
"""

import base64
import re
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ..base.errors import InvalidProof
from ..base.names import unseen
from . import note
from .receipts import Checkpoint, parse_checkpoint

MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z"
REASON = r"[^\x00-\x1f\x7f-\x9f]{1,200}"
FORM = re.compile(
    rf"(\S+) log break\nkept ([0-9]+)\n(\S+)\nlast (none|{MOMENT})\nat ({MOMENT})\n"
    rf"reason ({REASON})\n"
)


@dataclass(frozen=True)
class LogBreak:
    """``kept``: what is left of the log. ``last``: when the newest kept entry was logged, or
    ``none``. ``at``: when the break was stated. Both are in the wire's form, by the server's clock.
    """

    kept: Checkpoint
    last: str
    at: str
    reason: str

    def signed(self, key: Ed25519PrivateKey) -> str:
        root = base64.b64encode(self.kept.root).decode()
        lines = (
            f"{self.kept.origin} log break", f"kept {self.kept.size}", root, f"last {self.last}",
            f"at {self.at}", f"reason {self.reason}",
        )  # fmt: skip
        return note.sign("".join(f"{line}\n" for line in lines), self.kept.origin, key)


def open_break(text: str, key: note.NoteKey) -> LogBreak:
    """Read a statement that this log signed.

    Raises:
        InvalidProof: another key signed it, or it is not this log's statement of a break.
    """
    match = FORM.fullmatch(note.open_note(text, key))
    if match is None or match[1] != key.name or unseen(match[6]):
        raise InvalidProof("not a statement of a break of this log", field="break")
    kept = parse_checkpoint(f"{match[1]}\n{match[2]}\n{match[3]}\n")
    return LogBreak(kept, match[4], match[5], match[6])
