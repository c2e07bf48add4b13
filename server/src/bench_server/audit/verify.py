"""``verify-log``: verify a server's log, and that its leaderboard follows from the log.

The input is public answers of a server, or a dump of them, and nothing in it is trusted. The audit
rebuilds the tree from the entries and compares it with the tiles and every checkpoint, verifies
each entry's envelope and each envelope's key, and replays the whole history into an empty database.
Its leaderboard must equal the one shown.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlmodel import Session

from bench_protocol import (
    acts,
    envelope,
    merkle,
    note,
    receipts,
    recomputation,
    speed_run,
    statement,
    strict_json,
    tiles,
)
from bench_protocol.catalogue import CATALOGUE
from bench_protocol.envelope import Envelope
from bench_protocol.errors import InvalidProof, ProtocolError
from bench_protocol.recomputation import RECOMPUTATION_PAYLOAD_TYPE
from bench_protocol.workloads import Workload

from ..answers import leaderboard_sql
from ..answers.filters import BoardFilters
from ..db.store import Store
from ..db.tables import Challenge, LogEntry, Submission, Table
from ..ingest import beats, challenges, key_events, key_registry, moderation
from ..ingest.verdicts import Finding
from ..log.server_keys import Identity
from ..projection.projector import Projector
from ..ranking.figures import Setup
from . import countersigned
from .countersigned import NOBODY, Trusted

Fetch = Callable[[str], bytes]
# The same code computes figures from the same integers; only the order of sums may differ.
SAME_WITHIN = 1e-9
# How often boards are fetched while results come in between.
TRIES = 20
PAUSE_SECONDS = 0.3
FINDING = TypeAdapter(Finding)


@dataclass(frozen=True)
class Fault:
    """A fault. ``log_index``: the first entry it concerns, None for the whole log."""

    log_index: int | None
    detail: str


@dataclass(frozen=True)
class Report:
    """What was audited, and the faults. ``key``: the verifier key of the log; ``as_of``: the number
    of entries that the boards follow from."""

    origin: str
    key: str
    size: int
    as_of: int
    results: int
    withheld: int
    figures: int
    faults: tuple[Fault, ...]


class Boards(NamedTuple):
    """Samples per second of every set-up of every hardware, and the number of log entries that they
    follow from."""

    speeds: dict[str, float]
    as_of: int


def audit(fetch: Fetch, trusted: Trusted = NOBODY) -> Report:
    """Audit a server.

    Args:
        fetch: returns the bytes at a path of the server.
        trusted: whose countersignatures are checked.

    Raises:
        ProtocolError: an answer is malformed.
    """
    # Before the log, so that it holds every entry that the boards follow from.
    boards = _shown(fetch)
    state = strict_json.loads(fetch("/api/v1/log"))
    key = note.parse_key(state["key"])
    checkpoint = receipts.open_checkpoint(fetch("/checkpoint").decode(), key)
    records = {record["log_index"]: record for record in _records(fetch)}
    entries = _entries(fetch, checkpoint.size)
    faults = [*_tree_faults(fetch, checkpoint, key, entries, records)]
    faults += _entry_faults(checkpoint.size, entries, records)
    broken = {fault.log_index for fault in faults}
    sound = [records[i] for i in sorted(records) if i not in broken]
    replayed, more = _replay(sound, state, boards.as_of)
    faults += more
    faults += _figure_faults(replayed, boards.speeds)
    faults += [Fault(*found) for found in countersigned.faults(fetch, key, records, trusted)]
    return Report(
        origin=checkpoint.origin,
        key=str(key),
        size=checkpoint.size,
        results=sum(r["kind"] == "result" and r["envelope"] is not None for r in sound),
        withheld=sum(record["envelope"] is None for record in records.values()),
        as_of=boards.as_of,
        figures=len(boards.speeds),
        faults=tuple(sorted(faults, key=lambda f: (f.log_index is None, f.log_index or 0))),
    )


def _records(fetch: Fetch) -> Iterator[dict[str, Any]]:
    start: int | None = 0
    while start is not None:
        page = json.loads(fetch(f"/api/v1/log/entries?start={start}"))
        yield from page["records"]
        start = page["next_start"]


def _entries(fetch: Fetch, size: int) -> list[bytes] | Fault:
    try:
        entries = [e for a in tiles.entries_addresses(size) for e in tiles.decode_entries(fetch(a))]
    except (ProtocolError, OSError) as error:
        return Fault(None, f"the log's entries cannot be read: {error}")
    return entries


def _tree_faults(
    fetch: Fetch,
    checkpoint: receipts.Checkpoint,
    key: note.NoteKey,
    entries: list[bytes] | Fault,
    records: dict[int, dict[str, Any]],
) -> Iterator[Fault]:
    """Rebuild the tree and compare it with the tiles and every signed checkpoint."""
    if isinstance(entries, Fault):
        missing = next((i for i in range(checkpoint.size) if i not in records), None)
        yield Fault(missing, "dropped: the log signed it and no longer has it")
        return
    tile_hashes = _leaf_hashes(fetch, checkpoint.size)
    frontier = merkle.Frontier()
    for index, entry in enumerate(entries):
        leaf = merkle.leaf_hash(entry)
        frontier.add(leaf)
        if tile_hashes and leaf != tile_hashes[index]:
            yield Fault(index, "the entry is not the one whose hash is in the tree")
            return
        signed = records.get(index, {}).get("checkpoint")
        if signed is None:
            continue
        try:
            then = receipts.open_checkpoint(signed, key)
        except ProtocolError as error:
            yield Fault(index, f"its checkpoint does not verify: {error.detail}")
            return
        if (then.size, then.root) != (index + 1, frontier.root):
            yield Fault(index, "the tree up to it is not the one the log signed then")
            return
    if frontier.root != checkpoint.root:
        yield Fault(None, "the tree over all entries is not the one the log signs now")


def _leaf_hashes(fetch: Fetch, size: int) -> list[bytes]:
    hashes = []
    for start in range(0, size, tiles.WIDTH):
        tile = fetch(tiles.tile_address(0, start // tiles.WIDTH, size))
        width = merkle.HASH_BYTES
        hashes += [tile[at : at + width] for at in range(0, len(tile), width)]
    return hashes if len(hashes) == size else []


def _entry_faults(
    size: int, entries: list[bytes] | Fault, records: dict[int, dict[str, Any]]
) -> Iterator[Fault]:
    """Check that each entry commits to its envelope."""
    for index in range(size):
        record = records.get(index)
        if record is None:
            if not isinstance(entries, Fault):
                yield Fault(index, "dropped: the log signed it and does not show it")
            continue
        if record["envelope"] is None or record["salt"] is None:
            if record["salt"] is None and record["result_id"] is None:
                continue  # withdrawn: salt and envelope are erased, the entry stays
            if record["hidden"]:
                continue
            yield Fault(index, "dropped: its envelope is missing although it was not withdrawn")
            continue
        try:
            opened = envelope.read(strict_json.dumps(record["envelope"]))
            committed = receipts.commitment(bytes.fromhex(record["salt"]), opened).hex()
        except (ProtocolError, ValueError) as error:
            yield Fault(index, f"its envelope cannot be read: {error}")
            continue
        shown = record["commitment"] if isinstance(entries, Fault) else entries[index].hex()
        if committed != shown:
            yield Fault(index, "edited: the envelope shown is not the one the log committed to")


def _replay(
    records: list[dict[str, Any]], state: dict[str, Any], as_of: int
) -> tuple[dict[str, float], list[Fault]]:
    """Accept the history again into an empty database, and project the entries before ``as_of``.

    Returns:
        Samples per second of every set-up of every hardware, and what should not be in the log.
    """
    store = Store("sqlite:///:memory:")
    Table.metadata.create_all(store.engine)
    identity = Identity(
        state["origin"],
        statement.public_key(state["challenge_key"]),
        statement.public_key(state["operator_key"]),
    )
    shown = [record for record in records if record["envelope"] is not None]
    projected = [record for record in shown if record["log_index"] < as_of]
    faults = _accepted(store, identity, projected)
    Projector(store).catch_up()
    filters = BoardFilters.model_validate({"batch_size": "any", "precision": "any"})
    with store.reading() as session:
        speeds = {
            _name(
                figure.setup._asdict() | {"hardware_slug": figure.hardware_slug},
                figure.subject.workload,
            ): 1e9 / figure.ns_per_sample
            for figures in leaderboard_sql.figures(session, CATALOGUE, filters).values()
            for figure in figures
        }
    faults += _accepted(store, identity, shown[len(projected) :])
    store.close()
    return speeds, faults


def _accepted(store: Store, identity: Identity, records: list[dict[str, Any]]) -> list[Fault]:
    """Accept records; the faults are of those that should not be in the log."""
    faults = []
    with store.writing() as session:
        for record in records:
            try:
                _accept(session, identity, record)
            except (ProtocolError, KeyError, ValueError) as error:
                faults.append(Fault(record["log_index"], f"it should not be there: {error}"))
    return faults


def _shown(fetch: Fetch) -> Boards:
    """What the leaderboard shows. Boards that follow from different entries are fetched again."""
    for _ in range(TRIES):
        boards = [_board(fetch, workload) for workload in CATALOGUE]
        if len({board.as_of for board in boards}) == 1:
            break
        time.sleep(PAUSE_SECONDS)
    else:
        raise InvalidProof("the boards change faster than they can be fetched; try again later")
    return Boards({k: v for board in boards for k, v in board.speeds.items()}, boards[0].as_of)


def _board(fetch: Fetch, workload: Workload) -> Boards:
    speeds: dict[str, float] = {}
    cursor, as_of = "", 0
    while True:
        page = json.loads(
            fetch(
                f"/api/v1/leaderboard?workload={workload.name}&group=setup&batch_size=any"
                f"&precision=any&limit=500{cursor}"
            )
        )
        as_of = page["as_of"]
        speeds |= {
            _name(row, workload.name): row["samples_per_second"]
            for row in page["rows"]
            if not row["published"]
        }
        if not page.get("next_cursor"):
            return Boards(speeds, as_of)
        cursor = f"&cursor={page['next_cursor']}"


def _name(row: dict[str, Any], workload: str) -> str:
    parts = (workload, row["hardware_slug"], *(str(row[name]) for name in Setup._fields))
    return " ".join(parts)


def _figure_faults(replayed: dict[str, float], shown: dict[str, float]) -> Iterator[Fault]:
    for name in sorted(replayed.keys() | shown.keys()):
        ours, theirs = replayed.get(name), shown.get(name)
        if ours is None or theirs is None or abs(ours - theirs) > SAME_WITHIN * ours:
            words = [f"{x:,.6g}" if x is not None else "nothing" for x in (theirs, ours)]
            yield Fault(
                None, f"{name}: {words[0]} samples/s shown, {words[1]} follows from the log"
            )


def _accept(session: Session, identity: Identity, record: dict[str, Any]) -> None:
    """Verify a record as its acceptance did, and store what the projector reads."""
    raw = strict_json.dumps(record["envelope"])
    opened = envelope.read(raw)
    at = datetime.fromisoformat(record["logged_at"])
    if record["kind"] == "key_event":
        if key_events.apply(session, identity, opened, at) is None:
            raise ValueError("the key was enrolled before")
    elif record["kind"] == "act":
        act = moderation.verified(session, identity, opened)
        moderation.require_possible(session, act)
        moderation.change_keys(session, act)
    elif record["kind"] == "recomputation":
        signed = envelope.open_envelope(
            opened, RECOMPUTATION_PAYLOAD_TYPE, lambda _: identity.challenge
        )
        recomputation.parse(signed)
    elif record["kind"] == "speed_run":
        signed = envelope.open_envelope(
            opened, speed_run.STATEMENT_PAYLOAD_TYPE, lambda _: identity.challenge
        )
        key_registry.key_with_id(session, speed_run.parse(signed).key_id)
    else:
        _accept_result(session, identity, record, opened, at)
    session.add(
        LogEntry(
            log_index=record["log_index"],
            kind=record["kind"],
            commitment=bytes.fromhex(record["commitment"]),
            envelope=None if record["kind"] == "result" else raw,
            submission_id=record["result_id"],
            logged_at=at,
        )
    )
    session.flush()


def _accept_result(
    session: Session, identity: Identity, record: dict[str, Any], opened: Envelope, at: datetime
) -> None:
    payload = envelope.open_envelope(
        opened, statement.RESULT_PAYLOAD_TYPE, key_registry.find_key(session)
    )
    result = statement.parse_result(payload)
    (signature,) = opened.signatures
    statement.require_author(result.agent.key_id, signature.key_id)
    beats.require_own(result, identity)
    challenge = _challenge(session, identity, record)
    if challenge is not None and not challenges.binds(challenge, result, identity.origin):
        raise ValueError("its challenge is of another result")
    session.add(
        Submission(
            id=record["result_id"],
            payload=opened.payload,
            payload_sha256=opened.payload_sha256,
            payload_type=opened.payload_type,
            signature=signature.value,
            key_id=signature.key_id,
            received_at=at,
            run_id=result.run_id,
            cell_digest=result.cell.digest,
            repeat=result.repeat,
            challenge_id=None if challenge is None else challenge.id,
            outlier=_outlier(record),
        )
    )
    session.flush()


def _challenge(session: Session, identity: Identity, record: dict[str, Any]) -> Challenge | None:
    """The challenge that the server says a result is bound to, after checking its signature."""
    if record["challenge"] is None:
        return None
    signed = envelope.open_envelope(
        envelope.read(strict_json.dumps(record["challenge"])),
        acts.CHALLENGE_PAYLOAD_TYPE,
        lambda _: identity.challenge,
    )
    issued = acts.parse(acts.ChallengeIssued, signed)
    stored = session.get(Challenge, issued.id)
    if stored is None:
        stored = Challenge(
            id=issued.id,
            nonce=issued.nonce,
            key_id=issued.key_id,
            issued_at=datetime.fromisoformat(issued.issued_at),
            expires_at=datetime.fromisoformat(issued.expires_at),
        )
        session.add(stored)
        session.flush()
    return stored


def _outlier(record: dict[str, Any]) -> str | None:
    """What the server says that its outlier check found. It can only lower a trust level or hold a
    result back, and cannot be repeated: results of other owners may be withdrawn since."""
    finding = record.get("outlier")
    return None if finding is None else FINDING.validate_python(finding).as_text()
