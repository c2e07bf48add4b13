"""Inbox: accept results in the order open, parse, derive, log and save.

The received bytes are verified and stored, and parsed afterwards; a second post changes nothing.
All pending results are opened and saved together (:mod:`.batching`, :mod:`.save`). They are opened
before the transaction, to keep it short. The transaction ends with one checkpoint of the log.
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
    """An id of 16 hex digits for a result: seconds, and a number that this process uses once.
    Results that arrive together are adjacent in every index and touch few of its pages."""
    return f"{int(at.timestamp()) & _BITS:08x}{next(_numbers) & _BITS:08x}"


@dataclass
class Delivery:
    """A received envelope. ``spent``: it is counted in its key's rate."""

    raw: bytes
    received_at: datetime
    spend: Spend
    spent: bool = False

    def spend_once(self, key_id: str) -> None:
        """Count the result in its key's rate once, even if a failed group is opened again item by
        item. Raises what ``spend`` raises."""
        if not self.spent:
            self.spend(key_id)
            self.spent = True


class Inbox:
    """Accepts results; one for each database and process."""

    def __init__(self, store: Store, authority: Authority) -> None:
        self.store = store
        self.authority = authority
        self._group_commit = GroupCommit(self._accept_all)
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
            The outcome of each: it is stored, or a ``ProtocolError`` names the fault of the
            envelope or the result, such as ``Conflict`` if another payload is stored.
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
