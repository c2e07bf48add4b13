"""The transparency log: what an entry commits to, checkpoints, and receipts.

An entry is a salted commitment, so that its envelope can be erased and the tree stays complete. A
checkpoint is the log's signed size and root (C2SP tlog-checkpoint); a receipt proves
that an entry is in the tree of a checkpoint (C2SP tlog-proof).
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ..base.errors import InvalidProof
from . import merkle, note
from .envelope import Envelope

SALT_BYTES = 32
PROOF_HEADER = "c2sp.org/tlog-proof@v1"


def commitment(salt: bytes, envelope: Envelope) -> bytes:
    """The entry of an envelope: SHA-256(salt || payload's SHA-256 || key id || signature), 32
    bytes; key id and signature repeat for each signature, in the envelope's order."""
    digest = hashlib.sha256(salt + bytes.fromhex(envelope.payload_sha256))
    for signature in envelope.signatures:
        digest.update(bytes.fromhex(signature.key_id) + signature.value)
    return digest.digest()


@dataclass(frozen=True)
class Checkpoint:
    """The state of a log: ``size`` entries and the root over them."""

    origin: str
    size: int
    root: bytes

    def signed(self, key: Ed25519PrivateKey) -> str:
        root = base64.b64encode(self.root).decode()
        return note.sign(f"{self.origin}\n{self.size}\n{root}\n", self.origin, key)


def open_checkpoint(text: str, key: note.NoteKey) -> Checkpoint:
    """Read a checkpoint that this log signed.

    Raises:
        InvalidProof: another key signed it, or it is not this log's checkpoint.
    """
    checkpoint = parse_checkpoint(note.open_note(text, key))
    if checkpoint.origin != key.name:
        raise InvalidProof(
            f"a checkpoint of {checkpoint.origin}, not of {key.name}", field="checkpoint"
        )
    return checkpoint


def parse_checkpoint(text: str) -> Checkpoint:
    """Read the text of a checkpoint's note; its signatures are not verified here.

    Raises:
        InvalidProof: it is something else.
    """
    lines = text.split("\n")
    if len(lines) < 4 or not re.fullmatch(r"0|[1-9][0-9]{0,18}", lines[1]):
        raise InvalidProof("not a checkpoint", field="checkpoint")
    return Checkpoint(lines[0], int(lines[1]), _hash(lines[2]))


@dataclass(frozen=True)
class Receipt:
    """Proof that an entry is in the log. ``checkpoint`` is the note as the log signed it."""

    index: int
    salt: bytes
    path: tuple[bytes, ...]
    checkpoint: str

    @property
    def proof(self) -> str:
        hashes = "".join(f"{base64.b64encode(value).decode()}\n" for value in self.path)
        return f"{PROOF_HEADER}\nindex {self.index}\n{hashes}\n{self.checkpoint}"


def parse_proof(salt: bytes, text: str) -> Receipt:
    """Parse a receipt.

    Raises:
        InvalidProof: it is malformed.
    """
    head, _, checkpoint = text.partition("\n\n")
    lines = head.split("\n")
    if lines[0] != PROOF_HEADER:
        raise InvalidProof(f"a proof begins with {PROOF_HEADER}", field="proof")
    if len(lines) > 1 and lines[1].startswith("extra "):
        del lines[1]
    index = re.fullmatch(r"index (0|[1-9][0-9]{0,18})", lines[1]) if len(lines) > 1 else None
    if index is None or len(lines) > 66 or len(salt) != SALT_BYTES:
        raise InvalidProof("not a proof with an index and a salt of 32 bytes", field="proof")
    return Receipt(int(index[1]), salt, tuple(_hash(line) for line in lines[2:]), checkpoint)


def verify_receipt(receipt: Receipt, envelope: Envelope, key: note.NoteKey) -> Checkpoint:
    """Check that the log holds this envelope; its signatures are not verified here.

    Returns:
        The checkpoint that the receipt leads to.

    Raises:
        InvalidProof: the checkpoint is not this log's, or the envelope is not in it.
    """
    checkpoint = open_checkpoint(receipt.checkpoint, key)
    leaf = merkle.leaf_hash(commitment(receipt.salt, envelope))
    merkle.verify_inclusion(leaf, receipt.index, checkpoint.size, receipt.path, checkpoint.root)
    return checkpoint


def verify_growth(old: Checkpoint, new: Checkpoint, proof: Sequence[bytes]) -> None:
    """Check that the newer checkpoint's tree begins with the older one's.

    Raises:
        InvalidProof: it does not: the log has rewritten its history, or shows different ones.
    """
    if old.size > new.size:
        raise InvalidProof(
            f"the log had {old.size} entries and shows {new.size} now", field="checkpoint"
        )
    if old.size:
        merkle.verify_consistency(old.size, new.size, proof, old.root, new.root)


def _hash(text: str) -> bytes:
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        raw = b""
    if len(raw) != merkle.HASH_BYTES:
        raise InvalidProof("a hash is 32 bytes in padded base64", field="proof")
    return raw
