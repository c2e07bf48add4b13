"""The transparency log in the database: append, checkpoints, receipts, tiles.

An entry is appended in the transaction that keeps what it stands for, and the checkpoint over the
new size is signed in it too: what is acknowledged is logged, and no size is ever signed twice.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Executable, bindparam, insert, text
from sqlmodel import Session, and_, col, func, or_, select

from bench_protocol import envelope, merkle, tiles
from bench_protocol import receipts as log
from bench_protocol.envelope import Envelope
from bench_protocol.errors import InvalidProof
from bench_protocol.merkle import Node
from bench_protocol.receipts import Checkpoint, Receipt

from ..db.bulk import BulkWrite, among
from ..db.tables import LogCheckpoint, LogEntry, LogNode, Submission
from ..errors import NotFound
from .server_keys import Authority, KeysProblem

# PostgreSQL: writers of the log wait for each other; any number that nobody else uses.
ADVISORY_LOCK = 0x7472_6169_6E6C_6F67
# Statements of every ingest, put together once.
# All that is looked for has an index; of a small table the planner may think it not worth its use.
TURN = text("SELECT pg_advisory_xact_lock(:lock), set_config('enable_seqscan', 'off', true)")
NEWEST = select(func.max(LogEntry.log_index))
NEW_ENTRIES = BulkWrite(insert(LogEntry.__table__))  # type: ignore[attr-defined]
NEW_NODES = BulkWrite(insert(LogNode.__table__))  # type: ignore[attr-defined]
NEW_CHECKPOINTS = BulkWrite(insert(LogCheckpoint.__table__))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Leaf:
    """What is to be logged. A result's envelope is kept by its submission alone."""

    kind: str
    envelope: Envelope
    submission_id: str | None = None
    key_chain: str | None = None


