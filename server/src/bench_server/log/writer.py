"""Append to the transparency log and sign its checkpoints.

One transaction stores a submission, appends its entry and signs the checkpoint over the new size.
Therefore every acknowledged submission is logged, and no size is signed twice.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import insert, text
from sqlmodel import Session, col, select

from bench_protocol.base.errors import InvalidProof
from bench_protocol.signing import envelope, merkle
from bench_protocol.signing import receipts as log
from bench_protocol.signing.envelope import Envelope
from bench_protocol.signing.merkle import Node
from bench_protocol.signing.receipts import Checkpoint, Receipt

from ..db.tables import LogCheckpoint, LogEntry, LogNode, table_of
from . import reader
from .server_keys import Authority, KeysProblem

# PostgreSQL: the lock that serialises writers of the log. The number is arbitrary but unique.
ADVISORY_LOCK = 0x7472_6169_6E6C_6F67
# Statements of every batch, built once.
# Every lookup has an index, but the planner may ignore the index of a small table.
TURN = text("SELECT pg_advisory_xact_lock(:lock), set_config('enable_seqscan', 'off', true)")
NEW_ENTRIES = insert(table_of(LogEntry))
NEW_NODES = insert(table_of(LogNode))
NEW_CHECKPOINTS = insert(table_of(LogCheckpoint))


@dataclass(frozen=True)
class Leaf:
    """An entry to log. Only the submission stores a result's envelope."""

    kind: str
    envelope: Envelope
    submission_id: str | None = None
    key_chain: str | None = None
    signer_chain: str | None = None


def take_turn(session: Session) -> None:
    """Wait until no other transaction writes to the log. On SQLite every writer holds the lock."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(TURN, {"lock": ADVISORY_LOCK})


def append(
    session: Session, authority: Authority, leaves: Sequence[Leaf], now: datetime
) -> list[Receipt]:
    """Append entries and sign one checkpoint over them all, in the session's transaction, which
    holds the log's lock (:func:`take_turn`); returns their receipts in order."""
    connection = session.connection()
    first = reader.size(session)
    edge = merkle.subtrees(0, first)
    # The paths of the new entries need only the edge of the old tree and the new nodes.
    tree = reader.nodes(session, edge)
    frontier = merkle.Frontier(first, [tree[node] for node in edge])
    salts: list[bytes] = []
    entries: list[dict[str, object]] = []
    complete: list[tuple[Node, bytes]] = []
    for at, leaf in enumerate(leaves, first):
        salt = secrets.token_bytes(log.SALT_BYTES)
        commitment = log.commitment(salt, leaf.envelope)
        result = leaf.kind == "result"
        entry = {
            "log_index": at,
            "kind": leaf.kind,
            "commitment": commitment,
            "salt": salt,
            "payload_sha256": None if result else leaf.envelope.payload_sha256,
            "envelope": None if result else envelope.encode(leaf.envelope),
            "submission_id": leaf.submission_id,
            "key_chain": leaf.key_chain,
            "signer_chain": leaf.signer_chain,
            "logged_at": now,
        }
        salts.append(salt)
        entries.append(entry)
        complete += frontier.add(merkle.leaf_hash(commitment))
    tree |= dict(complete)
    note = _sign(session, authority, frontier)
    rows = [{"level": n[0], "position": n[1], "hash": value} for n, value in complete]
    connection.execute(NEW_NODES, rows)
    connection.execute(NEW_ENTRIES, entries)
    return [
        Receipt(at, salt, reader.path(tree, at, frontier.size), note)
        for at, salt in enumerate(salts, first)
    ]


def begin(session: Session, authority: Authority) -> None:
    """At the server's start: verify the newest checkpoint, or sign the first one.

    Raises:
        KeysProblem: the log was signed by another key, or under another name.
    """
    take_turn(session)
    newest = session.exec(
        select(LogCheckpoint).order_by(col(LogCheckpoint.size).desc()).limit(1)
    ).first()
    count = reader.size(session)
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
        stored = reader.nodes(session, edge)
        _sign(session, authority, merkle.Frontier(count, [stored[node] for node in edge]))


def _sign(session: Session, authority: Authority, frontier: merkle.Frontier) -> str:
    note = Checkpoint(authority.origin, frontier.size, frontier.root).signed(authority.log)
    session.connection().execute(NEW_CHECKPOINTS, [{"size": frontier.size, "note": note}])
    return note
