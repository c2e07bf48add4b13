"""The public log: its state, and pages of entries with their envelopes."""

import base64
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import groupby
from urllib.parse import parse_qs, urlsplit

from pydantic import TypeAdapter
from sqlmodel import Session, col, select

from bench_protocol.base import strict_json
from bench_protocol.payload import acts
from bench_protocol.signing import envelope, keys
from bench_protocol.signing.breaks import open_break
from bench_protocol.signing.note import NoteKey
from bench_protocol.signing.receipts import open_checkpoint

from ..checks.verdicts import Finding
from ..db.lists import among
from ..db.tables import Challenge, Cosignature, LogCheckpoint, LogEntry, Submission
from ..ingest import challenges
from ..log import breaks, reader
from ..log.server_keys import Authority
from ..projection import position
from ..ranking.rows import RESULTS
from .board_filters import BoardFilters
from .leaderboard import leaderboard
from .types.leaderboard import LeaderboardAnswer, flat
from .types.trust import (
    CosignedAnswer,
    CosignedCheckpoint,
    LogAnswer,
    LogPage,
    LogRecord,
    StatedBreak,
    envelope_document,
)


def state(session: Session, authority: Authority, license: str) -> LogAnswer:
    note = reader.newest_checkpoint(session).note
    checkpoint = open_checkpoint(note, authority.log_key)
    challenge_key, operator_key = (
        base64.b64encode(keys.spki(key.public_key())).decode()
        for key in (authority.challenge, authority.operator)
    )
    return LogAnswer(
        origin=authority.origin,
        key=str(authority.log_key),
        size=checkpoint.size,
        root=base64.b64encode(checkpoint.root).decode(),
        checkpoint=note,
        challenge_key=challenge_key,
        operator_key=operator_key,
        license=license,
        breaks=tuple(stated(text, authority.log_key) for text in breaks.notes(session)),
    )


def stated(text: str, key: NoteKey) -> StatedBreak:
    """Read a statement of a loss. One that is damaged must hide nothing else of the log."""
    try:
        one = open_break(text, key)
        last = None if one.last == "none" else datetime.fromisoformat(one.last)
        at = datetime.fromisoformat(one.at)
    except ValueError as error:
        return StatedBreak(text, damage=getattr(error, "detail", str(error)))
    return StatedBreak(text, one.kept.size, last, at, one.reason)


def page(session: Session, authority: Authority, start: int, limit: int) -> LogPage:
    entries = session.exec(
        select(LogEntry)
        .where(col(LogEntry.log_index) >= start)
        .order_by(col(LogEntry.log_index))
        .limit(limit + 1)
    ).all()
    shown = entries[:limit]
    following = entries[limit].log_index if len(entries) > limit else None
    records = tuple(_records(session, authority, shown))
    return LogPage(records, following, position.read(session.connection()).next_index)


def cosigned(session: Session, days: int) -> CosignedAnswer:
    """The checkpoints of the last days on which a witness cosigned."""
    newest = select(Cosignature.day).distinct().order_by(col(Cosignature.day).desc()).limit(days)
    rows = session.exec(
        select(Cosignature, LogCheckpoint.note)
        .join(LogCheckpoint, col(LogCheckpoint.size) == col(Cosignature.size))
        .where(col(Cosignature.day).in_(newest))
        .order_by(
            col(Cosignature.day).desc(), col(Cosignature.size).desc(), col(Cosignature.witness)
        )
    ).all()
    checkpoints = []
    for (day, size, note), group in groupby(rows, lambda row: (row[0].day, row[0].size, row[1])):
        signed = [row[0] for row in group]
        lines = "".join(row.line for row in signed)
        witnesses = tuple(row.witness for row in signed)
        checkpoints.append(CosignedCheckpoint(day, size, note + lines, witnesses))
    return CosignedAnswer(tuple(checkpoints))


