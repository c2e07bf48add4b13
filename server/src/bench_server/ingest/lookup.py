"""Look up rows that a batch of results refers to or duplicates, in one query for each table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Row,
    Select,
    and_,
    select,
    union,
)
from sqlmodel import col

from bench_protocol.result import Result

from ..db.bulk import TextRows, among
from ..db.tables import Challenge, Measurement, SigningKey, Submission, Withdrawn

Repeat = tuple[str | int, ...]


class StoredRows(NamedTuple):
    """``keys`` and ``challenges`` by id, as rows; ``repeats``: the stored result of each repeat;
    ``withdrawn``: digests of payloads."""

    keys: dict[str, Row[Any]]
    challenges: dict[str, Row[Any]]
    repeats: dict[Repeat, Row[Any]]
    withdrawn: set[str]


def known(connection: Connection, results: Sequence[Result], digests: Sequence[str]) -> StoredRows:
    """Look up everything that these results name. ``digests``: SHA-256 of their payloads."""
    return StoredRows(
        keys_with_ids(connection, {result.agent.key_id for result in results}),
        challenges_of(connection, results),
        _repeats(connection, results),
        set(connection.scalars(WITHDRAWN, {"digests": digests})),
    )


def keys_with_ids(connection: Connection, ids: Iterable[str]) -> dict[str, Row[Any]]:
    return {row.key_id: row for row in connection.execute(KEYS, {"ids": list(ids)}).all()}


def challenges_of(connection: Connection, results: Iterable[Result]) -> dict[str, Row[Any]]:
    named = {result.challenge.id for result in results if result.challenge is not None}
    found = connection.execute(CHALLENGES, {"ids": list(named)}) if named else ()
    return {row.id: row for row in found}


def repeats_of(row: Any) -> list[Repeat]:
    """The unique keys of a result: its repeat within the run, and under the challenge."""
    cell = (row.cell_digest, row.repeat)
    bound = [(row.challenge_id, *cell)] if row.challenge_id is not None else []
    return [(row.key_id, row.run_id, *cell), *bound]


def _repeats(connection: Connection, results: Sequence[Result]) -> dict[Repeat, Row[Any]]:
    dialect = connection.dialect.name
    # A result that names no challenge is bound to none.
    wanted = [
        (r.run_id, r.agent.key_id, r.challenge.id if r.challenge else "", r.cell.digest)
        for r in results
    ]
    found = connection.execute(REPEATS[dialect], WANTED.values(dialect, wanted)).all()
    kept = (row for row in found if row.submission_id is not None)
    return {repeat: row for row in kept for repeat in repeats_of(row)}


# Statements that every batch runs, built once.
_KEYS = SigningKey.__table__.c  # type: ignore[attr-defined]
KEYS = select(
    *(_KEYS[name] for name in ("key_id", "owner", "first_key_id", "status")),
    *(_KEYS[name] for name in ("revoked_reason", "compromised_since")),
).where(among(SigningKey.key_id, "ids"))
CHALLENGES = select(Challenge.__table__).where(among(Challenge.id, "ids"))  # type: ignore[attr-defined]
WITHDRAWN = select(col(Withdrawn.payload_sha256)).where(among(Withdrawn.payload_sha256, "digests"))
_RESULTS = Measurement.__table__  # type: ignore[attr-defined]
_SUBMISSIONS = Submission.__table__  # type: ignore[attr-defined]
WANTED = TextRows("run_id", "key_id", "challenge_id", "cell_digest")


def _same(wanted: FromClause, columns: Mapping[str, ColumnElement[str]]) -> Select[Any]:
    """For each wanted key the stored results with equal columns, or a row of nulls. The outer join
    keeps SQLite's planner from starting with all stored results."""
    c = _RESULTS.c
    same = and_(*(c[name] == value for name, value in columns.items()))
    kept = wanted.outerjoin(_RESULTS, same)
    return select(
        *(c.submission_id, c.key_id, c.run_id, c.challenge_id, c.cell_digest, c.repeat),
        _SUBMISSIONS.c.payload_sha256,
    ).select_from(kept.outerjoin(_SUBMISSIONS, _SUBMISSIONS.c.id == c.submission_id))


def _kept_repeats(dialect: str) -> CompoundSelect[Any]:
    """A part for each index."""
    wanted, columns = WANTED.table(dialect)
    by_run, by_challenge = ("run_id", "key_id", "cell_digest"), ("challenge_id", "cell_digest")
    return union(
        *(_same(wanted, {name: columns[name] for name in by}) for by in (by_run, by_challenge))
    )


REPEATS = {dialect: _kept_repeats(dialect) for dialect in ("sqlite", "postgresql")}
