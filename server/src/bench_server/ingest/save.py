"""Save a batch of results in one transaction: check -> save -> log.

What the database holds of them already is asked once for all of them (:mod:`.lookup`). Results are
judged one after the other in the log's order, so that no verdict depends on which results came
together. The outlier check depends on results of other owners, which may be erased later: its
finding is stored with the submission, and a replay of the log uses the stored one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Row, insert, select, update
from sqlmodel import Session, col

from bench_protocol.envelope import Envelope
from bench_protocol.errors import ProtocolError
from bench_protocol.receipts import Receipt
from bench_protocol.result import Result

from ..db.bulk import BulkWrite, among
from ..db.environments import environment_row
from ..db.tables import Challenge, EnvironmentRow, Measurement, NewRow, Submission
from ..errors import Conflict, Gone
from ..log import reader, writer
from ..log.server_keys import Authority
from ..ranking import aggregates
from ..ranking.rows import lineage
from . import (
    challenges,
    columns,
    eligibility,
    key_registry,
    other_owners,
    result_checks,
    submission_checks,
)
from . import verdicts as check_verdicts
from .lookup import Repeat, challenges_of, keys_with_ids, known, repeats_of
from .other_owners import OtherOwners
from .submission_checks import SubmissionFacts
from .verdicts import CheckVerdict, Finding

Given = TypeVar("Given")
Found = TypeVar("Found")


@dataclass(frozen=True)
class CheckedResult:
    """A verified result on its way into the database: its rows, as far as they follow from it
    alone, and what the checks of it found."""

    envelope: Envelope
    result: Result
    submission: NewRow
    row: NewRow
    verdicts: Sequence[CheckVerdict]


class StoredResult(NamedTuple):
    """The rows of a result, its verdicts, and whether it is new."""

    submission: NewRow | Submission
    measurement: NewRow | Measurement
    verdicts: Sequence[CheckVerdict]
    created: bool


@dataclass(frozen=True)
class Accepted:
    """A stored result. ``created``: False where the payload was stored before."""

    submission: NewRow | Submission
    measurement: NewRow | Measurement
    verdicts: Sequence[CheckVerdict]
    receipt: Receipt
    created: bool


def attempt(step: Callable[[Given], Found], given: Given) -> Found | ProtocolError:
    """The outcome of a step for each item of a batch: a value, or the error that refuses it."""
    try:
        return step(given)
    except ProtocolError as error:
        return error


def save_all(
    session: Session, authority: Authority, arrived: Sequence[CheckedResult]
) -> list[Accepted | ProtocolError]:
    """Save and log each result; a refused result does not affect the others."""
    group = Group(session, authority.origin, arrived)
    found = [attempt(group.keep, one) for one in arrived]
    group.save()
    receipts: dict[str | None, Receipt] = {}
    if group.leaves:
        now = max(one.submission.received_at for one in arrived)
        logged = writer.append(session, authority, group.first, group.leaves, now)
        receipts = {
            leaf.submission_id: receipt for leaf, receipt in zip(group.leaves, logged, strict=True)
        }
    kept = {one.submission.id for one in found if isinstance(one, StoredResult)}
    if earlier := kept - receipts.keys():
        receipts.update(reader.receipts_of_results(session, earlier))
    return [
        one
        if isinstance(one, ProtocolError)
        else Accepted(
            one.submission,
            one.measurement,
            one.verdicts,
            receipts[one.submission.id],
            one.created,
        )
        for one in found
    ]


def derived(
    session: Session, origin: str, submission: Submission, result: Result, log_index: int
) -> NewRow:
    """The measurement row of a result whose key is enrolled, checked and judged.

    It depends on what the database holds of earlier log entries, so replay them in their order. An
    outlier finding that no version of this program stored is made now and stored.
    """
    connection = session.connection()
    key = keys_with_ids(connection, [submission.key_id])[submission.key_id]
    row = columns.measurement_row(submission, result)
    row.log_index = log_index
    columns.set_key(row, result, key)
    found = result_checks.of_result(result)
    row.verdicts = check_verdicts.as_text(found)
    arrival = _arrival(row, result, challenges_of(connection, [result]), origin)
    if submission.outlier is None:
        asked = _asked(row)
        _observe(submission, result, other_owners.others(connection, [asked])[asked])
    _judge(row, submission, key, result, found, arrival)
    return row


def save_rows(session: Session, rows: Sequence[tuple[NewRow, Result]]) -> None:
    """Add measurement rows, their environments where they are new, and take them into the
    standings."""
    connection = session.connection()
    own = {row.submission_id: row for row, _ in rows}
    new = {row.environment_id: result for row, result in rows}
    for identity in new.keys() - set(connection.scalars(ENVIRONMENTS, {"ids": list(new)})):
        session.add(environment_row(new[identity]))
    session.flush()
    NEW_MEASUREMENTS.rows(connection, map(vars, own.values()))
    changes = eligibility.reproduce(session, eligibility.may_be_reproduced(session, own.values()))
    for change in changes:
        if change.submission_id in own:
            own[change.submission_id].trust_level = change.trust_level
    aggregates.add(session, own.values())
    aggregates.refresh(session, [c for c in changes if c.submission_id not in own])


class Group:
    """A batch of results in one transaction. The rows they need are loaded once."""

    def __init__(self, session: Session, origin: str, arrived: Sequence[CheckedResult]) -> None:
        self.session = session
        self.origin = origin
        self.leaves: list[writer.Leaf] = []
        self.first = reader.size(session)
        self._unsaved: list[CheckedResult] = []
        self._unsaved_owners: defaultdict[str, set[str]] = defaultdict(set)
        digests = [one.submission.payload_sha256 for one in arrived]
        self._known = known(session.connection(), [one.result for one in arrived], digests)
        self._taken: dict[Repeat, Any] = dict(self._known.repeats)
        again = {row.payload_sha256 for row in self._taken.values()}.intersection(digests)
        self._kept = _kept(session, again) if again else {}
        for one in arrived:
            columns.set_key(one.row, one.result, self._known.keys[one.submission.key_id])
        self._asked = {one.submission.id: _asked(one.row) for one in arrived}
        self._peers = other_owners.others(session.connection(), self._asked.values())

    def keep(self, arrived: CheckedResult) -> StoredResult:
        """Store one result, or return the stored one.

        Raises:
            Gone: it was withdrawn.
            KeyNotActive: its key may send none.
            Conflict: another payload is kept for its repeat.
        """
        submission, key = arrived.submission, self._known.keys[arrived.submission.key_id]
        digest = submission.payload_sha256
        if digest in self._kept:
            return self._kept[digest]
        if digest in self._known.withdrawn:
            raise Gone("this result was withdrawn", field="payload", mend="measure again")
        key_registry.refuse_inactive(key)
        row, asked = arrived.row, self._asked[submission.id]
        place, _ = asked
        row.log_index = self.first + len(self.leaves)
        arrival = _arrival(row, arrived.result, self._known.challenges, self.origin)
        self._refuse_second(row)
        if self._unsaved_owners[place] - {row.owner}:
            # Another owner's result, which has a say in what is judged of this one.
            self.save()
            self._peers = other_owners.others(self.session.connection(), self._asked.values())
        _observe(submission, arrived.result, self._peers[asked])
        found = _judge(row, submission, key, arrived.result, arrived.verdicts, arrival)
        self._unsaved.append(arrived)
        self._unsaved_owners[place].add(row.owner)
        self.leaves.append(writer.Leaf("result", arrived.envelope, submission.id))
        self._kept[digest] = StoredResult(submission, row, found, False)
        self._taken |= dict.fromkeys(repeats_of(row), row)
        return StoredResult(submission, row, found, True)

    def save(self) -> None:
        """Write pending rows."""
        if not self._unsaved:
            return
        connection = self.session.connection()
        NEW_SUBMISSIONS.rows(connection, [vars(one.submission) for one in self._unsaved])
        bound = {one.row.challenge_id for one in self._unsaved if one.row.challenge_id is not None}
        if fresh := [id for id in bound if not self._known.challenges[id].used]:
            connection.execute(USED, {"ids": fresh})
        save_rows(self.session, [(one.row, one.result) for one in self._unsaved])
        self._unsaved = []
        self._unsaved_owners.clear()

    def _refuse_second(self, row: NewRow) -> None:
        """Allow one payload for a repeat: a second one would have no defined meaning."""
        found = next((self._taken[r] for r in repeats_of(row) if r in self._taken), None)
        if found is not None:
            which = f"run {row.run_id}" if found.run_id == row.run_id else "this challenge"
            raise Conflict(
                f"result {found.submission_id} is kept for repeat {row.repeat} of this cell in "
                f"{which}, and its payload differs",
                field="predicate.repeat",
                mend="count a new measurement as a new repeat or a new run",
            )


def _asked(row: NewRow) -> other_owners.Asked:
    """The set-up and owner for which the outlier check reads other owners' times."""
    whose = lineage(row)
    return whose["hardware"].id, whose["owner"].id


