"""Outlier findings of a batch: new results are compared with other owners, in the log's order."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, update

from ..checks.verdicts import Finding
from ..db.tables import Submission, table_of
from ..ranking import owners
from ..ranking.figures import Subject
from ..ranking.rows import lineage
from . import outliers
from .measurements import ResultEntry


def findings(connection: Connection, entries: Sequence[ResultEntry]) -> dict[str, Finding]:
    """Compare results with other owners and store the findings, which are returned by result id."""
    labels = {entry.subject.owner for entry in entries}
    facts = owners.facts_of(connection, labels) if labels else {}
    places = {
        entry.submission_id: _place(
            entry.subject, facts.get(entry.subject.owner, owners.NO_OWNER).kind
        )
        for entry in entries
    }
    others = outliers.others(connection, places.values())
    of_results = {
        entry.submission_id: finding
        for entry in entries
        if (
            finding := outliers.finding(
                entry.columns["samples_per_second"], others[places[entry.submission_id]]
            )
        )
    }
    if of_results:
        rows = [{"of": id, "outlier": finding.as_text()} for id, finding in of_results.items()]
        connection.execute(SET_OUTLIER, rows)
    return of_results


def independent(
    entries: Sequence[ResultEntry], first_trusted: Mapping[str, datetime]
) -> list[list[ResultEntry]]:
    """Cut entries into parts in which no result is compared with another one: whose finding is not
    stored yet, and that another owner's result of the same set-up on the same hardware precedes, or
    a result that establishes its owner."""
    parts: list[list[ResultEntry]] = [[]]
    of_hardware: dict[str, set[str]] = {}
    established: set[str] = set()
    for entry in entries:
        hardware, owner, _ = _place(entry.subject)
        compared = of_hardware.get(hardware, set()) - {owner}
        if entry.outlier is None and (compared or established):
            parts.append([])
            of_hardware, established = {}, set()
        parts[-1].append(entry)
        of_hardware.setdefault(hardware, set()).add(owner)
        if _establishes(entry, first_trusted.get(entry.subject.owner)):
            established.add(owner)
    return parts


def _establishes(entry: ResultEntry, first_trusted: datetime | None) -> bool:
    return (
        first_trusted is not None
        and entry.received_at - first_trusted >= owners.ESTABLISHED_AFTER
        and entry.eligibility(None).trust_level >= 3
    )


def _place(lowest: Subject, kind: int = owners.NEW) -> outliers.Place:
    subjects = lineage(lowest)
    return outliers.Place(subjects["hardware"].id, subjects["owner"].id, kind)


_SUBMISSIONS = table_of(Submission)
SET_OUTLIER = update(_SUBMISSIONS).where(_SUBMISSIONS.c.id == bindparam("of"))
