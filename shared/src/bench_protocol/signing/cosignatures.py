"""Cosignatures of checkpoints by witnesses (C2SP tlog-cosignature): Ed25519 and ML-DSA-44.

A witness signs a checkpoint only if the log grew to it from the last one that it signed. So a log
that shows different histories to different readers needs different witnesses too. Ed25519
(``cosignature/v1``) signs the text of the checkpoint, ML-DSA-44 (``subtree/v1``) its size and root.
"""

import base64
import hashlib
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ..base.errors import InvalidProof
from .note import KEY_NAME, MAX_SIGNATURES, raw_of, split
from .receipts import Checkpoint, parse_checkpoint

Algorithm = Literal["ed25519", "ml-dsa-44"]
# The byte of the signature type (C2SP signed-note), and the bytes of public key and signature.
TYPES: dict[int, Algorithm] = {0x04: "ed25519", 0x06: "ml-dsa-44"}
SIZES: dict[Algorithm, tuple[int, int]] = {"ed25519": (32, 64), "ml-dsa-44": (1312, 2420)}
TIMESTAMP_BYTES = 8
LATEST = 2**63 - 1


@dataclass(frozen=True)
class WitnessKey:
    """The key of a witness. ``public_key``: 32 bytes of Ed25519, 1,312 of ML-DSA-44."""

    name: str
    algorithm: Algorithm
    public_key: bytes

    @property
    def hint(self) -> bytes:
        """SHA-256(name || 0x0A || type || public key), its first four bytes."""
        named = self.name.encode() + b"\n" + self._typed
        return hashlib.sha256(named).digest()[:4]

    @property
    def _typed(self) -> bytes:
        code = next(code for code, name in TYPES.items() if name == self.algorithm)
        return bytes([code]) + self.public_key

    def __str__(self) -> str:
        return f"{self.name}+{self.hint.hex()}+{base64.b64encode(self._typed).decode()}"


@dataclass(frozen=True)
class Cosignature:
    """What a witness signed. ``at``: seconds since 1970 by its clock; ``verified``: False where
    this machine's cryptography has no ML-DSA-44. ``line``: the signature line, with its newline."""

    witness: str
    algorithm: Algorithm
    at: int
    verified: bool
    line: str


def parse_witness_key(text: str) -> WitnessKey:
    """Read a verifier key of a witness.

    Raises:
        InvalidProof: it is malformed, of another type, or its key id does not match its key.
    """
    name, _, rest = text.strip().partition("+")
    hint, _, encoded = rest.partition("+")
    raw = raw_of(encoded, "witness key")
    algorithm = TYPES.get(raw[0]) if raw else None
    if algorithm is None or not KEY_NAME.fullmatch(name):
        raise InvalidProof("not a verifier key of a witness (type 0x04 or 0x06)", field="witness")
    key = WitnessKey(name, algorithm, raw[1:])
    if len(key.public_key) != SIZES[algorithm][0] or key.hint.hex() != hint:
        raise InvalidProof("the witness key's id is not that of its key", field="witness")
    return key


def cosignatures(note: str, keys: Iterable[WitnessKey]) -> tuple[Cosignature, ...]:
    """The cosignatures of a checkpoint by these witnesses, in their order in the note. Lines of
    other keys are ignored; the log's own signature is not verified here.

    Raises:
        InvalidProof: the note is malformed, or a line of one of these keys does not verify.
    """
    text, lines = split(note)
    checkpoint = parse_checkpoint(text)
    known = {(key.name, key.hint): key for key in keys}
    found = []
    for line in lines:
        key = known.get((line.name, line.raw[:4]))
        if key is not None:
            found.append(_verified(key, line.raw[4:], text, checkpoint, line.text))
    return tuple(found)


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


def ed25519_message(text: str, at: int) -> bytes:
    """What an Ed25519 witness signs: a header, its time, and the checkpoint's text."""
    return f"cosignature/v1\ntime {at}\n{text}".encode()


def ml_dsa_message(witness: str, at: int, checkpoint: Checkpoint) -> bytes:
    """What an ML-DSA-44 witness signs: names, time, and the range and root of the whole tree, as
    the structure ``cosigned_message`` of the specification."""
    name, origin = witness.encode(), checkpoint.origin.encode()
    if max(len(name), len(origin)) > 255:
        raise InvalidProof("a name is longer than 255 bytes", field="cosignature")
    return b"".join(
        (
            b"subtree/v1\n\0",
            bytes([len(name)]) + name,
            struct.pack(">Q", at),
            bytes([len(origin)]) + origin,
            struct.pack(">QQ", 0, checkpoint.size),
            checkpoint.root,
        )
    )


def _verified(
    key: WitnessKey, signed: bytes, text: str, checkpoint: Checkpoint, line: str
) -> Cosignature:
    at = int.from_bytes(signed[:TIMESTAMP_BYTES], "big")
    signature = signed[TIMESTAMP_BYTES:]
    if len(signature) != SIZES[key.algorithm][1] or not 0 < at <= LATEST:
        raise InvalidProof(f"not a cosignature of {key.name}", field="cosignature")
    try:
        if key.algorithm == "ed25519":
            public_key = Ed25519PublicKey.from_public_bytes(key.public_key)
            public_key.verify(signature, ed25519_message(text, at))
            verified = True
        else:
            verified = _ml_dsa(key, signature, ml_dsa_message(key.name, at, checkpoint))
    except InvalidSignature:
        raise InvalidProof(
            f"the cosignature of {key.name} does not verify", field="cosignature"
        ) from None
    return Cosignature(key.name, key.algorithm, at, verified, line)


def _ml_dsa(key: WitnessKey, signature: bytes, message: bytes) -> bool:
    """Verify; False where the installed cryptography cannot."""
    try:
        from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

        public_key = MLDSA44PublicKey.from_public_bytes(key.public_key)
    except (ImportError, UnsupportedAlgorithm):
        return False
    public_key.verify(signature, message)
    return True
