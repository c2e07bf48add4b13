"""Inbox: open received envelopes and accept them in batches.

The received bytes are verified and stored, and parsed afterwards; a second post changes nothing.
All pending envelopes are opened and accepted together (:mod:`.batching`, :mod:`.accept`). They are
opened before the transaction, to keep it short.
"""

import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol.base.errors import InvalidEnvelope, ProtocolError
from bench_protocol.payload import statement
from bench_protocol.signing import envelope
from bench_protocol.signing.envelope import Envelope

from ..db.store import Store
from ..log import writer
from ..log.server_keys import Authority
from . import columns, key_registry
from .accept import Accepted, Opened, StoredSubmission, accept_all, attempt, repeated, with_digests
from .batching import GroupCommit

Spend = Callable[[str], None]
_BITS = 0xFFFF_FFFF


def new_id(at: datetime, number: int) -> str:
    """An id of 16 hex digits for a result: seconds, and a number that its process uses once.
    Results that arrive together are adjacent in every index and touch few of its pages."""
    return f"{int(at.timestamp()) & _BITS:08x}{number & _BITS:08x}"


@dataclass(frozen=True)
class Delivery:
    """A received envelope. ``spend`` counts it in its key's rate once, even if a failed batch is
    opened again item by item."""

    raw: bytes
    received_at: datetime
    spend: Spend


class Repeat(NamedTuple):
    """A stored submission whose payload and signature came again."""

    stored: StoredSubmission
    envelope: Envelope


class Inbox:
    """Accepts results; one for each database and process."""

    def __init__(self, store: Store, authority: Authority) -> None:
        self.store = store
        self.authority = authority
        self._group_commit = GroupCommit(self._accept_all)
        # Processes begin at random, so that their ids of one second hardly ever meet.
        self._numbers = itertools.count(secrets.randbits(32))
        # A key never changes its id and is never removed.
        self._keys: dict[str, Ed25519PublicKey] = {}

    def accept(
        self, raws: Sequence[bytes], now: datetime, spend: Spend = lambda _: None
    ) -> list[Future[Accepted | ProtocolError]]:
        """Verify, store and log envelopes. A bad one does not affect the others.

        Args:
            raws: envelopes as received, each at most 2 MiB.
            now: the time of receipt.
            spend: counts a verified result in the rate of its key; it may raise an error.

        Returns:
            The outcome of each: it is logged, or a ``ProtocolError`` names the fault of the
            envelope or the result, such as ``Conflict`` if another payload is stored.
        """
        return self._group_commit.save([Delivery(raw, now, cache(spend)) for raw in raws])

    def _accept_all(self, deliveries: Sequence[Delivery]) -> list[Accepted | ProtocolError]:
        """Read, find stored payloads, verify the others, accept them in one transaction."""
        sealed = [attempt(_read, delivery.raw) for delivery in deliveries]
        stored = self._stored([item for item in sealed if isinstance(item, Envelope)])
        open_one = partial(self._open, stored)
        opened = [
            item if isinstance(item, ProtocolError) else attempt(open_one, (delivery, item))
            for delivery, item in zip(deliveries, sealed, strict=True)
        ]
        new = [item for item in opened if isinstance(item, Opened)]
        outcomes = iter(self._commit(new) if new else ())
        return [
            next(outcomes)
            if isinstance(item, Opened)
            else self._answer_again(item)
            if isinstance(item, Repeat)
            else item
            for item in opened
        ]

    def _open(
        self, stored: Mapping[str, StoredSubmission], received: tuple[Delivery, Envelope]
    ) -> Opened | Repeat:
        """Verify an envelope and parse its result. Ed25519 signatures are deterministic: a stored
        payload under its stored signature was verified before."""
        delivery, sealed = received
        (signature,) = sealed.signatures
        same = stored.get(sealed.payload_sha256)
        if same is not None and (same.key_id, same.signature) == (
            signature.key_id,
            signature.value,
        ):
            delivery.spend(signature.key_id)
            return Repeat(same, sealed)
        payload = envelope.open_envelope(sealed, statement.RESULT_PAYLOAD_TYPE, self._find_key)
        delivery.spend(signature.key_id)
        result = statement.parse_result(payload)
        statement.require_author(result.agent.key_id, signature.key_id)
        identity = new_id(delivery.received_at, next(self._numbers))
        return Opened(identity, sealed, result, delivery.received_at)

    def _stored(self, sealed: Sequence[Envelope]) -> dict[str, StoredSubmission]:
        with self.store.reading() as session:
            return with_digests(session.connection(), [item.payload_sha256 for item in sealed])

    def _find_key(self, key_id: str) -> Ed25519PublicKey:
        if key_id not in self._keys:
            with self.store.reading() as session:
                self._keys[key_id] = key_registry.find_key(session)(key_id)
        return self._keys[key_id]

    def _commit(self, opened: Sequence[Opened]) -> list[Accepted | ProtocolError]:
        with self.store.writing_in_turn() as session:
            writer.take_turn(session)
            return accept_all(session, self.authority, opened)

    def _answer_again(self, repeat: Repeat) -> Accepted:
        result = columns.stored_result(repeat.envelope.payload)
        with self.store.reading() as session:
            return repeated(session, repeat.stored, result)


def _read(raw: bytes) -> Envelope:
    sealed = envelope.read(raw)
    if len(sealed.signatures) != 1:
        raise InvalidEnvelope("a result has exactly one signature", field="signatures")
    return sealed
