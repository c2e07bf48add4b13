"""Cosignatures of checkpoints by witnesses (C2SP tlog-cosignature), by Ed25519.

A witness signs a checkpoint only if the log grew to it from the last one that it signed. So a log
that shows different histories to different readers needs different witnesses too. An Ed25519
cosignature (``cosignature/v1``) signs the time and the text of the checkpoint.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ..base.errors import InvalidProof
from .note import MAX_SIGNATURES, NoteKey, parse_key, split
from .receipts import parse_checkpoint

# The byte of the signature type (C2SP signed-note).
COSIGNATURE_V1 = b"\x04"
TIMESTAMP_BYTES = 8
SIGNATURE_BYTES = 64
LATEST = 2**63 - 1


@dataclass(frozen=True)
class WitnessKey(NoteKey):
    """The key of a witness."""

    kind: bytes = COSIGNATURE_V1


@dataclass(frozen=True)
class Cosignature:
    """A cosignature. ``at``: seconds since 1970 by the witness's clock. ``line``: the signature
    line, with its newline."""

    witness: str
    at: int
    line: str


def parse_witness_key(text: str) -> WitnessKey:
    """Read a verifier key of a witness. Raises InvalidProof, as :func:`.note.parse_key`."""
    key = parse_key(text, COSIGNATURE_V1, "witness")
    return WitnessKey(key.name, key.public_key)


def cosignatures(note: str, keys: Iterable[WitnessKey]) -> tuple[Cosignature, ...]:
    """The cosignatures of a checkpoint by these witnesses, in their order in the note. Lines of
    other keys are ignored; the log's own signature is not verified here.

    Raises:
        InvalidProof: the note is malformed, or a line of one of these keys does not verify.
    """
    text, lines = split(note)
    parse_checkpoint(text)
    by_name = {(key.name, key.hint): key for key in keys}
    verified = []
    for line in lines:
        key = by_name.get((line.name, line.raw[:4]))
        if key is not None:
            verified.append(_verified(key, line.raw[4:], text, line.text))
    return tuple(verified)


def lines_of(answer: str) -> tuple[str, ...]:
    """The signature lines of a witness's answer.

    Raises:
        InvalidProof: it is something else.
    """
    lines = answer.splitlines(keepends=True)
    if not lines or len(lines) > MAX_SIGNATURES:
        raise InvalidProof("not one or more signature lines", field="cosignature")
    for line in lines:
        if not re.fullmatch(r"\u2014 [^\s+]+ [A-Za-z0-9+/]+=*\n", line):
            raise InvalidProof("a signature line is malformed", field="cosignature")
    return tuple(lines)


def message(text: str, at: int) -> bytes:
    """What a witness signs: a header, its time, and the checkpoint's text."""
    return f"cosignature/v1\ntime {at}\n{text}".encode()


def _verified(key: WitnessKey, signed: bytes, text: str, line: str) -> Cosignature:
    at = int.from_bytes(signed[:TIMESTAMP_BYTES], "big")
    signature = signed[TIMESTAMP_BYTES:]
    if len(signature) != SIGNATURE_BYTES or not 0 < at <= LATEST:
        raise InvalidProof(f"not a cosignature of {key.name}", field="cosignature")
    try:
        Ed25519PublicKey.from_public_bytes(key.public_key).verify(signature, message(text, at))
    except InvalidSignature:
        raise InvalidProof(
            f"the cosignature of {key.name} does not verify", field="cosignature"
        ) from None
    return Cosignature(key.name, at, line)
