"""Signed notes (C2SP signed-note, signature type 0x01): text that a log signs.

A *verifier key* names a key in one line: ``<name>+<key id>+<base64 of type and public key>``.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ..base.errors import InvalidProof

ED25519 = b"\x01"
MAX_SIGNATURES = 100
KEY_NAME = re.compile(r"[^\s+]{1,200}")


@dataclass(frozen=True)
class NoteKey:
    """A note's signer: a name without spaces and plus signs, and an Ed25519 key (32 bytes).
    ``kind``: the byte of the signature type."""

    name: str
    public_key: bytes
    kind: bytes = ED25519

    @property
    def hint(self) -> bytes:
        """SHA-256(name || 0x0A || type || public key), its first four bytes."""
        named = self.name.encode() + b"\n" + self.kind + self.public_key
        return hashlib.sha256(named).digest()[:4]

    def __str__(self) -> str:
        key = base64.b64encode(self.kind + self.public_key).decode()
        return f"{self.name}+{self.hint.hex()}+{key}"


def note_key(name: str, key: Ed25519PrivateKey) -> NoteKey:
    return NoteKey(name, key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def parse_key(text: str, kind: bytes = ED25519, owner: str = "log") -> NoteKey:
    """Read a verifier key of this signature type.

    Raises:
        InvalidProof: it is malformed, of another type, or its key id does not match its key.
    """
    name, _, rest = text.strip().partition("+")
    hint, _, encoded = rest.partition("+")
    raw = raw_of(encoded, f"{owner}.key")
    key = NoteKey(name, raw[1:], kind)
    if not KEY_NAME.fullmatch(name) or len(raw) != 33 or raw[:1] != kind:
        wanted = f"an Ed25519 {owner} (type 0x{kind.hex()})"
        raise InvalidProof(f"not a verifier key of {wanted}", field=f"{owner}.key")
    if key.hint.hex() != hint:
        raise InvalidProof("the verifier key's id is not that of its key", field=f"{owner}.key")
    return key


def sign(text: str, name: str, key: Ed25519PrivateKey) -> str:
    """Sign a note: the text, which ends in a newline, and one signature."""
    signature = note_key(name, key).hint + key.sign(text.encode())
    return f"{text}\n\u2014 {name} {base64.b64encode(signature).decode()}\n"


class Line(NamedTuple):
    """A signature line: the signer's name, the key's hint (four bytes) with what follows it, and
    the line itself with its newline."""

    name: str
    raw: bytes
    text: str


def split(note: str) -> tuple[str, tuple[Line, ...]]:
    """The text of a note, which ends in a newline, and its signature lines; nothing is verified.

    Raises:
        InvalidProof: no note, or a line is malformed.
    """
    text, separator, lines = note.rpartition("\n\n")
    text += "\n"
    if not separator or not lines.endswith("\n") or lines.count("\n") > MAX_SIGNATURES:
        raise InvalidProof("not a signed note", field="checkpoint")
    if any(ord(character) < 32 and character != "\n" for character in note):
        raise InvalidProof("a note holds no control characters", field="checkpoint")
    found = []
    for line in lines[:-1].split("\n"):
        match = re.fullmatch(r"\u2014 (\S+) (\S+)", line)
        if match is None:
            raise InvalidProof("a signature line is malformed", field="checkpoint")
        found.append(Line(match[1], raw_of(match[2], "checkpoint"), f"{line}\n"))
    return text, tuple(found)


def open_note(note: str, key: NoteKey) -> str:
    """The text of a note that this key signed. Signatures of other keys are ignored.

    Raises:
        InvalidProof: no note, not signed by this key, or its signature does not verify.
    """
    text, lines = split(note)
    verified = False
    for name, raw, _ in lines:
        if (name, raw[:4]) != (key.name, key.hint):
            continue
        try:
            Ed25519PublicKey.from_public_bytes(key.public_key).verify(raw[4:], text.encode())
        except InvalidSignature:
            raise InvalidProof(
                f"the signature of {key.name} does not verify", field="checkpoint"
            ) from None
        verified = True
    if not verified:
        raise InvalidProof(f"not signed by {key.name} ({key.hint.hex()})", field="checkpoint")
    return text


def raw_of(text: str, field: str) -> bytes:
    """The bytes of padded base64.

    Raises:
        InvalidProof: it is something else.
    """
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        raise InvalidProof(f"{field}: not padded base64", field=field) from None
