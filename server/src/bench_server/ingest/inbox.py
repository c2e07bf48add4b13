"""Inbox: open received envelopes and accept them in batches.

The payload's bytes are verified and stored, and parsed afterwards; a second post changes nothing.
All pending envelopes are opened and accepted together (:mod:`.batching`, :mod:`.accept`). They are
opened before the transaction, to keep it short, and their keys are looked up in one statement.
"""

import hmac
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol.base.errors import InvalidEnvelope, ProtocolError
from bench_protocol.payload import statement
from bench_protocol.signing import envelope
from bench_protocol.signing.envelope import Envelope

from ..db.store import Store
from ..log import writer
from ..log.server_keys import Authority
from . import key_registry
from .accept import Accepted, Opened, accept_all
from .batching import GroupCommit

Spend = Callable[[str], None]
# What a sender's lines are read as: an envelope, or why a line is none.
ReadLine = Envelope | ProtocolError
# After this number of lines of one request that are no envelope, the others are not read.
MOST_MALFORMED = 16
_BITS = 0xFFFF_FFFF


def new_id(at: datetime, number: int) -> str:
    """An id of 16 hex digits for a result: its time in seconds, and a number. Results made together
    are adjacent in every index and touch few of its pages."""
    return f"{int(at.timestamp()) & _BITS:08x}{number & _BITS:08x}"


def read(raws: Sequence[bytes]) -> list[ReadLine]:
    """Decode the lines of one request, each at most 2 MiB, until ``MOST_MALFORMED`` are no envelope
    of one signature; the others are refused unread."""
    lines: list[ReadLine] = []
    malformed = 0
    for raw in raws:
        if malformed == MOST_MALFORMED:
            lines.append(NOT_READ)
            continue
        try:
            lines.append(_sealed(raw))
        except ProtocolError as error:
            lines.append(error)
            malformed += 1
    return lines


def _sealed(raw: bytes) -> Envelope:
    sealed = envelope.read(raw)
    if len(sealed.signatures) != 1:
        raise InvalidEnvelope("a result has exactly one signature", field="signatures")
    return sealed


NOT_READ = InvalidEnvelope(
    f"not read: {MOST_MALFORMED} lines before it are no envelopes",
    field="body",
    hint="send one signed envelope a line",
)


@dataclass(frozen=True)
class Received:
    """A received line. ``spend`` counts it in its key's rate once, even if a failed batch is opened
    again item by item."""

    line: ReadLine
    received_at: datetime
    spend: Spend


class Inbox:
    """Accepts results; one for each database and process."""

    def __init__(self, store: Store, authority: Authority) -> None:
        self.store = store
        self.authority = authority
        self._group_commit = GroupCommit(self._accept_all)
        # Ids follow from payloads, so a result that a restore lost gets its id again. The key keeps
        # senders from choosing one.
        self._id_key = b"result id" + authority.challenge.private_bytes_raw()
        # A key never changes its id and is never removed.
        self._keys: dict[str, Ed25519PublicKey] = {}

    def accept(
        self, raws: Sequence[bytes], now: datetime, spend: Spend = lambda _: None, network: str = ""
    ) -> list[Future[Accepted | ProtocolError]]:
        """Verify, store and log envelopes of at most 2 MiB. A bad one does not affect the others.

        Args:
            spend: counts a verified result in the rate of its key; it may raise an error.
            network: the sender's; networks take turns.

        Returns:
            The outcome of each: it is logged, or a ``ProtocolError`` names the fault of the
            envelope or the result, such as ``Conflict`` if another payload is stored.
        """
        received = [Received(line, now, cache(spend)) for line in read(raws)]
        return self._group_commit.save(received, network)

    def _accept_all(self, received: Sequence[Received]) -> list[Accepted | ProtocolError]:
        self._look_up(item.line for item in received)
        opened = [self._open(item) for item in received]
        first: dict[str, Opened] = {}
        again: dict[str, Opened] = {}
        for item in opened:
            if isinstance(item, Opened) and first.setdefault(item.id, item) is not item:
                again[item.id] = item  # the same payload: all of these get the first receipt
        outcomes, repeated = self._commit([*first.values()]), self._commit([*again.values()])
        return [
            item
            if isinstance(item, ProtocolError)
            else (outcomes if item is first[item.id] else repeated)[item.id]
            for item in opened
        ]

    def _open(self, received: Received) -> Opened | ProtocolError:
        sealed = received.line
        if isinstance(sealed, ProtocolError):
            return sealed
        try:
            payload = envelope.open_envelope(sealed, statement.RESULT_PAYLOAD_TYPE, self._find_key)
            (signature,) = sealed.signatures
            received.spend(signature.key_id)
            result = statement.parse_result(payload)
            statement.require_author(result.agent.key_id, signature.key_id)
        except ProtocolError as error:
            return error
        number = hmac.digest(self._id_key, bytes.fromhex(sealed.payload_sha256), "sha256")[:4]
        signed = datetime.fromisoformat(result.clocks.signed)
        identity = new_id(signed, int.from_bytes(number))
        return Opened(identity, sealed, result, received.received_at)

    def _look_up(self, lines: Iterable[ReadLine]) -> None:
        sealed = (line for line in lines if isinstance(line, Envelope))
        if missing := {one.signatures[0].key_id for one in sealed} - self._keys.keys():
            with self.store.reading() as session:
                self._keys |= key_registry.public_keys(session, missing)

    def _find_key(self, key_id: str) -> Ed25519PublicKey:
        if key_id not in self._keys:
            raise key_registry.unknown_key(key_id)
        return self._keys[key_id]

    def _commit(self, opened: Sequence[Opened]) -> dict[str, Accepted | ProtocolError]:
        if not opened:
            return {}
        with self.store.writing_in_turn() as session:
            writer.take_turn(session)
            return accept_all(session, self.authority, opened)
