"""Conversion between rows of the ``standing`` and ``measurement`` tables and figures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from bench_protocol.comparison import LogSample

from ..db.tables import Aggregate, Measurement
from .figures import Evidence, Figure, Setup, Subject, Unit

TABLE = Aggregate.__table__  # type: ignore[attr-defined]
RESULTS = Measurement.__table__  # type: ignore[attr-defined]
# The unit of each level's children.
UNIT_OF_LEVEL: dict[str, Unit] = {
    "environment": "repeats",
    "machine": "repeats",
    "owner": "machines",
    "hardware": "owners",
}
LEVELS = tuple(UNIT_OF_LEVEL)
RESULT_COLUMNS = (
    *("submission_id", "owner", "machine_id", "environment_id", "hardware", "hardware_slug"),
    *("workload", "workload_digest", *Setup._fields, "received_at", "trust_level"),
    *("ns_per_sample", "spread", "accuracy", "joules_per_sample", "energy_scope"),
)
# The columns of an aggregate that new results change.
FIGURE_COLUMNS = (
    *("ns_per_sample", "fastest_ns", "slowest_ns", "children", "middle_ns", "middle_id"),
    *("log_mean", "log_m2", "value_unit", "value_count", "value_log_mean", "value_log_variance"),
    *("repeats", "machines", "owners", "trust_level", "newest_at", "result_id"),
    *("spread", "accuracy", "joules_per_sample", "energy_scope"),
)
ABOVE = {"machine": "owner", "owner": "hardware"}
# The fields that are empty in a level's subjects.
LEFT_OUT: dict[str, dict[str, Any]] = {
    "environment": {},
    "machine": {"environment_id": ""},
    "owner": {"environment_id": "", "machine_id": ""},
    "hardware": {"environment_id": "", "machine_id": "", "owner": ""},
}


class Child(NamedTuple):
    """The fields of a middle child that an aggregate needs. Children sort by time, then id."""

    ns_per_sample: float
    id: str
    unit: Unit
    values: LogSample
    evidence: Evidence


def child_of_result(row: Any) -> Child:
    time = row.ns_per_sample
    values = LogSample(1, math.log(time), 0.0)
    return Child(time, row.submission_id, "repeats", values, _evidence(row, row.submission_id))


def child_of_standing(row: Any) -> Child:
    values = LogSample(row.value_count, row.value_log_mean, row.value_log_variance)
    return Child(row.ns_per_sample, row.id, row.value_unit, values, _evidence(row, row.result_id))


def child_of_figure(found: Figure) -> Child:
    return Child(found.ns_per_sample, found.id, found.unit, found.values, found.evidence)


def _evidence(row: Any, result_id: str) -> Evidence:
    return Evidence(
        result_id, row.spread or 0.0, row.accuracy, row.joules_per_sample, row.energy_scope
    )


class AggregateKey(NamedTuple):
    """The id and subject of a result's aggregate on one level."""

    id: str
    subject: Subject


def lineage(row: Any) -> Mapping[str, AggregateKey]:
    """The aggregates of a result, by level. Cached, because results that arrive together mostly
    share them."""
    setup = Setup(row.framework, row.device, row.recipe, row.batch_size, row.precision, row.data)
    hardware = (row.hardware, row.hardware_slug, row.workload, row.workload_digest)
    return _lineage(*hardware, setup, row.owner, row.machine_id, row.environment_id)


@lru_cache(maxsize=4096)
def _lineage(*subject: Any) -> Mapping[str, AggregateKey]:
    subjects = {level: at_level(level, Subject(*subject)) for level in LEVELS}
    return {level: AggregateKey(subject.id, subject) for level, subject in subjects.items()}


def at_level(level: str, subject: Subject) -> Subject:
    """The subject at a level, its own or a higher one."""
    return replace(subject, **LEFT_OUT[level])


def subject_of_result(row: Any) -> Subject:
    """The subject of a result at the level ``environment``."""
    return lineage(row)["environment"].subject