def _arrival(
    row: NewRow, result: Result, given: Mapping[str, Row[Any]], origin: str
) -> SubmissionFacts:
    """The facts of a submission; binds the result to its challenge."""
    challenge = given.get(result.challenge.id) if result.challenge is not None else None
    arrival, row.challenge_id = challenges.arrival(result, challenge, origin, row.received_at)
    return arrival


def _observe(submission: NewRow | Submission, result: Result, others: OtherOwners) -> None:
    """Store the finding of the outlier check with the submission."""
    found = submission_checks.outlier(result, others)
    submission.outlier = found.as_text() if found is not None else None


def _judge(
    row: NewRow,
    submission: NewRow | Submission,
    key: Row[Any],
    result: Result,
    found: Sequence[CheckVerdict],
    arrival: SubmissionFacts,
) -> Sequence[CheckVerdict]:
    """Add what the checks of its arrival find, set what follows from all, and return them."""
    outlier = Finding.from_text(submission.outlier) if submission.outlier is not None else None
    of_arrival = (
        *submission_checks.of_arrival(result, arrival),
        *submission_checks.of_outlier(outlier),
    )
    row.verdicts = check_verdicts.joined(row.verdicts, check_verdicts.as_text(of_arrival))
    every = (*found, *of_arrival)
    eligibility.judge(row, key, every)
    return every


def _kept(session: Session, digests: Iterable[str]) -> dict[str, StoredResult]:
    """Stored results of these payloads, by their digests."""
    query = (
        select(Submission, Measurement)
        .where(col(Submission.payload_sha256).in_(digests))
        .where(col(Measurement.submission_id) == Submission.id)
    )
    return {
        submission.payload_sha256: StoredResult(
            submission, row, check_verdicts.from_text(row.verdicts), False
        )
        for submission, row in session.execute(query)
    }


# Statements that every batch runs, built once.
NEW_SUBMISSIONS = BulkWrite(insert(Submission.__table__))  # type: ignore[attr-defined]
NEW_MEASUREMENTS = BulkWrite(insert(Measurement.__table__))  # type: ignore[attr-defined]
ENVIRONMENTS = select(col(EnvironmentRow.id)).where(among(EnvironmentRow.id, "ids"))
USED = update(Challenge.__table__).where(among(Challenge.id, "ids")).values(used=True)  # type: ignore[attr-defined]
