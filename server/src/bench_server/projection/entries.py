"""Read the log's entries for the projector, and derive what needs no other result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Executable, Row, and_, bindparam, select

from bench_protocol.payload.result import Result
from bench_protocol.signing import envelope
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import Known, Recomputation

from ..checks import submission as submission_checks
from ..checks import table as result_checks
from ..db.environments import environment_row
from ..db.lists import among
from ..db.tables import Challenge, LogEntry, SigningKey, Submission, table_of
from ..ingest import challenges, columns, hardware_names
from ..recompute import jobs
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


@dataclass(frozen=True)
class RecomputationEntry:
    """A seeded job that the server computed, or left out."""

    log_index: int
    said: Recomputation


Entry = KeyEventEntry | ActEntry | RecomputationEntry | ResultEntry


@dataclass(frozen=True)
class Batch:
    """Entries in their order, and the index after the last one. Erased results have none.
    ``environments``: rows of the results' environments."""

    entries: tuple[Entry, ...]
    environments: tuple[Mapping[str, Any], ...]
    next_index: int


def read_batch(connection: Connection, start: int, limit: int) -> Batch:
    rows = connection.execute(ENTRIES, {"start": start, "limit": limit}).all()
    results = [row for row in rows if row.kind == "result" and row.payload is not None]
    keys = _by_id(connection, KEYS, {row.key_id for row in results})
    bound = _by_id(connection, CHALLENGES, {row.challenge_id for row in results} - {None})
    opened = {row.log_index: columns.stored_result(row.payload) for row in results}
    found = [recomputation.job(result) for result in opened.values()]
    wanted = [job.key for job in found if job]
    stated = jobs.stated(connection, wanted)
    own = {index: columns.of_result(result) for index, result in opened.items()}
    hardware_names.put(connection, own.values())
    entries: list[Entry] = []
    for row in rows:
        if row.kind == "key_event":
            entries.append(KeyEventEntry(row.log_index, row.envelope))
        elif row.kind == "act":
            entries.append(ActEntry(row.log_index, row.envelope))
        elif row.kind == "recomputation":
            said = recomputation.parse(envelope.read(row.envelope).payload)
            entries.append(RecomputationEntry(row.log_index, said))
            stated.setdefault(said.key, jobs.Stated(row.log_index, said))
        elif row.payload is not None:
            result, challenge = opened[row.log_index], bound.get(row.challenge_id)
            known = jobs.before(stated, row.log_index)
            key, named = keys[row.key_id], own[row.log_index]
            entries.append(_result(row, key, challenge, result, named, known))
    environments = {
        entry.columns["environment_id"]: opened[entry.log_index]
        for entry in entries
        if isinstance(entry, ResultEntry)
    }
    return Batch(
        tuple(entries),
        tuple(environment_row(result).model_dump() for result in environments.values()),
        rows[-1].log_index + 1 if rows else start,
    )


def _result(
    entry: Row[Any],
    key: Row[Any],
    challenge: Row[Any] | None,
    result: Result,
    own: Mapping[str, Any],
    known: Known,
) -> ResultEntry:
    facts = challenges.facts(result, challenge, entry.received_at)
    fresh = facts.challenge == "fresh"
    verdicts = (
        *result_checks.of_result(result, known, fresh),
        *submission_checks.of_submission(result, facts),
    )
    needed = jobs.needed(result, entry.challenge_id, entry.log_index) if fresh else []
    return result_entry(entry, key, result, own, verdicts, needed)


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
        *(_SUBMISSIONS.c[name] for name in ("challenge_id", "ask_id")),
    )
    .outerjoin_from(
        _LOG, _SUBMISSIONS, and_(_LOG.c.submission_id == _SUBMISSIONS.c.id, _LOG.c.kind == "result")
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
