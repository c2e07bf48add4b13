"""Saves results that come together, in one transaction: check -> save -> log.

What the database holds of them already is asked once for all of them. What follows from other
results follows one after the other, in the order in which the log has them: a replay of the log
finds the same, whatever came together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, bindparam, select
from sqlmodel import Session, col

from bench_protocol.envelope import Envelope
from bench_protocol.errors import ProtocolError
from bench_protocol.log import Receipt
from bench_protocol.result import Result

from . import challenges, checks, derive, judge, log, registry, standing_rows, standings
from .attributes import environment_row
from .authority import Authority
from .problems import Conflict, Gone
from .tables import Challenge, EnvironmentRow, Measurement, SigningKey, Submission, Withdrawn

Given = TypeVar("Given")
Found = TypeVar("Found")
Repeat = tuple[str | int, ...]


@dataclass(frozen=True)
class Arrived:
    """A verified result on its way into the database."""

    envelope: Envelope
    result: Result
    submission: Submission


class Kept(NamedTuple):
    """The rows of a result, and whether they are new."""

    submission: Submission
    measurement: Measurement
    created: bool


@dataclass(frozen=True)
class Accepted:
    """A kept result. ``created``: it is new; False where this payload was kept before."""

    submission: Submission
    measurement: Measurement
    receipt: Receipt
    created: bool


def attempt(step: Callable[[Given], Found], given: Given) -> Found | ProtocolError:
    """What a step makes of one of several, or why it makes nothing of it."""
    try:
        return step(given)
    except ProtocolError as error:
        return error


def save_all(
    session: Session, authority: Authority, arrived: Sequence[Arrived]
) -> list[Accepted | ProtocolError]:
    """Save and log each; what is refused does not spoil the others."""
    group = Group(session, authority, arrived)
    found = [attempt(group.keep, one) for one in arrived]
    group.save()
    receipts: dict[str | None, Receipt] = {}
    if group.leaves:
        now = max(one.submission.received_at for one in arrived)
        logged = log.append(session, authority, group.leaves, now)
        receipts = {
            leaf.submission_id: receipt for leaf, receipt in zip(group.leaves, logged, strict=True)
        }
    kept = {one.submission.id for one in found if isinstance(one, Kept)}
    if earlier := kept - receipts.keys():
        receipts.update(log.receipts_of_results(session, earlier))
    return [
        one
        if isinstance(one, ProtocolError)
        else Accepted(one.submission, one.measurement, receipts[one.submission.id], one.created)
        for one in found
    ]


def derived(
    session: Session, origin: str, submission: Submission, result: Result, log_index: int
) -> Measurement:
    """The measurement row of a result whose key is enrolled, checked and judged.

    It depends on what the database holds of earlier log entries, so replay them in their order.
    """
    row = derive.measurement_row(submission, result, _key(session, submission), log_index)
    arrival = _use_challenge(session, origin, row, result)
    place = standing_rows.place(row)
    _judge(session, row, result, arrival, standings.owner_times(session, [place])[place])
    return row


def save_rows(session: Session, rows: Sequence[tuple[Measurement, Result]]) -> None:
    """Add measurement rows, their environments where they are new, and take them into the
    standings."""
    new = {row.environment_id: result for row, result in rows}
    there = session.connection().scalars(ENVIRONMENTS, {"ids": list(new)})
    for identity in new.keys() - set(there):
        session.add(environment_row(new[identity]))
    session.add_all(row for row, _ in rows)
    session.flush()
    standings.add(session, [row for row, _ in rows])
    for row in judge.may_be_reproduced(session, [row for row, _ in rows]):
        standings.refresh(session, judge.reproduce(session, row))


class Group:
    """Results of one transaction. What they need of the database is loaded at once and held, so
    that the session need not ask for each."""

    def __init__(self, session: Session, authority: Authority, arrived: Sequence[Arrived]) -> None:
        self.session = session
        self.authority = authority
        self.leaves: list[log.Leaf] = []
        self._first = log.size(session)
        self._unsaved: list[tuple[Measurement, Result]] = []
        self._kept = _kept(session, arrived)
        self._withdrawn = _withdrawn(session, arrived)
        self._taken = _taken(session, arrived)
        self._held = _keys_and_challenges(session, arrived)
        self._rows = {
            a.submission.id: derive.measurement_row(
                a.submission, a.result, _key(session, a.submission), log_index=0
            )
            for a in arrived
        }
        self._places = {identity: standing_rows.place(row) for identity, row in self._rows.items()}
        self._owner_times = standings.owner_times(session, self._places.values())

    def keep(self, arrived: Arrived) -> Kept:
        """Save one, or find that it is kept.

        Raises:
            Gone: it was withdrawn.
            KeyNotActive: its key may send none.
            Conflict: another payload is kept for its repeat.
        """
        submission, result = arrived.submission, arrived.result
        digest = submission.payload_sha256
        if digest in self._kept:
            return self._kept[digest]
        if digest in self._withdrawn:
            raise Gone("this result was withdrawn", field="payload", mend="measure again")
        registry.require_active(self.session, submission.key_id)
        row = self._rows[submission.id]
        row.log_index = self._first + len(self.leaves)
        arrival = _use_challenge(self.session, self.authority.origin, row, result)
        self._refuse_second(row)
        place = self._places[submission.id]
        if any(self._is_peer(row, place, earlier) for earlier, _ in self._unsaved):
            self.save()
            self._owner_times = standings.owner_times(self.session, self._places.values())
        _judge(self.session, row, result, arrival, self._owner_times[place])
        self.session.add(submission)
        self._unsaved.append((row, result))
        self.leaves.append(log.Leaf("result", arrived.envelope, submission.id))
        self._kept[digest] = Kept(submission, row, False)
        self._taken |= dict.fromkeys(_repeats(row), row)
        return Kept(submission, row, True)

    def save(self) -> None:
        """Write what is not written yet."""
        self.session.flush()
        save_rows(self.session, self._unsaved)
        self._unsaved = []

    def _is_peer(self, row: Measurement, place: str, other: Measurement) -> bool:
        """Whether another owner's result has a say in what is judged of this one."""
        return other.owner != row.owner and self._places[other.submission_id] == place

    def _refuse_second(self, row: Measurement) -> None:
        """One payload for a repeat: what a second one would mean, nobody could say."""
        found = next((self._taken[r] for r in _repeats(row) if r in self._taken), None)
        if found is not None:
            which = f"run {row.run_id}" if found.run_id == row.run_id else "this challenge"
            raise Conflict(
                f"result {found.submission_id} is kept for repeat {row.repeat} of this cell in "
                f"{which}, and its payload differs",
                field="predicate.repeat",
                mend="count a new measurement as a new repeat or a new run",
            )


