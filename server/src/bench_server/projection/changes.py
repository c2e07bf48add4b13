"""Apply a batch of log entries: rows first, then the levels and aggregates that they touch."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from bench_protocol.payload import acts
from bench_protocol.payload.acts import Act, Revocation
from bench_protocol.signing import envelope

from ..checks import verdicts as check_verdicts
from ..db.lists import among
from ..db.tables import (
    EnvironmentRow,
    Owner,
    SigningKey,
    Submission,
    Withdrawn,
    table_of,
)
from ..db.upsert import upsert
from ..ranking import aggregates, owners
from ..ranking.figures import Level, Subject
from ..ranking.rows import RESULTS, subject_of
from ..recompute import jobs
from . import asks, compared, recomputed, reproduced
from . import eligibility as rules
from .entries import ActEntry, Entry, KeyEventEntry, RecomputationEntry
from .measurements import ResultEntry
from .reproduced import HardwareSetup

MODERATION = {
    "hide": "hidden",
    "show": None,
    "flag": "flagged",
    "quarantine": "quarantined",
    "restore": "restored",
}


def apply(connection: Connection, entries: Sequence[Entry]) -> None:
    """Apply entries in their order, in the connection's transaction."""
    changes = Changes(connection)
    for kind, group in groupby(entries, key=type):
        if kind is ResultEntry:
            changes.add_results([entry for entry in group if isinstance(entry, ResultEntry)])
            continue
        if kind is RecomputationEntry:
            changes.recomputed([entry for entry in group if isinstance(entry, RecomputationEntry)])
            continue
        for entry in group:
            if isinstance(entry, KeyEventEntry):
                changes.key_event(entry)
            elif isinstance(entry, ActEntry):
                changes.act(entry)
    changes.finish()


