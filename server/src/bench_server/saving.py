"""Saves results that come together, in one transaction: check -> save -> log.

What the database holds of them already is asked once for all of them. What follows from other
results follows one after the other, in the order in which the log has them: a replay of the log
finds the same, whatever came together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from sqlmodel import Session, col, select

from bench_protocol.envelope import Envelope
from bench_protocol.errors import ProtocolError
from bench_protocol.result import Result

from . import challenges, checks, derive, judge, log, registry, standings
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


def attempt(step: Callable[[Given], Found], given: Given) -> Found | ProtocolError:
    """What a step makes of one of several, or why it makes nothing of it."""
    try:
        return step(given)
    except ProtocolError as error:
        return error


def save_all(
    session: Session, authority: Authority, arrived: Sequence[Arrived]
) -> list[Kept | ProtocolError]:
    """Save and log each; what is refused does not spoil the others."""
    group = Group(session, authority, arrived)
    kept = [attempt(group.keep, one) for one in arrived]
    group.save()
    if group.leaves:
        log.append(session, authority, group.leaves, max(a.submission.received_at for a in arrived))
    return kept


def derived(
    session: Session, origin: str, submission: Submission, result: Result, log_index: int
) -> Measurement:
    """The measurement row of a result whose key is enrolled, checked and judged.

    It depends on what the database holds of earlier log entries, so replay them in their order.
    """
    row, arrival = _indexed(session, origin, submission, result, log_index)
    _judge(session, row, result, arrival)
    return row


def save_rows(session: Session, rows: Sequence[tuple[Measurement, Result]]) -> None:
    """Add measurement rows, their environments where they are new, and take them into the
    standings."""
    new = {row.environment_id: result for row, result in rows}
    there = session.exec(select(EnvironmentRow.id).where(col(EnvironmentRow.id).in_(new)))
    for identity in new.keys() - set(there):
        session.add(environment_row(new[identity]))
    session.add_all(row for row, _ in rows)
    session.flush()
    standings.add(session, [row for row, _ in rows])
    for row, _ in rows:
        if row.trust_level >= 3 and judge.may_be_reproduced(session, row):
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
        index = self._first + len(self.leaves)
        row, arrival = _indexed(self.session, self.authority.origin, submission, result, index)
        self._refuse_second(row)
        if any(judge.are_peers(row, earlier) for earlier, _ in self._unsaved):
            self.save()
        _judge(self.session, row, result, arrival)
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


def _indexed(
    session: Session, origin: str, submission: Submission, result: Result, log_index: int
) -> tuple[Measurement, checks.Arrival]:
    """The row as the payload gives it, and how it came in; its challenge is used now."""
    key = session.get_one(SigningKey, submission.key_id)
    arrival, challenge = challenges.arrival(session, result, origin, submission.received_at)
    row = derive.measurement_row(submission, result, key, log_index)
    if challenge is not None:
        row.challenge_id = challenge.id
        challenge.used = True
    return row, arrival


def _judge(session: Session, row: Measurement, result: Result, arrival: checks.Arrival) -> None:
    derive.check(row, result, replace(arrival, peers_ns=judge.peers_ns(session, row)))
    judge.judge(row, session.get_one(SigningKey, row.key_id))


def _keys_and_challenges(
    session: Session, arrived: Sequence[Arrived]
) -> tuple[Sequence[SigningKey], Sequence[Challenge]]:
    signers = {a.submission.key_id for a in arrived}
    named = {a.result.challenge.id for a in arrived if a.result.challenge is not None}
    return (
        session.exec(select(SigningKey).where(col(SigningKey.key_id).in_(signers))).all(),
        session.exec(select(Challenge).where(col(Challenge.id).in_(named))).all(),
    )


def _kept(session: Session, arrived: Sequence[Arrived]) -> dict[str, Kept]:
    """What is kept of these payloads, by their digests."""
    digests = [a.submission.payload_sha256 for a in arrived]
    found = session.exec(
        select(Submission, Measurement)
        .where(col(Submission.payload_sha256).in_(digests))
        .where(Measurement.submission_id == Submission.id)
    )
    return {submission.payload_sha256: Kept(submission, row, False) for submission, row in found}


def _withdrawn(session: Session, arrived: Sequence[Arrived]) -> set[str]:
    digests = [a.submission.payload_sha256 for a in arrived]
    query = select(Withdrawn.payload_sha256).where(col(Withdrawn.payload_sha256).in_(digests))
    return set(session.exec(query))


def _taken(session: Session, arrived: Sequence[Arrived]) -> dict[Repeat, Measurement]:
    """The rows that are kept for the repeats of these, by repeat."""
    cells = col(Measurement.cell_digest).in_({a.result.cell.digest for a in arrived})
    runs = col(Measurement.run_id).in_({a.result.run_id for a in arrived})
    signers = col(Measurement.key_id).in_({a.submission.key_id for a in arrived})
    named = {a.result.challenge.id for a in arrived if a.result.challenge is not None}
    # A statement for each index, and no pairs of columns: SQLite would read every row.
    found = list(session.exec(select(Measurement).where(signers, runs, cells)))
    if named:
        bound = col(Measurement.challenge_id).in_(named)
        found += session.exec(select(Measurement).where(bound, cells))
    return {repeat: row for row in found for repeat in _repeats(row)}


def _repeats(row: Measurement) -> list[Repeat]:
    """What a row is the only one of: its repeat in its run, and under its challenge."""
    cell = (row.cell_digest, row.repeat)
    bound = [(row.challenge_id, *cell)] if row.challenge_id is not None else []
    return [(row.key_id, row.run_id, *cell), *bound]
