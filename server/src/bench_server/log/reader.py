"""Read the transparency log: size, nodes, checkpoints, receipts, envelopes, tiles."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from sqlalchemy import Executable, bindparam
from sqlmodel import Session, and_, col, func, or_, select

from bench_protocol.base.errors import InvalidProof
from bench_protocol.signing import envelope, merkle, tiles
from bench_protocol.signing.envelope import Envelope
from bench_protocol.signing.merkle import Node
from bench_protocol.signing.receipts import Receipt

from ..db.lists import among
from ..db.tables import LogCheckpoint, LogEntry, LogNode, Submission
from ..errors import NotFound

NEWEST = select(func.max(LogEntry.log_index))


def size(session: Session) -> int:
    newest: int | None = session.connection().scalar(NEWEST)
    return 0 if newest is None else newest + 1


def nodes(session: Session, wanted: Iterable[Node]) -> dict[Node, bytes]:
    """Stored nodes of the tree. The answer omits those that are missing."""
    positions: dict[int, set[int]] = {}
    for level, position in wanted:
        positions.setdefault(level, set()).add(position)
    if not positions:
        return {}
    places = {
        name: value
        for number, (level, at_level) in enumerate(sorted(positions.items()))
        for name, value in ((f"level_{number}", level), (f"positions_{number}", list(at_level)))
    }
    rows = session.connection().execute(_nodes_of(len(positions)), places)
    return {(level, position): value for level, position, value in rows}


@cache
def _nodes_of(levels: int) -> Executable:
    # SQLite uses no index for pairs of columns in a list, so compare each level by itself.
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


def first_checkpoint(session: Session, index: int) -> LogCheckpoint:
    covering = select(LogCheckpoint).where(col(LogCheckpoint.size) > index)
    return session.exec(covering.order_by(col(LogCheckpoint.size)).limit(1)).one()


def receipts(session: Session, entries: Sequence[LogEntry]) -> list[Receipt]:
    """Receipts of entries, each under the first checkpoint that covers it, so that an entry's
    receipt never changes. Entries with an erased salt have none."""
    salted = [(entry.log_index, entry.salt) for entry in entries if entry.salt is not None]
    first = _first_checkpoints(session, [index for index, _ in salted])
    places = [
        (index, checkpoint.size) for (index, _), checkpoint in zip(salted, first, strict=True)
    ]
    ranges = (r for place in places for r in merkle.inclusion_ranges(*place))
    stored = nodes(session, merkle.nodes_of(ranges))
    return [
        Receipt(index, salt, path(stored, index, checkpoint.size), checkpoint.note)
        for (index, salt), checkpoint in zip(salted, first, strict=True)
    ]


def index_of_result(session: Session, submission_id: str) -> int:
    """The index of the entry of a stored result."""
    of_result = select(LogEntry.log_index).where(LogEntry.submission_id == submission_id)
    return session.exec(of_result.where(LogEntry.kind == "result")).one()


def receipts_of_results(session: Session, submission_ids: Iterable[str]) -> dict[str, Receipt]:
    entries = session.exec(
        select(LogEntry)
        .where(col(LogEntry.submission_id).in_(submission_ids))
        .where(LogEntry.kind == "result")
    ).all()
    receipts_found = receipts(session, entries)
    return {
        str(entry.submission_id): receipt
        for entry, receipt in zip(entries, receipts_found, strict=True)
    }


def receipt_of_payload(session: Session, payload_sha256: str) -> Receipt | None:
    """The receipt of a logged key event or act with this payload; None if there is none."""
    entry = session.exec(select(LogEntry).where(LogEntry.payload_sha256 == payload_sha256)).first()
    return None if entry is None else next(iter(receipts(session, [entry])), None)


def envelope_of(entry: LogEntry, submission: Submission | None) -> Envelope | None:
    """The envelope that an entry commits to; None if it was erased."""
    if entry.envelope is not None:
        return envelope.read(entry.envelope)
    return None if submission is None else envelope_of_result(submission)


def envelope_of_result(submission: Submission) -> Envelope:
    """The received envelope. Only the spelling of its base64 may differ."""
    signature = envelope.Signature(submission.key_id, submission.signature)
    return Envelope(submission.payload_type, submission.payload, (signature,))


def hash_tile(session: Session, level: int, number: str) -> bytes:
    """A tile of hashes.

    Raises:
        NotFound: the log has no such tile.
    """
    start, count = _place(number)
    hashes = session.exec(
        select(LogNode.hash)
        .where(LogNode.level == level * tiles.HEIGHT)
        .where(col(LogNode.position) >= start, col(LogNode.position) < start + count)
        .order_by(col(LogNode.position))
    ).all()
    if len(hashes) != count:
        raise _no_tile(number)
    return b"".join(hashes)


def entry_tile(session: Session, number: str) -> bytes:
    """An entry bundle.

    Raises:
        NotFound: the log has no such bundle.
    """
    start, count = _place(number)
    commitments = session.exec(
        select(LogEntry.commitment)
        .where(col(LogEntry.log_index) >= start, col(LogEntry.log_index) < start + count)
        .order_by(col(LogEntry.log_index))
    ).all()
    if len(commitments) != count:
        raise _no_tile(number)
    return tiles.encode_entries(commitments)


def _first_checkpoints(session: Session, indices: Sequence[int]) -> list[LogCheckpoint]:
    """The first checkpoint that covers each entry; entries of one append share theirs."""
    checkpoints: dict[int, LogCheckpoint] = {}
    newest: LogCheckpoint | None = None
    for index in sorted(indices):
        if newest is None or newest.size <= index:
            newest = first_checkpoint(session, index)
        checkpoints[index] = newest
    return [checkpoints[index] for index in indices]


def path(tree: Mapping[Node, bytes], index: int, size: int) -> tuple[bytes, ...]:
    return tuple(merkle.range_hash(tree, *r) for r in merkle.inclusion_ranges(index, size))


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
        hint="GET /checkpoint says how large the log is",
    )