def _records(
    session: Session, authority: Authority, entries: Sequence[LogEntry]
) -> list[LogRecord]:
    # Read entries of every kind: an act that hides a result is withheld with it, even pages later.
    result_ids = [entry.submission_id for entry in entries if entry.submission_id]
    submissions = {
        row.id: row
        for row in session.exec(select(Submission).where(col(Submission.id).in_(result_ids)))
    }
    measured = {
        row.submission_id: row
        for row in session.connection().execute(LEVELS, {"ids": sorted(set(result_ids))})
    }
    challenge_ids = {row.challenge_id for row in submissions.values() if row.challenge_id}
    challenge_rows = session.exec(select(Challenge).where(col(Challenge.id).in_(challenge_ids)))
    signed = {row.id: _challenge(row, authority) for row in challenge_rows}
    sizes = [entry.log_index + 1 for entry in entries]
    notes = session.exec(select(LogCheckpoint).where(col(LogCheckpoint.size).in_(sizes)))
    note_of = {row.size: row.note for row in notes}
    records = []
    for entry in entries:
        submission = submissions.get(entry.submission_id or "")
        is_result = entry.kind == "result"
        opened = reader.envelope_of(entry, submission if is_result else None)
        row = measured.get(entry.submission_id or "")
        hidden = row is not None and row.moderation == "hidden"
        withheld = opened is None or hidden
        records.append(
            LogRecord(
                log_index=entry.log_index,
                kind=entry.kind,
                commitment=entry.commitment.hex(),
                logged_at=entry.logged_at,
                salt=None if withheld or entry.salt is None else entry.salt.hex(),
                envelope=None if withheld or opened is None else envelope_document(opened),
                result_id=entry.submission_id,
                hidden=hidden,
                challenge=signed.get(submission.challenge_id or "") if submission else None,
                outlier=None if withheld else _outlier(submission),
                checkpoint=note_of.get(entry.log_index + 1),
                trust_level=row.trust_level if row and is_result and not withheld else None,
                ranked=row.rankable if row and is_result and not withheld else None,
            )
        )
    return records


def _outlier(submission: Submission | None) -> Finding | None:
    text = submission.outlier if submission is not None else None
    return None if text is None else Finding.from_text(text)


def _challenge(row: Challenge, authority: Authority) -> dict[str, object]:
    issued = acts.payload(challenges.given_challenge(row, authority))
    sealed = envelope.seal(acts.CHALLENGE_PAYLOAD_TYPE, issued, authority.challenge)
    document: dict[str, object] = strict_json.loads(sealed)
    return document


def fetch_from(session: Session, authority: Authority, license: str) -> Callable[[str], bytes]:
    """Answer an audit's requests from the database, without a server."""

    def fetch(path: str) -> bytes:
        address = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path == "/checkpoint":
            return reader.newest_checkpoint(session).note.encode()
        if address.path == "/api/v1/log":
            return TypeAdapter(LogAnswer).dump_json(state(session, authority, license))
        if address.path == "/api/v1/log/cosigned":
            signed = cosigned(session, int(query["limit"]))
            return TypeAdapter(CosignedAnswer).dump_json(signed)
        if address.path == "/api/v1/log/entries":
            shown = page(session, authority, int(query["start"]), 256)
            return TypeAdapter(LogPage).dump_json(shown)
        if address.path == "/api/v1/leaderboard":
            found = leaderboard(session, BoardFilters(**query))  # type: ignore[arg-type]
            as_of = position.read(session.connection()).next_index
            board = flat(found.boards, found.scores, as_of)
            return TypeAdapter(LeaderboardAnswer).dump_json(board)
        if address.path.startswith("/tile/entries/"):
            return reader.entry_tile(session, address.path.removeprefix("/tile/entries/"))
        level, _, number = address.path.removeprefix("/tile/").partition("/")
        return reader.hash_tile(session, int(level), number)

    return fetch


# Built once.
LEVELS = select(
    *(RESULTS.c[name] for name in ("submission_id", "moderation", "trust_level", "rankable"))
).where(among(RESULTS.c.submission_id, "ids"))
