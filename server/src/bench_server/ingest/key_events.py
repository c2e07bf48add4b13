"""Key events: enrollment with proof of possession, rotation, revocation."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlmodel import Session, col, select

from bench_protocol.base import strict_json
from bench_protocol.base.errors import InvalidField, WrongPayloadType
from bench_protocol.base.units import Wire
from bench_protocol.payload import acts, statement
from bench_protocol.payload.acts import Label, Revocation, Rotation
from bench_protocol.signing import envelope, keys
from bench_protocol.signing.envelope import Envelope
from bench_protocol.signing.receipts import Receipt

from ..db.store import Store
from ..db.tables import LogEntry, SigningKey
from ..errors import NotFound
from ..log import reader, writer
from ..log.server_keys import Authority, Identity
from . import key_registry, moderation


class Enrollment(Wire):
    """Body of ``POST /api/v1/keys``: a DSSE envelope around a key event, and unsigned fields."""

    envelope: dict[str, Any] = Field(description="DSSE envelope of a key event")
    display_name: Label | None = Field(
        default=None, description="name shown with this key's results; may change later"
    )
    invite: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="for servers that enroll by invitation"
    )


@dataclass(frozen=True)
class KeyEventResult:
    """The outcome of a key event: its key, its receipt, and whether it is new."""

    key: SigningKey
    receipt: Receipt
    created: bool


def accept(
    raw: bytes,
    store: Store,
    authority: Authority,
    policy: str,
    now: datetime,
    area: int | None = None,
    spend: Callable[[], None] = lambda: None,
    spend_event: Callable[[str], None] = lambda _: None,
) -> KeyEventResult:
    """Verify a key event, apply and log it.

    Args:
        policy: who may enroll: ``open``, ``invite`` or ``approval``.
        area: of the event's network, if known. The first key of an owner locates it.
        spend: counts a new key that nobody invited in the rate of its address; it may raise an
            error, and then nothing has happened.
        spend_event: does so for each rotation and revocation, by the first key of their chain.
    """
    body = Enrollment.parse(raw)
    opened = envelope.read(strict_json.dumps(body.envelope))
    if opened.payload_type != statement.KEY_EVENT_PAYLOAD_TYPE:
        raise WrongPayloadType(
            f"payloadType is {opened.payload_type[:100]!r}, "
            f"expected {statement.KEY_EVENT_PAYLOAD_TYPE!r}",
            field="envelope.payloadType",
        )
    if acts.event_kind(opened.payload) == "enroll":
        # Verified before the transaction, because it takes time.
        key_registry.enrolled_key(opened, now)
    with store.writing() as session:
        writer.take_turn(session)
        if (receipt := reader.receipt_of_payload(session, opened.payload_sha256)) is not None:
            return KeyEventResult(_key_of(session, opened), receipt, created=False)
        key = apply(session, authority.identity, opened, now)
        if key is None:  # enrolled before by another event
            key = session.get_one(SigningKey, opened.signatures[0].key_id)
            return KeyEventResult(key, _first_receipt(session, key), created=False)
        leaves = [writer.Leaf("key_event", opened, key_chain=key.first_key_id)]
        if acts.event_kind(opened.payload) == "enroll":
            owner = admit(session, key, body, policy, now)
            if body.invite is None:
                spend()
            if owner is not None:
                about = {"key": key.key_id, "owner": owner}
                assigned = moderation.operators(authority, now, "assign", **about)
                leaves.append(writer.Leaf("act", assigned, key_chain=key.first_key_id))
            if area is not None and len(key_registry.keys_of(session, key.owner)) == 1:
                there: dict[str, Any] = {"owner": key.owner, "area": area}
                located = moderation.operators(authority, now, "locate", **there)
                leaves.append(writer.Leaf("act", located))
        else:
            spend_event(key.first_key_id)
        receipt = writer.append(session, authority, leaves, now)[0]
        return KeyEventResult(key, receipt, created=True)


def apply(
    session: Session, identity: Identity, opened: Envelope, now: datetime
) -> SigningKey | None:
    """Verify a key event and apply it.

    Returns:
        The key of the event; None if it enrolls a key that is enrolled.

    Raises:
        ProtocolError: one of its kinds.
    """
    kind = acts.event_kind(opened.payload)
    if kind == "rotate":
        _require_origin(key_registry.verified_rotation(session, opened).server_origin, identity)
    elif kind == "revoke":
        revocation = key_registry.verified_revocation(session, opened, identity.operator)
        _require_origin(revocation.server_origin, identity)
    else:
        key = key_registry.enrolled_key(opened, now)
        event, _ = statement.parse_key_event(opened.payload)
        _require_origin(event.server_origin, identity)
        if session.get(SigningKey, key.key_id) is not None:
            return None
    return replay(session, opened, now)


def replay(session: Session, opened: Envelope, now: datetime) -> SigningKey:
    """Apply a verified key event, at acceptance and when the log is replayed."""
    kind = acts.event_kind(opened.payload)
    if kind == "rotate":
        return key_registry.rotate(session, Rotation.parse(opened.payload), now)
    if kind == "revoke":
        return key_registry.revoke(session, Revocation.parse(opened.payload))
    return key_registry.enroll(session, key_registry.enrolled_key(opened, now))


def admit(
    session: Session, key: SigningKey, body: Enrollment, policy: str, now: datetime
) -> str | None:
    """Apply the policy to a new key; returns the owner that its invitation names, if any.

    Raises:
        NotInvited: an invitation is needed, or the given one is invalid.
    """
    key.display_name = body.display_name
    if policy == "invite" or body.invite is not None:
        invite = key_registry.use_invite(session, body.invite, key.key_id, now)
        if invite.owner is not None:
            key_registry.assign(session, key.key_id, invite.owner)
            return invite.owner
    elif policy == "approval":
        key.status = "pending"
    session.flush()
    return None


def history(session: Session, key_id: str) -> tuple[SigningKey, list[tuple[Envelope, Receipt]]]:
    """A key and its log entries, oldest first: the events of its chain of rotations, the operator's
    acts about them, and the same for every key that revoked one of them.

    Raises:
        NotFound: no key has this id.
    """
    key = session.get(SigningKey, key_id)
    if key is None:
        raise NotFound(
            f"no key {key_id} is enrolled",
            field="key_id",
            hint="GET /api/v1/log/entries has every key event",
        )
    entries: dict[int, LogEntry] = {}
    visited: set[str] = set()
    chains = {key.first_key_id}
    while chains:
        visited |= chains
        of_chains = session.exec(select(LogEntry).where(col(LogEntry.key_chain).in_(chains))).all()
        entries |= {entry.log_index: entry for entry in of_chains}
        signers = {s.key_id for entry in of_chains for s in _envelope(entry).signatures}
        of_signers = select(SigningKey.first_key_id).where(col(SigningKey.key_id).in_(signers))
        chains = set(session.exec(of_signers)) - visited
    ordered = [entries[index] for index in sorted(entries)]
    receipts = reader.receipts(session, ordered)
    return key, list(zip(map(_envelope, ordered), receipts, strict=True))


def _key_of(session: Session, opened: Envelope) -> SigningKey:
    document = strict_json.loads(opened.payload)
    key_id = document.get("key_id") or keys.key_id(statement.public_key(document["public_key"]))
    return session.get_one(SigningKey, key_id)


def _first_receipt(session: Session, key: SigningKey) -> Receipt:
    first = session.exec(
        select(LogEntry)
        .where(LogEntry.key_chain == key.first_key_id)
        .order_by(col(LogEntry.log_index))
        .limit(1)
    ).one()
    return reader.receipts(session, [first])[0]


def _envelope(entry: LogEntry) -> Envelope:
    """These are never erased."""
    return envelope.read(entry.envelope or b"")


def _require_origin(named: str | None, identity: Identity) -> None:
    if named not in (None, identity.origin):
        raise InvalidField(
            f"the event is for {named}, this server is {identity.origin}",
            field="server_origin",
            hint="sign an event for this server",
        )