def take_turn(session: Session) -> None:
    """Wait until no other transaction writes to the log; on SQLite every writer has waited."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(TURN, {"lock": ADVISORY_LOCK})


def append(
    session: Session, authority: Authority, first: int, leaves: Sequence[Leaf], now: datetime
) -> list[Receipt]:
    """Append entries and sign one checkpoint over them all, in the session's transaction, which has
    the log's turn.

    Args:
        first: the log's size.

    Returns:
        The receipt of each, in their order.
    """
    edge = merkle.subtrees(0, first)
    # The edge of the old tree and what grows on it are all that the new entries' paths are of.
    tree = nodes(session, edge)
    frontier = merkle.Frontier(first, [tree[node] for node in edge])
    entries: list[dict[str, Any]] = []
    complete: list[tuple[Node, bytes]] = []
    for at, leaf in enumerate(leaves, first):
        salt = secrets.token_bytes(log.SALT_BYTES)
        result = leaf.kind == "result"
        entry: dict[str, Any] = {
            "log_index": at,
            "kind": leaf.kind,
            "commitment": log.commitment(salt, leaf.envelope),
            "salt": salt,
            "payload_sha256": None if result else leaf.envelope.payload_sha256,
            "envelope": None if result else envelope.encode(leaf.envelope),
            "submission_id": leaf.submission_id,
            "key_chain": leaf.key_chain,
            "logged_at": now,
        }
        entries.append(entry)
        complete += frontier.add(merkle.leaf_hash(entry["commitment"]))
    tree |= dict(complete)
    note = _sign(session, authority, frontier)
    rows = [{"level": n[0], "position": n[1], "hash": value} for n, value in complete]
    NEW_NODES.rows(session.connection(), rows)
    NEW_ENTRIES.rows(session.connection(), entries)
    return [
        Receipt(at, entry["salt"], _path(tree, at, frontier.size), note)
        for at, entry in enumerate(entries, first)
    ]


def begin(session: Session, authority: Authority) -> None:
    """At the server's start: hold the newest checkpoint against the keys, or sign the first one.

    Raises:
        KeysProblem: the log was signed by another key, or under another name.
    """
    take_turn(session)
    newest = session.exec(
        select(LogCheckpoint).order_by(col(LogCheckpoint.size).desc()).limit(1)
    ).first()
    count = size(session)
    if newest is not None:
        try:
            log.open_checkpoint(newest.note, authority.log_key)
        except InvalidProof as error:
            raise KeysProblem(
                f"the log in this database is not this server's: {error.detail}; set "
                "BENCH_SERVER_ORIGIN and BENCH_SERVER_KEYS_DIR to what they were"
            ) from None
    if newest is None or newest.size < count:
        edge = merkle.subtrees(0, count)
        stored = nodes(session, edge)
        _sign(session, authority, merkle.Frontier(count, [stored[node] for node in edge]))


def size(session: Session) -> int:
    """Number of entries."""
    newest: int | None = session.connection().scalar(NEWEST)
    return 0 if newest is None else newest + 1


def nodes(session: Session, wanted: Iterable[Node]) -> dict[Node, bytes]:
    """Stored nodes of the tree. One that is missing is not in the answer."""
    positions: dict[int, set[int]] = {}
    for level, position in wanted:
        positions.setdefault(level, set()).add(position)
    if not positions:
        return {}
    places = {
        name: value
        for number, (level, own) in enumerate(sorted(positions.items()))
        for name, value in ((f"level_{number}", level), (f"positions_{number}", list(own)))
    }
    found = session.connection().execute(_nodes_of(len(positions)), places)
    return {(level, position): value for level, position, value in found}


@cache
def _nodes_of(levels: int) -> Executable:
    """The statement for positions of so many levels."""
    # Pairs of columns would make SQLite read every node.
    places = [
        and_(
            col(LogNode.level) == bindparam(f"level_{number}"),
            among(LogNode.position, f"positions_{number}"),
        )
        for number in range(levels)
    ]
    return select(col(LogNode.level), col(LogNode.position), col(LogNode.hash)).where(or_(*places))


def newest_checkpoint(session: Session) -> LogCheckpoint:
    """The checkpoint over all entries."""
    return session.exec(
        select(LogCheckpoint).order_by(col(LogCheckpoint.size).desc()).limit(1)
    ).one()


def receipts(session: Session, entries: Sequence[LogEntry]) -> list[Receipt]:
    """Receipts of entries, each under the first checkpoint that covers it, so that a receipt is
    the same whenever it is asked for. Entries whose salt was erased have none."""
    kept = [(entry.log_index, entry.salt) for entry in entries if entry.salt is not None]
    first = _first_checkpoints(session, [index for index, _ in kept])
    places = [(index, checkpoint.size) for (index, _), checkpoint in zip(kept, first, strict=True)]
    ranges = (r for place in places for r in merkle.inclusion_ranges(*place))
    stored = nodes(session, merkle.nodes_of(ranges))
    return [
        Receipt(index, salt, _path(stored, index, checkpoint.size), checkpoint.note)
        for (index, salt), checkpoint in zip(kept, first, strict=True)
    ]


def receipts_of_results(session: Session, submission_ids: Iterable[str]) -> dict[str, Receipt]:
    """Receipts of kept results, by their ids."""
    entries = session.exec(
        select(LogEntry)
        .where(col(LogEntry.submission_id).in_(submission_ids))
        .where(LogEntry.kind == "result")
    ).all()
    found = receipts(session, entries)
    return {
        str(entry.submission_id): receipt for entry, receipt in zip(entries, found, strict=True)
    }


def envelope_of(entry: LogEntry, submission: Submission | None) -> Envelope | None:
    """What an entry stands for; None where it was erased."""
    if entry.envelope is not None:
        return envelope.read(entry.envelope)
    return None if submission is None else envelope_of_result(submission)


def envelope_of_result(submission: Submission) -> Envelope:
    """The envelope as it was received, but for the spelling of its base64."""
    signature = envelope.Signature(submission.key_id, submission.signature)
    return Envelope(submission.payload_type, submission.payload, (signature,))


def hash_tile(session: Session, level: int, number: str) -> bytes:
    """A tile of hashes.

    Raises:
        NotFound: the log has no such tile.
    """
    start, count = _place(number)
    found = session.exec(
        select(LogNode.hash)
        .where(LogNode.level == level * tiles.HEIGHT)
        .where(col(LogNode.position) >= start, col(LogNode.position) < start + count)
        .order_by(col(LogNode.position))
    ).all()
    if len(found) != count:
        raise _no_tile(number)
    return b"".join(found)


def entry_tile(session: Session, number: str) -> bytes:
    """An entry bundle.

    Raises:
        NotFound: the log has no such bundle.
    """
    start, count = _place(number)
    found = session.exec(
        select(LogEntry.commitment)
        .where(col(LogEntry.log_index) >= start, col(LogEntry.log_index) < start + count)
        .order_by(col(LogEntry.log_index))
    ).all()
    if len(found) != count:
        raise _no_tile(number)
    return tiles.encode_entries(found)


def _first_checkpoints(session: Session, indices: Sequence[int]) -> list[LogCheckpoint]:
    """The first checkpoint that covers each entry; entries of one append share theirs."""
    found: dict[int, LogCheckpoint] = {}
    newest: LogCheckpoint | None = None
    for index in sorted(indices):
        if newest is None or newest.size <= index:
            newest = session.exec(
                select(LogCheckpoint)
                .where(col(LogCheckpoint.size) > index)
                .order_by(col(LogCheckpoint.size))
                .limit(1)
            ).one()
        found[index] = newest
    return [found[index] for index in indices]


def _path(tree: Mapping[Node, bytes], index: int, size: int) -> tuple[bytes, ...]:
    return tuple(merkle.range_hash(tree, *r) for r in merkle.inclusion_ranges(index, size))


def _sign(session: Session, authority: Authority, frontier: merkle.Frontier) -> str:
    note = Checkpoint(authority.origin, frontier.size, frontier.root).signed(authority.log)
    NEW_CHECKPOINTS.rows(session.connection(), [{"size": frontier.size, "note": note}])
    return note


def _place(number: str) -> tuple[int, int]:
    try:
        index, width = tiles.parse_tile_number(number)
    except InvalidProof:
        raise _no_tile(number) from None
    if index > 2**50:
        raise _no_tile(number)
    return index * tiles.WIDTH, width


def _no_tile(number: str) -> NotFound:
    return NotFound(
        f"the log has no tile {number[:40]!r}",
        field="tile",
        mend="GET /checkpoint says how large the log is",
    )