def add_environments(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write environments. One that is there already is written again: its sort keys follow from the
    program's version."""
    upsert(connection, _ENVIRONMENTS, rows)


class Changes:
    """The changes of one batch: the aggregates to compute again, the set-ups whose trust levels may
    have changed, and the subjects of new trusted results."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._touched = aggregates.Touched()
        self._set_ups: set[HardwareSetup] = set()
        self._trusted: list[Subject] = []

    def add_results(self, entries: Sequence[ResultEntry]) -> None:
        """Add the rows of new results, so that an outlier is compared with all earlier entries,
        however the log is cut into batches."""
        labels = {entry.subject.owner for entry in entries if entry.outlier is None}
        for part in compared.independent(entries, owners.first_trusted(self._connection, labels)):
            # Comparisons read the figures of owners, and none of hardware.
            self._refresh("owner")
            self._add(part)

    def _add(self, entries: Sequence[ResultEntry]) -> None:
        findings = compared.findings(
            self._connection, [entry for entry in entries if entry.outlier is None]
        )
        answers = self._answers(entries)
        rows = [
            entry.row(
                findings.get(entry.submission_id, entry.outlier),
                answers.get(entry.submission_id, entry.ask_id),
            )
            for entry in entries
        ]
        self._connection.execute(NEW_MEASUREMENTS, rows)
        jobs.add(self._connection, [job for entry in entries for job in entry.jobs])
        for entry, row in zip(entries, rows, strict=True):
            if row["rankable"]:
                self._touched.add(entry.subject)
                if row["trust_level"] >= 3:
                    self._trusted.append(entry.subject)

    def key_event(self, entry: KeyEventEntry) -> None:
        """A revocation ends the ranking of a key's results; other events change keys alone."""
        payload = envelope.read(entry.envelope).payload
        if acts.event_kind(payload) == "revoke":
            self._settle(RESULTS.c.key_id == acts.parse(Revocation, payload).key_id)

    def recomputed(self, entries: Sequence[RecomputationEntry]) -> None:
        """Judge the results again that waited for these statements."""
        for which in recomputed.judge_again(self._connection, entries):
            self._settle(which)

    def act(self, entry: ActEntry) -> None:
        """Apply the effect of an act on results and owners."""
        if entry.envelope is None:
            self._withdraw(entry.log_index)
            return
        act = acts.parse(Act, envelope.read(entry.envelope).payload)
        if act.act in MODERATION:
            moderated = RESULTS.c.submission_id == act.result
            values = {"moderation": MODERATION[act.act], "moderation_reason": act.reason}
            self._connection.execute(update(RESULTS).where(moderated).values(values))
            self._settle(moderated)
        elif act.act == "assign":
            of_key = RESULTS.c.key_id == act.key
            self._touch_all(self._rows(of_key))
            owner = select(_KEYS.c.owner).where(_KEYS.c.key_id == act.key).scalar_subquery()
            self._connection.execute(update(RESULTS).where(of_key).values(owner=owner))
            self._settle(of_key)
        elif act.act in ("confirm", "doubt"):
            confirmed = {"confirmed": act.act == "confirm"}
            self._connection.execute(
                update(_OWNERS).where(_OWNERS.c.label == act.owner).values(confirmed)
            )
            self._set_ups.update(map(HardwareSetup.of, self._touch_owner(str(act.owner))))

    def finish(self) -> None:
        """Update the levels and aggregates that the batch touched."""
        connection = self._connection
        confirmed = owners.confirmed_owners(connection)
        if len(confirmed) >= reproduced.OWNERS_TO_REPRODUCE:
            self._set_ups |= reproduced.reproducible(connection, self._trusted, confirmed)
        for subject in reproduced.update_levels(connection, sorted(self._set_ups), confirmed):
            self._touched.add(subject)
        self._refresh()

    def _refresh(self, up_to: Level = "hardware") -> None:
        """Update the kinds of owners that the batch touched, then aggregates up to a level."""
        for label in owners.establish(self._connection, self._touched.owners):
            self._touch_owner(label)
        aggregates.refresh(self._connection, self._touched, up_to)

    def _touch_owner(self, label: str) -> list[Subject]:
        """Touch all aggregates that the kind of an owner is part of; returns the hardware."""
        found = reproduced.hardware_of_owner(self._connection, label)
        for hardware in found:
            self._touched.add_owner(hardware._replace(owner=label))
        return found

    def _withdraw(self, act_index: int) -> None:
        """Remove the row of a withdrawn result."""
        of_act = select(_WITHDRAWN.c.id).where(_WITHDRAWN.c.act_index == act_index)
        gone = RESULTS.c.submission_id.in_(of_act)
        self._touch_all(self._rows(gone))
        self._connection.execute(delete(RESULTS).where(gone))

    def _settle(self, which: Any) -> None:
        """Judge stored results again, after an act or a revocation."""
        rows = self._rows(which)
        if not rows:
            return
        key_ids = sorted({row.key_id for row in rows})
        revocations = {
            row.key_id: rules.Revocation(row.compromised_since, row.revoked_reason)
            for row in self._connection.execute(REVOCATIONS, {"ids": key_ids})
        }
        settled = [_settled(row, revocations[row.key_id]) for row in rows]
        self._connection.execute(SETTLE, settled)
        self._touch_all(rows)

    def _rows(self, which: Any) -> Sequence[Row[Any]]:
        return self._connection.execute(select(RESULTS).where(which)).all()

    def _touch_all(self, rows: Iterable[Row[Any]]) -> None:
        for row in rows:
            subject = subject_of(dict(row._mapping))
            self._touched.add(subject)
            self._set_ups.add(HardwareSetup.of(subject))

    def _answers(self, entries: Sequence[ResultEntry]) -> dict[str, str]:
        """Find the asks that results answer, and store them.

        Returns:
            The asks' ids by result id.
        """
        found = {
            entry.submission_id: ask_id
            for entry in entries
            if entry.ask_id is None
            and (asked := entry.asked) is not None
            and (ask_id := asks.answered(self._connection, asked, entry.subject))
        }
        if found:
            rows = [{"of": id, "ask_id": ask_id} for id, ask_id in found.items()]
            self._connection.execute(SET_ASK, rows)
        return found


def _settled(row: Row[Any], revocation: rules.Revocation) -> dict[str, Any]:
    eligibility = rules.eligibility(
        check_verdicts.from_text(row.verdicts),
        row.log_index,
        failure=row.unranked_reason if row.failure_kind is not None else None,
        moderation=rules.Moderation(row.moderation, row.moderation_reason),
        revocation=revocation,
    )
    run = subject_of(dict(row._mapping)).id
    return {"of": row.submission_id, **eligibility._asdict(), "run_standing": run}


# -- statements, each built once -------------------------------------------------------------------

_KEYS, _OWNERS, _SUBMISSIONS = map(table_of, (SigningKey, Owner, Submission))
_ENVIRONMENTS, _WITHDRAWN = map(table_of, (EnvironmentRow, Withdrawn))
NEW_MEASUREMENTS = insert(RESULTS)
SET_ASK = update(_SUBMISSIONS).where(_SUBMISSIONS.c.id == bindparam("of"))
SETTLE = update(RESULTS).where(RESULTS.c.submission_id == bindparam("of"))
REVOCATIONS = select(_KEYS.c.key_id, _KEYS.c.compromised_since, _KEYS.c.revoked_reason).where(
    among(_KEYS.c.key_id, "ids")
)
