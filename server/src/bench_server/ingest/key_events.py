"""Key events: enrollment with proof of possession, rotation, revocation."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlalchemy import bindparam
from sqlalchemy import select as core_select
from sqlmodel import Session, col, select

from bench_protocol.base import strict_json
from bench_protocol.base.errors import InvalidField, WrongPayloadType
from bench_protocol.base.units import Wire
from bench_protocol.payload import acts, statement
from bench_protocol.payload.acts import Revocation, Rotation
from bench_protocol.signing import envelope, keys
from bench_protocol.signing.envelope import Envelope
from bench_protocol.signing.receipts import Receipt

from ..db.store import Store
from ..db.tables import LogEntry, SigningKey, table_of
from ..errors import NotFound
from ..log import reader, writer
from ..log.server_keys import Authority, Identity
from . import key_registry, moderation


class Enrollment(Wire):
    """Body of ``POST /api/v1/keys``: a DSSE envelope around a key event, and an invitation."""

    envelope: dict[str, Any] = Field(description="DSSE envelope of a key event")
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
        key = apply(session, authority.identity, opened, now, spend_event)
        if key is None:  # another event has done the same
            key = _key_of(session, opened)
            return KeyEventResult(key, _first_receipt(session, key, opened), created=False)
        signer = session.get(SigningKey, opened.signatures[0].key_id)
        chains = key.first_key_id, signer.first_key_id if signer else None
        of_signer = chains[1] if chains[1] != chains[0] else None
        leaves = [writer.Leaf("key_event", opened, None, chains[0], of_signer)]
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
        receipt = writer.append(session, authority, leaves, now)[0]
        return KeyEventResult(key, receipt, created=True)


def apply(
    session: Session,
    identity: Identity,
    opened: Envelope,
    now: datetime,
    spend: Callable[[str], None] = lambda _: None,
) -> SigningKey | None:
    """Verify a key event and apply it; ``spend`` counts a verified rotation or revocation.

    Returns:
        The key of the event; None if it changes nothing, because another event has.

    Raises:
        ProtocolError: one of its kinds.
    """
    kind = acts.event_kind(opened.payload)
    if kind == "rotate":
        rotation = key_registry.verified_rotation(session, opened)
        _require_origin(rotation.server_origin, identity)
        old = key_registry.key_with_id(session, rotation.supersedes)
        spend(old.first_key_id)
        if old.status == "rotated" and _logged(session, old.first_key_id, opened) is not None:
            return None
        key_registry.require_rotatable(session, rotation)
    elif kind == "revoke":
        revocation = key_registry.verified_revocation(session, opened, identity.operator)
        _require_origin(revocation.server_origin, identity)
        spend(_key_of(session, opened).first_key_id)
        if key_registry.is_revoked(session, revocation):
            return None
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
    if policy == "invite" or body.invite is not None:
        invite = key_registry.use_invite(session, body.invite, key.key_id, now)
        if invite.owner is not None:
            key_registry.assign(session, key.key_id, invite.owner)
            return invite.owner
    elif policy == "approval":
        key.status = "pending"
    session.flush()
    return None


def history(
    session: Session, key_id: str, start: int, limit: int
) -> tuple[SigningKey, list[tuple[Envelope, Receipt]], int | None]:
    """A key and its log entries from an index on, oldest first: the events of its chain of
    rotations, the operator's acts about them, and the same for every key that revoked one of them.
    The last value is the index of the entry that follows them, if any.

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
    wanted = {"chain": key.first_key_id, "start": start, "count": limit + 1}
    indexes = session.connection().scalars(INDEXES, wanted).all()
    shown = select(LogEntry).where(col(LogEntry.log_index).in_(indexes[:limit]))
    entries = session.exec(shown.order_by(col(LogEntry.log_index))).all()
    receipts = reader.receipts(session, entries)
    events = list(zip(map(_envelope, entries), receipts, strict=True))
    return key, events, indexes[limit] if len(indexes) > limit else None


def _key_of(session: Session, opened: Envelope) -> SigningKey:
    return session.get_one(SigningKey, _key_id_of(_named(opened.payload)))


def _key_id_of(named: dict[str, str]) -> str:
    return named.get("key_id") or keys.key_id(statement.public_key(named["public_key"]))


def _first_receipt(session: Session, key: SigningKey, opened: Envelope) -> Receipt:
    """The receipt of the event that did what another one asks for."""
    entry = None
    if acts.event_kind(opened.payload) != "enroll":
        entry = _logged(session, key.first_key_id, opened)
    if entry is None:
        of_chain = select(LogEntry).where(LogEntry.key_chain == key.first_key_id)
        entry = session.exec(of_chain.order_by(col(LogEntry.log_index)).limit(1)).one()
    return reader.receipts(session, [entry])[0]


def _logged(session: Session, chain: str, opened: Envelope) -> LogEntry | None:
    """The newest entry of an event that names the same keys, if there is one."""
    wanted = _named(opened.payload)
    events = select(LogEntry).where(LogEntry.key_chain == chain, LogEntry.kind == "key_event")
    newest_first = events.order_by(col(LogEntry.log_index).desc())
    entries = session.exec(newest_first.execution_options(yield_per=16))
    return next((e for e in entries if _named(_envelope(e).payload) == wanted), None)


def _named(payload: bytes) -> dict[str, str]:
    """The kind of an event, and the keys that it names."""
    document = strict_json.loads(payload)
    members = ("event", "key_id", "public_key", "supersedes")
    return {name: document[name] for name in members if name in document}


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


# The chain of a key and, in turn, those of the keys that revoked one of them.
_LOG = table_of(LogEntry)
_CHAINS = core_select(bindparam("chain", type_=_LOG.c.key_chain.type).label("chain")).cte(
    "chains", recursive=True
)
_CHAINS = _CHAINS.union(
    core_select(_LOG.c.signer_chain).where(
        _LOG.c.key_chain == _CHAINS.c.chain, _LOG.c.signer_chain.is_not(None)
    )
)
INDEXES = (
    core_select(_LOG.c.log_index)
    .where(
        _LOG.c.key_chain.in_(core_select(_CHAINS.c.chain)), _LOG.c.log_index >= bindparam("start")
    )
    .order_by(_LOG.c.log_index)
    .limit(bindparam("count"))
)
