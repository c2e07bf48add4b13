"""Read the log's entries for the projector, and derive what needs no other result."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Executable, Row, and_, bindparam, select

from ..db.lists import among
from ..db.tables import Challenge, LogEntry, SigningKey, Submission, table_of
from ..ingest import challenges, columns, result_checks, submission_checks
from .measurements import ResultEntry, result_entry


@dataclass(frozen=True)
class KeyEventEntry:
    """A key event; its envelope is as sent."""

    log_index: int
    envelope: bytes


@dataclass(frozen=True)
class ActEntry:
    """An act; None for its envelope if it withdrew a result and was erased with it."""

    log_index: int
    envelope: bytes | None


Entry = KeyEventEntry | ActEntry | ResultEntry


@dataclass(frozen=True)
class Batch:
    """Entries in their order, and the index after the last one. Erased results have none."""

    entries: tuple[Entry, ...]
    next_index: int


def read_batch(connection: Connection, start: int, limit: int) -> Batch:
    """The next entries from an index on, at most ``limit``."""
    rows = connection.execute(ENTRIES, {"start": start, "limit": limit}).all()
    results = [row for row in rows if row.kind == "result" and row.payload is not None]
    keys = _by_id(connection, KEYS, {row.key_id for row in results})
    bound = _by_id(connection, CHALLENGES, {row.challenge_id for row in results} - {None})
    entries: list[Entry] = []
    for row in rows:
        if row.kind == "key_event":
            entries.append(KeyEventEntry(row.log_index, row.envelope))
        elif row.kind == "act":
            entries.append(ActEntry(row.log_index, row.envelope))
        elif row.payload is not None:
            entries.append(_result(row, keys[row.key_id], bound.get(row.challenge_id)))
    return Batch(tuple(entries), rows[-1].log_index + 1 if rows else start)


def _result(entry: Row[Any], key: Row[Any], challenge: Row[Any] | None) -> ResultEntry:
    result = columns.stored_result(entry.payload)
    facts = challenges.facts(result, challenge, entry.received_at)
    verdicts = (*result_checks.of_result(result), *submission_checks.of_submission(result, facts))
    return result_entry(entry, key, result, verdicts)


def _by_id(connection: Connection, statement: Any, ids: set[str]) -> dict[str | None, Row[Any]]:
    rows: Sequence[Row[Any]] = connection.execute(statement, {"ids": sorted(ids)}).all()
    return {row.id: row for row in rows}


# Statements of every batch, built once.
_LOG, _SUBMISSIONS, _KEYS = map(table_of, (LogEntry, Submission, SigningKey))
_CHALLENGES = table_of(Challenge)
ENTRIES: Executable = (
    select(
        *(_LOG.c[name] for name in ("log_index", "kind", "envelope", "submission_id")),
        *(_SUBMISSIONS.c[name] for name in ("payload", "key_id", "received_at", "outlier")),
        _SUBMISSIONS.c.challenge_id,
    )
    .outerjoin_from(
        _LOG,
        _SUBMISSIONS,
        and_(_LOG.c.submission_id == _SUBMISSIONS.c.id, _LOG.c.kind == "result"),
    )
    .where(_LOG.c.log_index >= bindparam("start"))
    .order_by(_LOG.c.log_index)
    .limit(bindparam("limit"))
)
KEYS = select(
    _KEYS.c.key_id.label("id"),
    *(_KEYS.c[name] for name in ("owner", "first_key_id")),
    *(_KEYS.c[name] for name in ("compromised_since", "revoked_reason")),
).where(among(_KEYS.c.key_id, "ids"))
CHALLENGES = select(_CHALLENGES).where(among(_CHALLENGES.c.id, "ids"))
