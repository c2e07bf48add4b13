"""Takes results in: open -> parse -> derive -> log and save.

The bytes that were received are verified and kept, and parsed after; posting again changes
nothing. All that wait are opened and saved together (:mod:`.batching`, :mod:`.save`): opened
first, so that nobody waits for the database while one reads, then saved in one transaction that
ends with one checkpoint of the log.
"""

import itertools
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol import envelope, statement
from bench_protocol.errors import InvalidEnvelope, ProtocolError

from ..db.store import Store
from ..db.tables import NewRow
from ..log import writer
from ..log.server_keys import Authority
from . import columns, key_registry, result_checks, verdicts
from . import save as saving
from .batching import GroupCommit
from .save import Accepted, CheckedResult, attempt

Spend = Callable[[str], None]
_BITS = 0xFFFF_FFFF


_numbers = itertools.count(secrets.randbits(32))


def new_id(at: datetime) -> str:
    """16 hex digits for a result: seconds, and a number that this process uses once; those that
    come together are side by side in every index, so that they touch few of its pages."""
    return f"{int(at.timestamp()) & _BITS:08x}{next(_numbers) & _BITS:08x}"


@dataclass
class Delivery:
    """An envelope as it came. ``spent``: it is counted in its key's rate."""

    raw: bytes
    received_at: datetime
    spend: Spend
    spent: bool = False

    def spend_once(self, key_id: str) -> None:
        """Count the result in its key's rate: once, although a group that cannot be saved is opened
        again item by item. Raises what ``spend`` raises."""
        if not self.spent:
            self.spend(key_id)
            self.spent = True


class Inbox:
    """Where results come in: one for each database and process."""

    def __init__(self, store: Store, authority: Authority) -> None:
        self.store = store
        self.authority = authority
        self._group_commit = GroupCommit(self._accept_all)
        # A key never changes under its id, and none is ever removed.
        self._keys: dict[str, Ed25519PublicKey] = {}

    def accept(
        self, raws: Sequence[bytes], now: datetime, spend: Spend = lambda _: None
    ) -> list[Future[Accepted | ProtocolError]]:
        """Verify, keep and log envelopes; a bad one does not spoil the others.

        Args:
            raws: envelopes as received, each at most 2 MiB.
            now: when they were received.
            spend: counts a result of a key, whose signature was verified; it may refuse it.

        Returns:
            What becomes of each: it is kept, or a ``ProtocolError`` says what is wrong with the
            envelope or the result, such as ``Conflict`` where another payload is kept.
        """
        return self._group_commit.save([Delivery(raw, now, spend) for raw in raws])

    def _accept_all(self, deliveries: Sequence[Delivery]) -> list[Accepted | ProtocolError]:
        opened = [attempt(self._opened, delivery) for delivery in deliveries]
        arrived = [found for found in opened if isinstance(found, CheckedResult)]
        saved = iter(self._save_all(arrived) if arrived else ())
        return [next(saved) if isinstance(found, CheckedResult) else found for found in opened]

    def _opened(self, delivery: Delivery) -> CheckedResult:
        sealed = envelope.read(delivery.raw)
        if len(sealed.signatures) != 1:
            raise InvalidEnvelope("a result has exactly one signature", field="signatures")
        (signature,) = sealed.signatures
        payload = envelope.open_envelope(sealed, statement.RESULT_PAYLOAD_TYPE, self._find_key)
        delivery.spend_once(signature.key_id)
        result = statement.parse_result(payload)
        statement.require_author(result.agent.key_id, signature.key_id)
        submission = NewRow(
            id=new_id(delivery.received_at),
            payload=payload,
            payload_sha256=sealed.payload_sha256,
            payload_type=sealed.payload_type,
            signature=signature.value,
            key_id=signature.key_id,
            received_at=delivery.received_at,
            outlier=None,
        )
        found = result_checks.of_result(result)
        row = columns.measurement_row(submission, result)
        row.verdicts = verdicts.as_text(found)
        return CheckedResult(sealed, result, submission, row, found)

    def _find_key(self, key_id: str) -> Ed25519PublicKey:
        if key_id not in self._keys:
            with self.store.reading() as session:
                self._keys[key_id] = key_registry.find_key(session)(key_id)
        return self._keys[key_id]

    def _save_all(self, arrived: Sequence[CheckedResult]) -> list[Accepted | ProtocolError]:
        with self.store.writing_in_turn() as session:
            writer.take_turn(session)
            return saving.save_all(session, self.authority, arrived)
