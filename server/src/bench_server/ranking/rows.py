"""Conversion between rows of the ``standing`` and ``measurement`` tables and figures."""

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

from bench_protocol.comparison import LogSample

from ..db.tables import Aggregate, Measurement, table_of
from .figures import Evidence, Figure, Level, Setup, Subject, at_level, sample_of_one

TABLE = table_of(Aggregate)
RESULTS = table_of(Measurement)
# The lowest level first.
LEVELS: tuple[Level, ...] = ("run", "machine", "owner", "hardware")
ABOVE: dict[str, Level] = {"run": "machine", "machine": "owner", "owner": "hardware"}
SUBJECT_FIELDS = tuple(field.name for field in fields(Subject) if field.name != "setup")
# The columns of a result that name the subject of its figures.
SUBJECT_COLUMNS = (
    *("hardware", "hardware_slug", "workload", "workload_digest", *Setup._fields),
    *("owner", "machine_id", "run_id", "environment_id"),
)


def subject_of(columns: Mapping[str, Any]) -> Subject:
    """The subject of a result, at the level ``run``, from its columns by name."""
    return Subject(
        columns["hardware"],
        columns["hardware_slug"],
        columns["workload"],
        columns["workload_digest"],
        Setup._make(columns[name] for name in Setup._fields),
        columns["owner"],
        columns["machine_id"],
        columns["run_id"],
        columns["environment_id"],
    )


@lru_cache(maxsize=4096)
def lineage(lowest: Subject) -> Mapping[Level, Subject]:
    """The subjects of a result's aggregates by level, given its own. Cached: the repeats of a run
    share them, and their ids are digests (a fifth of the projection's processor time)."""
    return {"run": lowest, **_above_run(at_level("machine", lowest))}


@lru_cache(maxsize=4096)
def _above_run(machine: Subject) -> Mapping[Level, Subject]:
    """Cached: the runs of a machine share them."""
    return {level: at_level(level, machine) for level in LEVELS[1:]}


def figure_of_result(row: Any) -> Figure:
    """A measured result as a figure of one repeat, ranked or not."""
    time = row.ns_per_sample
    return Figure(
        id=row.submission_id,
        subject=_subject(row),
        ns_per_sample=time,
        fastest_ns=time,
        slowest_ns=time,
        values=sample_of_one(time),
        unit="runs",
        repeats=1,
        runs=1,
        machines=1,
        owners=1,
        trust_level=row.trust_level,
        newest_at=row.received_at,
        evidence=evidence(row, row.submission_id),
    )


def _subject(row: Any) -> Subject:
    """The subject of a row of either table."""
    setup = Setup(row.framework, row.device, row.recipe, row.batch_size, row.precision, row.data)
    return Subject(
        *(row.hardware, row.hardware_slug, row.workload, row.workload_digest, setup),
        *(row.owner, row.machine_id, row.run_id, row.environment_id),
    )


def sample_of(row: Any) -> LogSample:
    """The independent values of an aggregate."""
    return LogSample(row.value_count, row.value_log_mean, row.value_log_variance)


def evidence(row: Any, result_id: str) -> Evidence:
    """The evidence of a row of either table."""
    return Evidence(
        result_id, row.spread or 0.0, row.accuracy, row.joules_per_sample, row.energy_scope
    )


def figure(row: Any) -> Figure:
    """A row of the table as a figure."""
    return Figure(
        id=row.id,
        subject=_subject(row),
        ns_per_sample=row.ns_per_sample,
        fastest_ns=row.fastest_ns,
        slowest_ns=row.slowest_ns,
        values=sample_of(row),
        unit=row.value_unit,
        repeats=row.repeats,
        runs=row.runs,
        machines=row.machines,
        owners=row.owners,
        trust_level=row.trust_level,
        newest_at=row.newest_at,
        evidence=evidence(row, row.result_id),
        confirmed_owners=row.confirmed_owners,
        published=row.level == "published",
    )


def aggregate_columns(level: str, aggregate: Figure) -> dict[str, Any]:
    """The columns of a figure of this level."""
    subject, proof = aggregate.subject, aggregate.evidence
    return {
        "id": aggregate.id,
        "level": level,
        "parent_id": at_level(ABOVE[level], subject).id if level in ABOVE else None,
        **{name: getattr(subject, name) for name in SUBJECT_FIELDS},
        **subject.setup._asdict(),
        "ns_per_sample": aggregate.ns_per_sample,
        "fastest_ns": aggregate.fastest_ns,
        "slowest_ns": aggregate.slowest_ns,
        "value_unit": aggregate.unit,
        "value_count": aggregate.values.n,
        "value_log_mean": aggregate.values.mean,
        "value_log_variance": aggregate.values.variance,
        "repeats": aggregate.repeats,
        "runs": aggregate.runs,
        "machines": aggregate.machines,
        "owners": aggregate.owners,
        "confirmed_owners": aggregate.confirmed_owners,
        "trust_level": aggregate.trust_level,
        "newest_at": aggregate.newest_at,
        "result_id": proof.result_id,
        "spread": proof.spread,
        "accuracy": proof.accuracy,
        "joules_per_sample": proof.joules_per_sample,
        "energy_scope": proof.energy_scope,
    }
