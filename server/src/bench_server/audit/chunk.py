"""Check the entries of a log as they are read, tile by tile: tree, commitments, envelopes.

What depends on what earlier entries did (which keys were enrolled) is checked where the log is
replayed (:mod:`.replay`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bench_protocol.base import strict_json
from bench_protocol.base.errors import ProtocolError
from bench_protocol.payload import acts, statement
from bench_protocol.signing import envelope, merkle, receipts, tiles
from bench_protocol.signing.envelope import Envelope
from bench_protocol.signing.note import NoteKey
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import RECOMPUTATION_PAYLOAD_TYPE

from ..ingest import challenges, key_registry
from ..ingest.accept import Opened
from ..log.server_keys import Identity
from .shown import Record

ENTRIES = tiles.WIDTH


@dataclass(frozen=True)
class Fault:
    """A fault. ``log_index``: the first entry it concerns, None for the whole log."""

    log_index: int | None
    detail: str


@dataclass(frozen=True)
class Chunk:
    """Entries ``[start, end)`` as a server shows them; ``start`` is a multiple of :data:`ENTRIES`.

    ``records``: those that are shown, by index. ``entries``: the leaves, None if they cannot be
    read. ``hashes``: the leaves' hashes in the tree's tile, empty if they cannot be read.
    """

    start: int
    end: int
    records: Mapping[int, Record]
    entries: Sequence[bytes] | None
    hashes: Sequence[bytes]


@dataclass(frozen=True)
class Verified:
    """An entry whose envelope is verified as far as it goes by itself. ``result``: of an entry that
    is one; ``challenge``: what binds it."""

    record: Record
    opened: Envelope
    result: Opened | None = None
    challenge: acts.ChallengeIssued | None = None


@dataclass(frozen=True)
class Checked:
    """The findings about the entries of a chunk. ``refused``: those that should not be in the log;
    ``verified``: the others that are shown."""

    faults: Sequence[Fault]
    refused: Sequence[Fault]
    verified: Sequence[Verified]


def check(chunk: Chunk, identity: Identity, keys: Mapping[str, Ed25519PublicKey]) -> Checked:
    """Check commitments and envelopes of a chunk, with the keys up to its end. 1 ms an entry."""
    faults = _entry_faults(chunk)
    broken = {fault.log_index for fault in faults}
    refused, verified = [], []
    for index, record in sorted(chunk.records.items()):
        if index in broken or record["envelope"] is None:
            continue
        try:
            verified.append(_verified(record, keys, identity))
        except (ProtocolError, KeyError, ValueError) as error:
            refused.append(Fault(index, f"it should not be there: {error}"))
    return Checked(faults, refused, verified)


class Tree:
    """Compares the tree of the entries with tiles and checkpoints, up to the first fault."""

    def __init__(self, log_key: NoteKey) -> None:
        self._log_key = log_key
        self._frontier = merkle.Frontier()
        self._is_broken = False

    def faults(self, chunk: Chunk) -> Iterator[Fault]:
        """The first fault of the tree, if it is in this chunk. Chunks come in their order."""
        fault = None if self._is_broken else self._first_fault(chunk)
        if fault is not None:
            self._is_broken = True
            yield fault

    def root_faults(self, checkpoint: receipts.Checkpoint) -> Iterator[Fault]:
        """A fault if the whole tree is not the one of the newest checkpoint."""
        if not self._is_broken and self._frontier.root != checkpoint.root:
            yield Fault(None, "the tree over all entries is not the one the log signs now")

    def _first_fault(self, chunk: Chunk) -> Fault | None:
        if chunk.entries is None:
            missing = (i for i in range(chunk.start, chunk.end) if i not in chunk.records)
            words = "dropped: the log signed it and no longer has it"
            return Fault(next(missing, None), words)
        for index, entry in enumerate(chunk.entries, chunk.start):
            leaf = merkle.leaf_hash(entry)
            self._frontier.add(leaf)
            if chunk.hashes and leaf != chunk.hashes[index - chunk.start]:
                return Fault(index, "the entry is not the one whose hash is in the tree")
            record = chunk.records.get(index)
            if record is None or (text := record["checkpoint"]) is None:
                continue
            try:
                then = receipts.open_checkpoint(text, self._log_key)
            except ProtocolError as error:
                return Fault(index, f"its checkpoint does not verify: {error.detail}")
            if (then.size, then.root) != (index + 1, self._frontier.root):
                words = "the tree up to this entry is not the one that the log signed"
                return Fault(index, words)
        return None


def _entry_faults(chunk: Chunk) -> list[Fault]:
    faults = []
    for index in range(chunk.start, chunk.end):
        record = chunk.records.get(index)
        entry = None if chunk.entries is None else chunk.entries[index - chunk.start]
        if record is None:
            words = None if entry is None else "dropped: the log signed it and does not show it"
        else:
            words = _entry_fault(record, entry)
        if words:
            faults.append(Fault(index, words))
    return faults


def _entry_fault(record: Record, entry: bytes | None) -> str | None:
    if record["envelope"] is None or record["salt"] is None:
        withdrawn = record["salt"] is None and record["result_id"] is None
        if withdrawn or record["hidden"]:
            return None  # withdrawn: salt and envelope are erased, the entry stays
        return "dropped: its envelope is missing although it was not withdrawn"
    try:
        opened = envelope.read(strict_json.dumps(record["envelope"]))
        committed = receipts.commitment(bytes.fromhex(record["salt"]), opened).hex()
    except (ProtocolError, ValueError) as error:
        return f"its envelope cannot be read: {error}"
    if committed != (record["commitment"] if entry is None else entry.hex()):
        return "edited: the envelope shown is not the one the log committed to"
    return None


def _verified(record: Record, keys: Mapping[str, Ed25519PublicKey], identity: Identity) -> Verified:
    """Verify an envelope as its acceptance did, but for what depends on earlier entries."""
    opened = envelope.read(strict_json.dumps(record["envelope"]))
    if record["kind"] == "result":
        return _verified_result(record, opened, keys, identity)
    if record["kind"] == "recomputation":
        payload = envelope.open_envelope(
            opened, RECOMPUTATION_PAYLOAD_TYPE, lambda _: identity.challenge
        )
        if recomputation.parse(payload).server_origin != identity.origin:
            raise ValueError("it is a recomputation of another server")
    return Verified(record, opened)


def _verified_result(
    record: Record, opened: Envelope, keys: Mapping[str, Ed25519PublicKey], identity: Identity
) -> Verified:
    def find(key_id: str) -> Ed25519PublicKey:
        if key_id not in keys:
            raise key_registry.unknown_key(key_id)
        return keys[key_id]

    if record["result_id"] is None:
        raise ValueError("it has no result_id")
    result = statement.parse_result(
        envelope.open_envelope(opened, statement.RESULT_PAYLOAD_TYPE, find)
    )
    (signature,) = opened.signatures
    statement.require_author(result.agent.key_id, signature.key_id)
    issued = _challenge(record, identity)
    if issued is not None and not challenges.binds(issued, result, identity.origin):
        raise ValueError("its challenge is of another result")
    received = Opened(record["result_id"], opened, result, record["logged_at"])
    return Verified(record, opened, received, issued)


def _challenge(record: Record, identity: Identity) -> acts.ChallengeIssued | None:
    if record["challenge"] is None:
        return None
    signed = envelope.open_envelope(
        envelope.read(strict_json.dumps(record["challenge"])),
        acts.CHALLENGE_PAYLOAD_TYPE,
        lambda _: identity.challenge,
    )
    return acts.ChallengeIssued.parse(signed)