def figure_of_result(row: Any) -> Figure:
    """A measured result as a figure of one repeat, ranked or not."""
    time = row.ns_per_sample
    return Figure(
        id=row.submission_id,
        subject=subject_of_result(row),
        ns_per_sample=time,
        fastest_ns=time,
        slowest_ns=time,
        values=LogSample(1, math.log(time), 0.0),
        unit="repeats",
        repeats=1,
        machines=1,
        owners=1,
        trust_level=row.trust_level,
        newest_at=row.received_at,
        evidence=_evidence(row, row.submission_id),
    )


def figure(row: Any) -> Figure:
    """A row of the table as a figure."""
    return Figure(
        id=row.id,
        subject=Subject(
            row.hardware,
            row.hardware_slug,
            row.workload,
            row.workload_digest,
            Setup(row.framework, row.device, row.recipe, row.batch_size, row.precision, row.data),
            row.owner,
            row.machine_id,
            row.environment_id,
        ),
        ns_per_sample=row.ns_per_sample,
        fastest_ns=row.fastest_ns,
        slowest_ns=row.slowest_ns,
        values=LogSample(row.value_count, row.value_log_mean, row.value_log_variance),
        unit=row.value_unit,
        repeats=row.repeats,
        machines=row.machines,
        owners=row.owners,
        trust_level=row.trust_level,
        newest_at=row.newest_at,
        evidence=_evidence(row, row.result_id),
        published=row.level == "published",
    )


def standing_values(level: str, found: Figure, children: Sequence[Figure]) -> dict[str, Any]:
    """The columns of a figure that was combined from these children."""
    ordered = sorted(children, key=lambda child: (child.ns_per_sample, child.id))
    middle = ordered[(len(ordered) - 1) // 2]
    logs_of_children = LogSample.of([child.ns_per_sample for child in ordered])
    logs = Logs(
        logs_of_children.n,
        logs_of_children.mean,
        logs_of_children.variance * (logs_of_children.n - 1),
    )
    key = (middle.ns_per_sample, middle.id)
    return _identity(level, found.subject) | columns_of(found, key, logs)


def _identity(level: str, subject: Subject) -> dict[str, Any]:
    fields = {name: getattr(subject, name) for name in Subject.__slots__ if name != "setup"}
    parent = at_level(ABOVE[level], subject).id if level in ABOVE else None
    return {
        "id": subject.id,
        "level": level,
        "parent_id": parent,
        **fields,
        **subject.setup._asdict(),
    }


def columns_of(found: Figure, middle: tuple[float, str], logs: "Logs") -> dict[str, Any]:
    return {
        "ns_per_sample": found.ns_per_sample,
        "fastest_ns": found.fastest_ns,
        "slowest_ns": found.slowest_ns,
        "children": logs.n,
        "middle_ns": middle[0],
        "middle_id": middle[1],
        "log_mean": logs.mean,
        "log_m2": logs.m2,
        "value_unit": found.unit,
        "value_count": found.values.n,
        "value_log_mean": found.values.mean,
        "value_log_variance": found.values.variance,
        "repeats": found.repeats,
        "machines": found.machines,
        "owners": found.owners,
        "trust_level": found.trust_level,
        "newest_at": found.newest_at,
        "result_id": found.evidence.result_id,
        "spread": found.evidence.spread,
        "accuracy": found.evidence.accuracy,
        "joules_per_sample": found.evidence.joules_per_sample,
        "energy_scope": found.evidence.energy_scope,
    }


class Logs(NamedTuple):
    """Count, mean and squared deviations of logarithms, with values added or removed one at a time.

    Welford, Note on a method for calculating corrected sums of squares and products (1962).
    """

    n: int
    mean: float
    m2: float

    @property
    def sample(self) -> LogSample:
        return LogSample(self.n, self.mean, self.m2 / (self.n - 1) if self.n > 1 else 0.0)

    def plus(self, value: float) -> "Logs":
        mean = self.mean + (value - self.mean) / (self.n + 1)
        return Logs(self.n + 1, mean, self.m2 + (value - self.mean) * (value - mean))

    def without(self, value: float) -> "Logs":
        if self.n == 1:
            return Logs(0, 0.0, 0.0)
        mean = self.mean - (value - self.mean) / (self.n - 1)
        return Logs(self.n - 1, mean, max(self.m2 - (value - self.mean) * (value - mean), 0.0))
