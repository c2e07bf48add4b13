"""The measurement row of a result: its payload's columns, its key, its checks, its eligibility."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Row

from bench_protocol.payload.result import Asked, Result

from ..checks import table as result_checks
from ..checks import verdicts as check_verdicts
from ..checks.verdicts import CheckVerdict, Finding
from ..ranking.figures import Subject
from ..ranking.rows import subject_of
from . import outliers
from .eligibility import Eligibility, Revocation, eligibility


@dataclass(frozen=True)
class ResultEntry:
    """Values that follow from a logged result and its key alone.

    ``columns`` are those of the payload and the key, ``subject`` is what its figure describes, at
    the level ``run``. ``verdicts`` are of all checks but the outlier check, whose finding
    by an earlier projection is ``outlier``, and ``ask_id`` the ask that one found. ``jobs``: rows
    of what the server recomputes of it. ``failure``: why it is no measurement; ``asked``: the ask
    that it names.
    """

    log_index: int
    submission_id: str
    received_at: datetime
    challenge_id: str | None
    failure: str | None
    asked: Asked | None
    revocation: Revocation
    columns: Mapping[str, Any]
    subject: Subject
    verdicts: Sequence[CheckVerdict]
    outlier: Finding | None
    jobs: Sequence[Mapping[str, Any]] = ()
    ask_id: str | None = None

    def eligibility(self, outlier: Finding | None) -> Eligibility:
        """Whether it is ranked, and its trust level, before any act."""
        return eligibility(
            (*self.verdicts, *outliers.verdicts(outlier)),
            self.log_index,
            failure=self.failure,
            revocation=self.revocation,
        )

    def row(self, outlier: Finding | None, ask_id: str | None = None) -> dict[str, Any]:
        """All columns of the result, before any act."""
        verdicts = (*self.verdicts, *outliers.verdicts(outlier))
        return {
            **self.columns,
            "run_aggregate": self.subject.id,
            **self.eligibility(outlier)._asdict(),
            "submission_id": self.submission_id,
            "log_index": self.log_index,
            "received_at": self.received_at,
            "challenge_id": self.challenge_id,
            "verdicts": check_verdicts.as_text(verdicts),
            "ask_id": ask_id,
            "moderation": None,
            "moderation_reason": None,
        }


def result_entry(
    entry: Row[Any],
    key: Row[Any],
    result: Result,
    own: Mapping[str, Any],
    verdicts: Sequence[CheckVerdict],
    jobs: Sequence[Mapping[str, Any]] = (),
) -> ResultEntry:
    """A result of the log, with its rows of :data:`.entries.ENTRIES` and :data:`.entries.KEYS`.

    ``own``: the columns of its payload, with the displayed name of its hardware.
    """
    known_columns = {
        **own,
        "owner": key.owner,
        "machine_id": machine_id(key.first_key_id, result.machine.machine_hash),
    }
    return ResultEntry(
        entry.log_index,
        entry.submission_id,
        entry.received_at,
        entry.challenge_id,
        result_checks.failure(result),
        result.asked,
        Revocation(key.compromised_since, key.revoked_reason),
        known_columns,
        subject_of(SimpleNamespace(**known_columns)),
        verdicts,
        None if entry.outlier is None else Finding.from_text(entry.outlier),
        jobs,
        entry.ask_id,
    )


def machine_id(first_key_id: str, machine_hash: str) -> str:
    """The machine's public id, 16 hex digits.

    Payloads are public, so anyone can copy a ``machine_hash``: the key is part of it. It
    is the first key of a chain of rotations, so that a machine keeps its history.
    """
    return hashlib.sha256(f"machine {first_key_id} {machine_hash}".encode()).hexdigest()[:16]
