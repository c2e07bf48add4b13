"""Key registry: the keys that may sign, their owners and their status.

Every key event is an envelope that the keys themselves signed. Acceptance changes the registry in
the transaction that logs the event, because the next result depends on it.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from pydantic import TypeAdapter, ValidationError
from sqlalchemy import select as core_select
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from bench_protocol.base.errors import BadSignature, InvalidEnvelope, InvalidField, UnknownKey
from bench_protocol.payload import acts, statement
from bench_protocol.payload.acts import Label, Revocation, Rotation
from bench_protocol.signing import envelope, keys
from bench_protocol.signing.envelope import Envelope

from ..db.lists import among
from ..db.tables import Invite, Owner, SigningKey, table_of
from ..errors import KeyNotActive, NotInvited


def find_key(session: Session) -> Callable[[str], Ed25519PublicKey]:
    """A function that looks up enrolled keys of any status, and raises ``UnknownKey``."""
    return lambda key_id: _public_key(key_with_id(session, key_id).spki)


def public_keys(session: Session, key_ids: Iterable[str]) -> dict[str, Ed25519PublicKey]:
    """The enrolled keys among these, of any status, by their ids."""
    found = session.execute(SPKIS, {"ids": sorted(key_ids)})
    return {row.key_id: _public_key(row.spki) for row in found}


def _public_key(spki: bytes) -> Ed25519PublicKey:
    # The key was checked at enrollment; it is the end of its SubjectPublicKeyInfo.
    return Ed25519PublicKey.from_public_bytes(spki[-32:])


class KeyStatus(NamedTuple):
    """A key, as far as it may send results."""

    key_id: str
    status: str
    revoked_reason: str | None


def key_with_id(session: Session, key_id: str) -> SigningKey:
    """The key with this id.

    Raises:
        UnknownKey: it is not enrolled.
    """
    row = session.get(SigningKey, key_id)
    if row is None:
        raise unknown_key(key_id)
    return row


def unknown_key(key_id: str) -> UnknownKey:
    """The error for a key that is not enrolled."""
    return UnknownKey(
        f"no key {key_id} is enrolled",
        field="signatures.keyid",
        hint="bench-agent enroll, or a first post, enrolls it: POST /api/v1/keys",
    )


def rotations(key_id: str) -> SelectOfScalar[str]:
    """The ids of a key and of all keys that it was rotated from or to; none of an unknown key."""
    first = select(SigningKey.first_key_id).where(SigningKey.key_id == key_id).scalar_subquery()
    return select(SigningKey.key_id).where(col(SigningKey.first_key_id) == first)


def require_active(session: Session, key_id: str) -> SigningKey:
    """The key, if it may send results.

    Raises:
        UnknownKey: there is none.
        KeyNotActive: it is pending, rotated or revoked.
    """
    row = key_with_id(session, key_id)
    refuse_inactive(row)
    return row


def refuse_inactive(row: SigningKey | KeyStatus) -> None:
    """Raise ``KeyNotActive`` if a key is pending, rotated or revoked."""
    if row.status == "pending":
        raise KeyNotActive(
            f"key {row.key_id} waits for the operator's approval",
            field="signatures.keyid",
            hint="ask the operator of this server, then send again",
        )
    if row.status != "active":
        why = f" ({row.revoked_reason})" if row.revoked_reason else ""
        raise KeyNotActive(
            f"key {row.key_id} was {row.status}{why} and signs no more",
            field="signatures.keyid",
            hint="enroll the key that is in use now",
        )


def invite(session: Session, now: datetime, owner: str | None, lasts: timedelta) -> str:
    """Make an invitation. The database stores only the digest of the returned code.

    Raises:
        InvalidField: the owner's label is invalid.
    """
    try:
        TypeAdapter(Label | None).validate_python(owner)
    except ValidationError:
        raise InvalidField(
            "the owner's label must have 1 to 80 characters, none of them unseen, and letters of "
            "one script",
            field="owner",
        ) from None
    code = secrets.token_urlsafe(18)
    digest = hashlib.sha256(code.encode()).hexdigest()
    session.add(Invite(code_sha256=digest, owner=owner, expires_at=now + lasts))
    return code


def use_invite(session: Session, code: str | None, key_id: str, now: datetime) -> Invite:
    """Use an invitation for a key.

    Raises:
        NotInvited: it is unknown or expired, or another key has used it.
    """
    digest = hashlib.sha256((code or "").encode()).hexdigest()
    row = session.get(Invite, digest, with_for_update=True)
    if row is None or row.used_by not in (None, key_id) or row.expires_at < now:
        raise NotInvited(
            "this server enrolls by invitation, and this one is unknown, used or expired"
            if code
            else "this server enrolls by invitation, and none was given",
            field="invite",
            hint="ask the operator for an invitation; run: BENCH_INVITE=CODE bench-agent enroll",
        )
    row.used_by = key_id
    return row


def owner_with_label(session: Session, label: str) -> Owner:
    """The owner with this label, created if there is none."""
    owner = session.get(Owner, label)
    if owner is None:
        owner = Owner(label=label)
        session.add(owner)
        session.flush()
    return owner


# -- events: verify, then apply --------------------------------------------------------------------


def enrolled_key(opened: Envelope, now: datetime) -> SigningKey:
    """The key that an enrollment contains and that signed it (proof of possession).

    Raises:
        ProtocolError: one of its kinds.
    """
    _require_signatures(opened, 1, "an enrollment has exactly one signature")
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
        owner=acts.first_owner(key_id),
        first_key_id=key_id,
        enrolled_at=now,
    )


def enroll(session: Session, key: SigningKey) -> SigningKey:
    """Add a key. In a replay the stored key is reset, except for a pending approval, which is not
    in the log."""
    stored = session.get(SigningKey, key.key_id)
    if stored is not None:
        key.status = "pending" if stored.status == "pending" else key.status
    owner_with_label(session, key.owner)
    row = session.merge(key)
    session.flush()
    return row


def verified_rotation(session: Session, opened: Envelope) -> Rotation:
    """A rotation to a new key, signed by the old one and then by the new one.

    Raises:
        ProtocolError: one of its kinds.
    """
    _require_signatures(opened, 2, "a rotation is signed by the old key, then by the new one")
    event = Rotation.parse(opened.payload)
    new = statement.public_key(event.public_key)
    expected = [event.supersedes, keys.key_id(new)]
    if [signature.key_id for signature in opened.signatures] != expected:
        raise BadSignature(
            "a rotation is signed by the key it supersedes, then by the one it brings",
            field="envelope.signatures.keyid",
        )
    find = find_key(session)
    envelope.open_envelope(
        opened,
        statement.KEY_EVENT_PAYLOAD_TYPE,
        lambda key_id: new if key_id == expected[1] else find(key_id),
    )
    return event


def require_rotatable(session: Session, event: Rotation) -> None:
    """Refuse a rotation from a key that is pending, rotated or revoked, or to an enrolled one.

    Raises:
        KeyNotActive, InvalidField: the rotation is impossible.
    """
    require_active(session, event.supersedes)
    if session.get(SigningKey, keys.key_id(statement.public_key(event.public_key))) is not None:
        raise InvalidField("the new key is enrolled already", field="public_key")


def rotate(session: Session, event: Rotation, now: datetime) -> SigningKey:
    """Replace a key with a new one, which takes over its owner and machines' history."""
    old, new = key_with_id(session, event.supersedes), statement.public_key(event.public_key)
    old.status = "rotated"
    row = SigningKey(
        key_id=keys.key_id(new),
        spki=keys.spki(new),
        owner=old.owner,
        first_key_id=old.first_key_id,
        enrolled_at=now,
    )
    row = session.merge(row)
    session.flush()
    return row


