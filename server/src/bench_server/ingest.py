"""Takes results in: open -> parse -> derive -> log and save.

The bytes that were received are verified and kept, and parsed after; posting again changes
nothing. Opening needs no turn, so that a flood of bad envelopes does not hold up the good ones;
saving is done for all that wait at once (:mod:`.group_commit`, :mod:`.saving`), in one transaction
that ends with one checkpoint of the log.
"""

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol import envelope, statement
from bench_protocol.errors import InvalidEnvelope, ProtocolError

from . import log, registry, saving
from .authority import Authority
from .db import Store
from .group_commit import GroupCommit
from .saving import Accepted, Arrived, attempt
from .tables import Submission

Spend = Callable[[str], None]


class Inbox:
    """Where results come in: one for each database and process."""

    def __init__(self, store: Store, authority: Authority) -> None:
        self.store = store
        self.authority = authority
        self._group_commit = GroupCommit(self._save_all)
        # A key never changes under its id, and none is ever removed.
        self._keys: dict[str, Ed25519PublicKey] = {}

    def accept(self, raw: bytes, now: datetime, spend: Spend = lambda _: None) -> Accepted:
        """Verify, keep and log one envelope.

        Args:
            raw: the envelope as received, at most 2 MiB.
            now: when it was received.
            spend: counts a result of a key, whose signature was verified; it may refuse it.

        Raises:
            ProtocolError: one of its kinds, naming what is wrong with the envelope or the result.
            Conflict: another payload is kept for this repeat.
        """
        found = self._group_commit.save(self._opened(raw, now, spend))
        if isinstance(found, ProtocolError):
            raise found
        return found

    def accept_all(
        self, raws: Sequence[bytes], now: datetime, spend: Spend = lambda _: None
    ) -> list[Accepted | ProtocolError]:
        """:meth:`accept` each of several envelopes; a bad one does not spoil the others."""
        opened = [attempt(lambda raw: self._opened(raw, now, spend), raw) for raw in raws]
        saved = iter(self._save_all([found for found in opened if isinstance(found, Arrived)]))
        return [found if isinstance(found, ProtocolError) else next(saved) for found in opened]

    def _opened(self, raw: bytes, now: datetime, spend: Spend) -> Arrived:
        sealed = envelope.read(raw)
        if len(sealed.signatures) != 1:
            raise InvalidEnvelope("a result has exactly one signature", field="signatures")
        (signature,) = sealed.signatures
        payload = envelope.open_envelope(sealed, statement.RESULT_PAYLOAD_TYPE, self._find_key)
        spend(signature.key_id)
        result = statement.parse_result(payload)
        statement.require_author(result.agent.key_id, signature.key_id)
        submission = Submission(
            id=secrets.token_hex(8),
            payload=payload,
            payload_sha256=sealed.payload_sha256,
            payload_type=sealed.payload_type,
            signature=signature.value,
            key_id=signature.key_id,
            received_at=now,
        )
        return Arrived(sealed, result, submission)

    def _find_key(self, key_id: str) -> Ed25519PublicKey:
        if key_id not in self._keys:
            with self.store.reading() as session:
                self._keys[key_id] = registry.find_key(session)(key_id)
        return self._keys[key_id]

    def _save_all(self, arrived: Sequence[Arrived]) -> list[Accepted | ProtocolError]:
        if not arrived:
            return []
        with self.store.writing() as session:
            log.take_turn(session)
            return saving.save_all(session, self.authority, arrived)
