"""What the database holds of some results already: asked once for all of them."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, bindparam, select, union_all
from sqlmodel import col

from bench_protocol.result import Result

from .statements import among
from .tables import Challenge, Measurement, SigningKey, Submission, Withdrawn

Repeat = tuple[str | int, ...]


class Known(NamedTuple):
    """``keys`` and ``challenges`` by id, as rows; ``repeats``: the kept result of each repeat;
    ``withdrawn``: digests of payloads."""

    keys: dict[str, Row[Any]]
    challenges: dict[str, Row[Any]]
    repeats: dict[Repeat, Row[Any]]
    withdrawn: set[str]


def known(connection: Connection, results: Sequence[Result], digests: Sequence[str]) -> Known:
    """Look for whatever these results name. ``digests`` are of their payloads."""
    return Known(
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
    """What a result is the only one of: its repeat in its run, and under its challenge."""
    cell = (row.cell_digest, row.repeat)
    bound = [(row.challenge_id, *cell)] if row.challenge_id is not None else []
    return [(row.key_id, row.run_id, *cell), *bound]


def _repeats(connection: Connection, results: Sequence[Result]) -> dict[Repeat, Row[Any]]:
    named = {result.challenge.id for result in results if result.challenge is not None}
    values = {
        "cells": list({result.cell.digest for result in results}),
        "runs": list({result.run_id for result in results}),
        # Asked for one of none, SQLite would read every row.
        "challenges": list(named) or [""],
    }
    found = connection.execute(REPEATS, values).all()
    return {repeat: row for row in found for repeat in repeats_of(row)}


def _in_list(column: Any, name: str) -> ColumnElement[bool]:
    """With the list written out: of several lists in JSON SQLite would look for the first alone."""
    found: ColumnElement[bool] = col(column).in_(bindparam(name, expanding=True))
    return found


# Statements of every ingest, put together once.
_KEYS = SigningKey.__table__.c  # type: ignore[attr-defined]
KEYS = select(
    *(_KEYS[name] for name in ("key_id", "owner", "first_key_id", "status")),
    *(_KEYS[name] for name in ("revoked_reason", "compromised_since")),
).where(among(SigningKey.key_id, "ids"))
CHALLENGES = select(Challenge.__table__).where(among(Challenge.id, "ids"))  # type: ignore[attr-defined]
WITHDRAWN = select(col(Withdrawn.payload_sha256)).where(among(Withdrawn.payload_sha256, "digests"))
_RESULTS = Measurement.__table__.c  # type: ignore[attr-defined]
_REPEATS = (
    select(
        *(
            _RESULTS[name]
            for name in (
                *("submission_id", "key_id", "run_id", "challenge_id", "cell_digest", "repeat"),
            )
        ),
        col(Submission.payload_sha256),
    )
    .join(Submission, col(Submission.id) == Measurement.submission_id)
    .where(_in_list(Measurement.cell_digest, "cells"))
)
# A part for each index. A run's id is its key's own choice, so others of that id may be among them.
REPEATS = union_all(
    _REPEATS.where(_in_list(Measurement.run_id, "runs")),
    _REPEATS.where(_in_list(Measurement.challenge_id, "challenges")),
)
