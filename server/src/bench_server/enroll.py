"""Takes a key in: trust on first use, with proof of possession."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError
from sqlalchemy.exc import IntegrityError

from bench_protocol import envelope, keys, statement, strict_json
from bench_protocol.errors import (
    BadSignature,
    InvalidEnvelope,
    WrongPayloadType,
    first_invalid_field,
)
from bench_protocol.units import Wire

from .db import Store
from .tables import SigningKey

# What a person may be shown as: no control characters, no marks that reorder the text around it.
DisplayName = Annotated[
    str,
    StringConstraints(
        min_length=1,
        max_length=80,
        pattern=r"^[^\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+$",
    ),
]


class Enrollment(Wire):
    """Body of ``POST /api/v1/keys``: a DSSE envelope around a key event, and what is not signed."""

    envelope: dict[str, Any] = Field(description="DSSE envelope of a key event")
    display_name: DisplayName | None = Field(
        default=None, description="name shown with this key's results; may change later"
    )
    invite: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="for servers that enroll by invitation"
    )


def enroll(raw: bytes, store: Store, now: datetime) -> tuple[SigningKey, bool]:
    """Verify and keep a public key.

    Returns:
        The row, and whether it is new.

    Raises:
        ProtocolError: one of its kinds, naming what is wrong.
    """
    strict_json.loads(raw)
    try:
        body = Enrollment.model_validate_json(raw)
    except ValidationError as error:
        raise first_invalid_field(error) from None
    row = _verified(strict_json.dumps(body.envelope), now)
    row.display_name = body.display_name
    try:
        with store.writing() as session:
            known = session.get(SigningKey, row.key_id)
            if known is not None:
                known.display_name = row.display_name or known.display_name
                return known, False
            session.add(row)
            session.flush()
            return row, True
    except IntegrityError:
        with store.reading() as session:
            return session.get_one(SigningKey, row.key_id), False


def _verified(raw: bytes, now: datetime) -> SigningKey:
    opened = envelope.read(raw)
    if opened.payload_type != statement.KEY_EVENT_PAYLOAD_TYPE:
        raise WrongPayloadType(
            f"payloadType is {opened.payload_type[:100]!r}, "
            f"expected {statement.KEY_EVENT_PAYLOAD_TYPE!r}",
            field="envelope.payloadType",
        )
    if len(opened.signatures) != 1:
        raise InvalidEnvelope("an enrollment has exactly one signature", field="signatures")
    _, public_key = statement.parse_key_event(opened.payload)
    key_id = keys.key_id(public_key)
    if opened.signatures[0].key_id != key_id:
        raise BadSignature(
            f"the key in the event has id {key_id}, the signature names another",
            field="envelope.signatures.keyid",
        )
    envelope.open_envelope(opened, statement.KEY_EVENT_PAYLOAD_TYPE, lambda _: public_key)
    return SigningKey(
        key_id=key_id,
        spki=keys.spki(public_key),
        event_payload=opened.payload,
        event_signature=opened.signatures[0].value,
        enrolled_at=now,
    )
