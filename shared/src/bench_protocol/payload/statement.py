"""Payloads of envelopes: the statement of a result, and key events.

A result is an in-toto Statement v1 whose subjects are the workload's and the cell's digest and
whose predicate is one :class:`.result.Result`. A key event enrolls, rotates or
revokes a key. It has its own payload type, so that neither can be mistaken for the other.
"""

import base64
import binascii
from typing import Annotated, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import Field, StringConstraints

from ..base import strict_json
from ..base.errors import BadSignature, InvalidField, UnknownWorkload
from ..base.units import Sha256, Text, UtcTime, Wire
from ..catalogue.catalogue import CATALOGUE
from ..signing import keys
from .result import Result

RESULT_PAYLOAD_TYPE = "application/vnd.in-toto+json"
KEY_EVENT_PAYLOAD_TYPE = "application/vnd.trainmark.key-event.v1+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:trainmark:training-result:v1"


class _Digest(Wire):
    sha256: Sha256


class _Subject(Wire):
    name: Literal["workload", "cell"]
    digest: _Digest


class _Statement(Wire):
    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: tuple[_Subject, _Subject]
    predicateType: Literal["urn:trainmark:training-result:v1"]  # noqa: N815 - in-toto's name
    predicate: Result


class KeyEvent(Wire):
    """Enrollment of a public key, signed by that key itself (proof of possession).

    ``license``: the SPDX id under which its holder agreed to publish results on this server.
    """

    event: Literal["enroll"]
    public_key: Annotated[str, StringConstraints(max_length=200)]
    server_origin: Text | None = None
    license: Text | None = None
    at: UtcTime


def result_payload(result: Result) -> bytes:
    subjects = (("workload", result.cell.workload_digest), ("cell", result.cell.digest))
    return strict_json.dumps(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": name, "digest": {"sha256": value}} for name, value in subjects],
            "predicateType": PREDICATE_TYPE,
            "predicate": result.model_dump(mode="json"),
        }
    )


def parse_result(payload: bytes) -> Result:
    """Read the result in verified bytes.

    Raises:
        MalformedJson: not strict JSON.
        InvalidField: a field breaks the schema, or a subject is not the digest of what it names.
        UnknownWorkload: no workload of the catalogue has the cell's name and digest.
    """
    statement = _Statement.parse(payload)
    cell = statement.predicate.cell
    expected = (("workload", cell.workload_digest), ("cell", cell.digest))
    for position, (subject, (name, digest)) in enumerate(
        zip(statement.subject, expected, strict=True)
    ):
        if (subject.name, subject.digest.sha256) != (name, digest):
            raise InvalidField(
                f"subject.{position} must be {name!r} with digest {digest}",
                field=f"subject.{position}",
            )
    if not any(w.name == cell.workload and w.digest == cell.workload_digest for w in CATALOGUE):
        raise UnknownWorkload(
            f"no workload {cell.workload!r} with digest {cell.workload_digest}",
            field="predicate.cell.workload_digest",
            hint="update the agent; GET /api/v1/workloads lists the known ones",
        )
    return statement.predicate


def require_author(claimed_key_id: str, signing_key_id: str) -> None:
    """Check that the key named in a statement is the one that signed it.

    Raises:
        BadSignature: they differ.
    """
    if claimed_key_id != signing_key_id:
        raise BadSignature(
            f"statement names key {claimed_key_id}, but {signing_key_id} signed it",
            field="predicate.agent.key_id",
        )


def key_event_payload(event: KeyEvent) -> bytes:
    return strict_json.dumps(event.model_dump(mode="json"))


def enroll_event(
    key: Ed25519PublicKey,
    at: str,
    *,
    server_origin: str | None = None,
    license: str | None = None,
) -> KeyEvent:
    """The event that enrolls a key: on one server, under a licence for its results."""
    return KeyEvent(
        event="enroll",
        public_key=base64.b64encode(keys.spki(key)).decode(),
        server_origin=server_origin,
        license=license,
        at=at,
    )


def parse_key_event(payload: bytes) -> tuple[KeyEvent, Ed25519PublicKey]:
    """Read a key event and the key in it.

    The event contains the key that signs it, so it is the only payload that is parsed before its
    signature is verified. The caller must verify next.

    Raises:
        MalformedJson, InvalidField: the form is wrong.
        UnacceptableKey: signatures of such a key prove nothing.
    """
    event = KeyEvent.parse(payload)
    return event, public_key(event.public_key)


def public_key(encoded: str) -> Ed25519PublicKey:
    """The key in a key event, from base64 of its DER.

    Raises:
        InvalidField: not base64.
        UnacceptableKey: signatures of such a key prove nothing.
    """
    try:
        der = base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        raise InvalidField("public_key is not padded base64", field="public_key") from None
    return keys.load_spki(der)