def verified_revocation(
    session: Session, opened: Envelope, operator: Ed25519PublicKey
) -> Revocation:
    """A revocation, signed by the key itself, by another active key of its owner, or the operator.

    Raises:
        ProtocolError: one of its kinds.
        KeyNotActive: the signer may not revoke this key.
    """
    _require_signatures(opened, 1, "a revocation has exactly one signature")
    event = Revocation.parse(opened.payload)
    signer = opened.signatures[0].key_id
    if signer == keys.key_id(operator):
        envelope.open_envelope(opened, statement.KEY_EVENT_PAYLOAD_TYPE, lambda _: operator)
        key_with_id(session, event.key_id)
        return event
    envelope.open_envelope(opened, statement.KEY_EVENT_PAYLOAD_TYPE, find_key(session))
    target = key_with_id(session, event.key_id)
    if signer != event.key_id and require_active(session, signer).owner != target.owner:
        raise KeyNotActive(
            "a key is revoked by itself, by its owner's keys, or by the operator",
            field="envelope.signatures.keyid",
            hint="sign with one of these",
        )
    return event


def is_revoked(session: Session, event: Revocation) -> bool:
    """Whether a key is revoked for all that a revocation names."""
    row, since = key_with_id(session, event.key_id), event.compromised_since_log_index
    before = row.compromised_since
    return row.status == "revoked" and (since is None or (before is not None and before <= since))


def revoke(session: Session, event: Revocation) -> SigningKey:
    """Revoke a key. Its results from log index ``compromised_since_log_index`` on are unranked. A
    second revocation can only lower that index."""
    row = key_with_id(session, event.key_id)
    row.status = "revoked"
    since = event.compromised_since_log_index
    if since is not None and (row.compromised_since is None or since < row.compromised_since):
        row.compromised_since = since
        row.revoked_reason = event.reason
    row.revoked_reason = row.revoked_reason or event.reason
    session.add(row)
    session.flush()
    return row


def assign(session: Session, key_id: str, label: str) -> SigningKey:
    """Assign a key to an owner; the projector assigns its results."""
    row = key_with_id(session, key_id)
    owner_with_label(session, label)
    row.owner = label
    session.add(row)
    session.flush()
    return row


def keys_of(session: Session, label: str) -> list[SigningKey]:
    """The keys of an owner, oldest first."""
    query = select(SigningKey).where(SigningKey.owner == label)
    return list(session.exec(query.order_by(col(SigningKey.enrolled_at))).all())


_KEYS = table_of(SigningKey)
SPKIS = core_select(_KEYS.c.key_id, _KEYS.c.spki).where(among(_KEYS.c.key_id, "ids"))


def _require_signatures(opened: Envelope, count: int, words: str) -> None:
    if len(opened.signatures) != count:
        raise InvalidEnvelope(words, field="signatures")
