"""DSSE envelopes (Dead Simple Signing Envelope v1.0.2) with Ed25519.

``payload bytes --seal--> envelope bytes --read--> Envelope --open--> payload bytes``

The signature covers payload type and payload; nothing is parsed before it is verified, and only the
verified bytes are parsed afterwards. Key ids in an envelope are hints: the statement names its key
itself and is compared after verification (:mod:`bench_protocol.payload.statement`). Base64 is not
unique, so duplicates are recognised by the payload's digest, never by the envelope's text.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field, StringConstraints

from ..base import strict_json
from ..base.errors import BadSignature, InvalidEnvelope, WrongPayloadType
from ..base.units import Sha256, Wire
from .keys import key_id

SIGNATURE_BYTES = 64
PayloadType = Annotated[str, StringConstraints(min_length=1, max_length=200)]


@dataclass(frozen=True)
class Signature:
    """One signature (64 bytes) and the key id its sender claims for it."""

    key_id: str
    value: bytes


@dataclass(frozen=True)
class Envelope:
    """A decoded envelope; nothing in it is verified yet."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]

    @property
    def payload_sha256(self) -> str:
        return hashlib.sha256(self.payload).hexdigest()


class _WireSignature(Wire):
    keyid: Sha256
    sig: Annotated[str, StringConstraints(max_length=128)]


class _WireEnvelope(Wire):
    payloadType: PayloadType  # noqa: N815 - DSSE's name
    payload: str
    signatures: tuple[_WireSignature, ...] = Field(min_length=1, max_length=2)


def pae(payload_type: str, payload: bytes) -> bytes:
    """Pre-authentication encoding: ``DSSEv1 SP len(type) SP type SP len(body) SP body``."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def seal(payload_type: str, payload: bytes, *keys: Ed25519PrivateKey) -> bytes:
    """Sign a payload and return the envelope's bytes, in the form :func:`encode` gives."""
    message = pae(payload_type, payload)
    signatures = tuple(Signature(key_id(key.public_key()), key.sign(message)) for key in keys)
    return encode(Envelope(payload_type, payload, signatures))


def encode(envelope: Envelope) -> bytes:
    """The canonical JSON form of an envelope: sorted keys, standard padded base64.

    Raises:
        InvalidEnvelope: longer than readers accept.
    """
    raw = strict_json.dumps(
        {
            "payloadType": envelope.payload_type,
            "payload": base64.b64encode(envelope.payload).decode(),
            "signatures": [
                {"keyid": signature.key_id, "sig": base64.b64encode(signature.value).decode()}
                for signature in envelope.signatures
            ],
        }
    )
    if len(raw) > strict_json.MAX_BYTES:
        raise InvalidEnvelope(
            f"the envelope would have {len(raw)} bytes, the limit is {strict_json.MAX_BYTES}",
            field="payload",
        )
    return raw


def read(raw: bytes) -> Envelope:
    """Decode an envelope's form. Verifies nothing.

    Args:
        raw: JSON, at most 2 MiB, standard or URL-safe padded base64 inside.

    Raises:
        MalformedJson: not strict JSON.
        InvalidField, InvalidEnvelope: not an envelope of one or two signatures.
    """
    wire = _WireEnvelope.parse(raw)
    signatures = tuple(
        Signature(item.keyid, _base64(item.sig, "signatures.sig")) for item in wire.signatures
    )
    if any(len(signature.value) != SIGNATURE_BYTES for signature in signatures):
        raise InvalidEnvelope("an Ed25519 signature has 64 bytes", field="signatures.sig")
    if len({signature.key_id for signature in signatures}) != len(signatures):
        raise InvalidEnvelope("two signatures name the same key", field="signatures.keyid")
    return Envelope(wire.payloadType, _base64(wire.payload, "payload"), signatures)


def open_envelope(
    envelope: Envelope,
    payload_type: str,
    find_key: Callable[[str], Ed25519PublicKey],
) -> bytes:
    """Verify every signature and return the payload's bytes.

    Args:
        envelope: as :func:`read` gives it.
        payload_type: the accepted kind of payload.
        find_key: returns the enrolled key of an id; raises ``UnknownKey`` for others.

    Raises:
        WrongPayloadType: the envelope holds another kind of payload.
        UnknownKey: from ``find_key``.
        BadSignature: a signature does not verify.
    """
    if envelope.payload_type != payload_type:
        raise WrongPayloadType(
            f"payloadType is {envelope.payload_type!r}, expected {payload_type!r}",
            field="payloadType",
        )
    message = pae(envelope.payload_type, envelope.payload)
    for signature in envelope.signatures:
        try:
            find_key(signature.key_id).verify(signature.value, message)
        except InvalidSignature:
            raise BadSignature(
                f"signature does not verify with key {signature.key_id}",
                field="signatures.sig",
                hint="send the envelope exactly as it was signed",
            ) from None
    return envelope.payload


def _base64(text: str, field: str) -> bytes:
    try:
        raw = text.encode("ascii").replace(b"-", b"+").replace(b"_", b"/")
        return base64.b64decode(raw, validate=True)
    except (ValueError, binascii.Error):
        raise InvalidEnvelope(f"{field} is not padded base64", field=field) from None
