"""Answers with results: lists, details, and the receipt of a submission."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.payload.result import Result
from bench_protocol.training.measured_limits import not_measured
from bench_protocol.trust import shows, trust_levels
from bench_protocol.trust.omissions import Omissions
from bench_protocol.trust.shows import Claim
from bench_protocol.trust.trust_levels import Assurance

from ...checks.verdicts import CheckVerdict, from_text
from ...db.tables import Measurement, Submission
from ...ranking.reproduction import Reproduction, Verdict
from ...ranking.spread import unsteady
from .shared_fields import InSetup, InUnits, unit_fields
from .trust import ReceiptAnswer


@dataclass(frozen=True)
class ResultAnswer(InUnits, InSetup):
    """One stored result: what was run, on what, and the figures derived from it. While it is
    pending, what depends on more than its payload is null, and ``verdicts`` is empty."""

    id: str
    payload_sha256: str
    received_at: datetime
    started_at: datetime
    key_id: str
    machine_id: str | None
    hardware: str
    hardware_slug: str
    workload: str
    workload_digest: str
    framework_version: str | None
    page_bytes: int | None
    device_index: int
    run_id: str
    repeat: int
    status: str
    failure_kind: str | None
    ranked: bool | None
    unranked_reason: str | None
    trust_level: int | None
    samples_per_second: float | None
    epoch_seconds: float | None
    spread: float | None
    unsteady: bool
    disturbed: bool
    startup_seconds: float | None
    parameter_count: int | None
    last_loss: float | None
    peak_memory_bytes: int | None
    verdicts: tuple[CheckVerdict, ...] | None


@dataclass(frozen=True)
class SubmitAnswer:
    """An accepted result and its receipt, the same for every post of the payload. Keep the receipt:
    it is the only proof of the submission. ``verdicts`` are of its challenge and clocks. The result
    is ``pending`` until the projector has applied it: ``GET /api/v1/results/{id}?wait=5`` waits for
    that."""

    id: str
    payload_sha256: str
    key_id: str
    received_at: datetime
    verdicts: tuple[CheckVerdict, ...]
    receipt: ReceiptAnswer


@dataclass(frozen=True)
class ResultPageAnswer:
    """Some results, newest first; ``next_cursor`` leads to the older ones, null at the end."""

    results: tuple[ResultAnswer, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class ReproductionAnswer:
    """How a result compares with other confirmed owners of its set-up and hardware."""

    verdict: Verdict
    sentence: str
    tau: float
    window: float
    difference: float | None
    owners: int
    owners_needed: int | None

    @classmethod
    def of(cls, found: Reproduction) -> "ReproductionAnswer":
        return cls(sentence=found.sentence, **found._asdict())


@dataclass(frozen=True)
class ResultDetail(ResultAnswer):
    """A result with its signed payload, what it shows, and its trust level in words; these are null
    while it is pending."""

    reproduction: ReproductionAnswer | None
    ask_id: str | None
    assurance: Assurance | None
    level_words: str | None
    level_needs: str | None
    shows: tuple[Claim, ...]
    omissions: Omissions
    not_measured: tuple[str, ...]
    cell: dict[str, Any]
    payload_type: str
    result: dict[str, Any]


def shown_fields(answer: ResultAnswer, signed: Result, omissions: Omissions) -> dict[str, Any]:
    verdicts = [vars(verdict) for verdict in answer.verdicts or ()]
    facts = shows.facts_of(signed, answer.status, answer.trust_level, verdicts, omissions=omissions)
    level = answer.trust_level
    # Nothing is said of a workload that left the catalogue, or of a repeat without a measurement.
    measured = [w for w in CATALOGUE if w.digest == answer.workload_digest and signed.measurement]
    return {
        "assurance": None if level is None else trust_levels.LEVELS[level].assurance,
        "level_words": shows.level_words(facts),
        "level_needs": shows.level_needs(facts),
        "shows": shows.of(facts),
        "omissions": omissions,
        "not_measured": tuple(sentence for w in measured for sentence in not_measured(w)),
    }


# Fields of an answer that are no columns of the row.
DERIVED = frozenset(
    (
        *("id", "payload_sha256", "ranked", "epoch_seconds", "startup_seconds", "unsteady"),
        *("verdicts", "unit", "tokens_per_second"),
    )
)


def result_fields(
    submission: Submission, row: Measurement, verdicts: bool = True
) -> dict[str, Any]:
    """The arguments of :class:`ResultAnswer`; ``verdicts``: whether they are wanted."""
    columns = {
        name: getattr(row, name)
        for name in ResultAnswer.__dataclass_fields__
        if name not in DERIVED
    }
    return columns | {
        **unit_fields(row.workload, row.samples_per_second),
        "id": submission.id,
        "payload_sha256": submission.payload_sha256,
        "ranked": row.rankable,
        "epoch_seconds": None if row.epoch_ns is None else row.epoch_ns / 1e9,
        "startup_seconds": None if row.startup_ns is None else row.startup_ns / 1e9,
        "unsteady": unsteady(row.spread),
        "verdicts": from_text(row.verdicts) if verdicts else None,
    }