def _key(session: Session, submission: Submission) -> SigningKey:
    return session.get_one(SigningKey, submission.key_id)


def _use_challenge(
    session: Session, origin: str, row: Measurement, result: Result
) -> checks.Arrival:
    """How a result came in; the challenge it is bound to is used now."""
    arrival, challenge = challenges.arrival(session, result, origin, row.received_at)
    if challenge is not None:
        row.challenge_id = challenge.id
        challenge.used = True
    return arrival


def _judge(
    session: Session,
    row: Measurement,
    result: Result,
    arrival: checks.Arrival,
    owner_times: Mapping[str, float],
) -> None:
    peers_ns = [time for owner, time in owner_times.items() if owner != row.owner]
    derive.check(row, result, replace(arrival, peers_ns=peers_ns))
    judge.judge(row, session.get_one(SigningKey, row.key_id))


def _keys_and_challenges(
    session: Session, arrived: Sequence[Arrived]
) -> tuple[Sequence[SigningKey], Sequence[Challenge]]:
    signers = {a.submission.key_id for a in arrived}
    return (
        session.execute(KEYS, {"ids": list(signers)}).scalars().all(),
        session.execute(CHALLENGES, {"ids": list(_challenges_of(arrived))}).scalars().all(),
    )


def _kept(session: Session, arrived: Sequence[Arrived]) -> dict[str, Kept]:
    """What is kept of these payloads, by their digests."""
    found = session.execute(KEPT, {"digests": _digests(arrived)})
    return {submission.payload_sha256: Kept(submission, row, False) for submission, row in found}


def _withdrawn(session: Session, arrived: Sequence[Arrived]) -> set[str]:
    return set(session.connection().scalars(WITHDRAWN, {"digests": _digests(arrived)}))


def _taken(session: Session, arrived: Sequence[Arrived]) -> dict[Repeat, Any]:
    """The rows that are kept for the repeats of these, by repeat."""
    values = {
        "cells": list({a.result.cell.digest for a in arrived}),
        "runs": list({a.result.run_id for a in arrived}),
        "signers": list({a.submission.key_id for a in arrived}),
        "challenges": list(_challenges_of(arrived)),
    }
    # A statement for each index; asked for one of none, SQLite would read every row.
    queries = (TAKEN_IN_RUN, TAKEN_BY_CHALLENGE) if values["challenges"] else (TAKEN_IN_RUN,)
    found = [row for query in queries for row in session.connection().execute(query, values)]
    return {repeat: row for row in found for repeat in _repeats(row)}


def _digests(arrived: Sequence[Arrived]) -> list[str]:
    return [a.submission.payload_sha256 for a in arrived]


def _challenges_of(arrived: Sequence[Arrived]) -> set[str]:
    return {a.result.challenge.id for a in arrived if a.result.challenge is not None}


def _repeats(row: Any) -> list[Repeat]:
    """What a row is the only one of: its repeat in its run, and under its challenge."""
    cell = (row.cell_digest, row.repeat)
    bound = [(row.challenge_id, *cell)] if row.challenge_id is not None else []
    return [(row.key_id, row.run_id, *cell), *bound]


def _any_of(column: Any, name: str) -> ColumnElement[bool]:
    found: ColumnElement[bool] = col(column).in_(bindparam(name, expanding=True))
    return found


# Statements of every ingest, put together once.
KEYS = select(SigningKey).where(_any_of(SigningKey.key_id, "ids"))
CHALLENGES = select(Challenge).where(_any_of(Challenge.id, "ids"))
ENVIRONMENTS = select(col(EnvironmentRow.id)).where(_any_of(EnvironmentRow.id, "ids"))
WITHDRAWN = select(col(Withdrawn.payload_sha256)).where(
    _any_of(Withdrawn.payload_sha256, "digests")
)
KEPT = (
    select(Submission, Measurement)
    .where(_any_of(Submission.payload_sha256, "digests"))
    .where(col(Measurement.submission_id) == Submission.id)
)
_RESULTS = Measurement.__table__.c  # type: ignore[attr-defined]
_REPEATS = select(
    *(
        _RESULTS[name]
        for name in ("submission_id", "key_id", "run_id", "challenge_id", "cell_digest", "repeat")
    )
).where(_any_of(Measurement.cell_digest, "cells"))
TAKEN_IN_RUN = _REPEATS.where(
    _any_of(Measurement.key_id, "signers"), _any_of(Measurement.run_id, "runs")
)
TAKEN_BY_CHALLENGE = _REPEATS.where(_any_of(Measurement.challenge_id, "challenges"))
