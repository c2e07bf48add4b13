"""Conversion between rows of the ``aggregate`` and ``measurement`` tables and figures."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from bench_protocol.statistics.comparison import LogSample

from ..db.tables import Aggregate, Measurement, table_of
from .figures import Evidence, Figure, Level, Setup, Subject, at_level
from .medians import sample_of_one
from .owners import NEW, ONE_OWNER, OwnerCounts
from .spread import Range, Spread

TABLE = table_of(Aggregate)
RESULTS = table_of(Measurement)
# The lowest level first.
LEVELS: tuple[Level, ...] = ("run", "machine", "owner", "hardware")
ABOVE: dict[str, Level] = {"run": "machine", "machine": "owner", "owner": "hardware"}
SUBJECT_FIELDS = tuple(name for name in Subject._fields if name != "setup")
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
        owners=ONE_OWNER,
        trust_level=row.trust_level,
        newest_at=row.received_at,
        evidence=evidence(row, row.submission_id),
        spread=spread_of_result(row),
        disturbed=row.disturbed,
    )


def _subject(row: Any) -> Subject:
    """The subject of a result."""
    setup = Setup._make(getattr(row, name) for name in Setup._fields)
    return Subject(
        *(row.hardware, row.hardware_slug, row.workload, row.workload_digest, setup),
        *(row.owner, row.machine_id, row.run_id, row.environment_id),
    )


def sample_of(row: Any) -> LogSample:
    """The independent values of an aggregate."""
    return LogSample(row.value_count, row.value_log_mean, row.value_log_variance)


def evidence(row: Any, result_id: str) -> Evidence:
    """The evidence of a row of either table, by name."""
    return Evidence(result_id, row.accuracy, row.joules_per_sample, row.energy_scope)


def spread_of_result(row: Any) -> Spread:
    """That of the blocks of a result."""
    return Spread(row.spread or 0.0)


def spread_of(row: Any) -> Spread:
    """The spread of an aggregate."""
    return Spread(row.spread, row.spread_between)


def machines_range(fastest_ns: float | None, slowest_ns: float | None) -> Range | None:
    """The range of an aggregate's machines, from its two columns."""
    return None if fastest_ns is None or slowest_ns is None else Range(fastest_ns, slowest_ns)


# In the order in which :func:`figure` takes them. It reads them by position: by name takes ten
# times as long, a sixth of the time of a board's first answer.
FIGURE_COLUMNS = tuple(
    TABLE.c[name]
    for name in (
        *("id", "level", "hardware", "hardware_slug", "workload", "workload_digest"),
        *Setup._fields,
        *("owner", "machine_id", "run_id", "environment_id"),
        *("ns_per_sample", "fastest_ns", "slowest_ns"),
        *("value_count", "value_log_mean", "value_log_variance", "value_unit"),
        *("repeats", "runs", "machines", "owners"),
        *("confirmed_owners", "established_owners", "trust_level", "newest_at"),
        *("result_id", "accuracy", "joules_per_sample", "energy_scope"),
        *("spread", "spread_between", "machines_fastest_ns", "machines_slowest_ns"),
        *("disturbed", "left_out"),
    )
)


def figure(row: Sequence[Any]) -> Figure:
    """``FIGURE_COLUMNS`` of a row as a figure."""
    (
        id, level, hardware, slug, workload, digest,
        framework, device, recipe, batch_size, precision, data, timing,
        owner, machine_id, run_id, environment_id, time, fastest, slowest,
        count, log_mean, log_variance, unit,
        repeats, runs, machines, owners, confirmed, established, trust_level, newest_at,
        result_id, accuracy, joules_per_sample, energy_scope,
        spread, spread_between, machines_fastest_ns, machines_slowest_ns, disturbed, left_out,
    ) = row  # fmt: skip
    setup = Setup(framework, device, recipe, batch_size, precision, data, timing)
    subject = Subject(
        *(hardware, slug, workload, digest, setup),
        *(owner, machine_id, run_id, environment_id),
    )
    return Figure(
        id=id,
        subject=subject,
        ns_per_sample=time,
        fastest_ns=fastest,
        slowest_ns=slowest,
        values=LogSample(count, log_mean, log_variance),
        unit=unit,
        repeats=repeats,
        runs=runs,
        machines=machines,
        owners=OwnerCounts(confirmed, established, owners - confirmed - established),
        trust_level=trust_level,
        newest_at=newest_at,
        evidence=Evidence(result_id, accuracy, joules_per_sample, energy_scope),
        published=level == "published",
        spread=Spread(spread, spread_between),
        machines_range=machines_range(machines_fastest_ns, machines_slowest_ns),
        disturbed=disturbed,
        left_out=left_out,
    )


def aggregate_columns(level: str, aggregate: Figure, kind: int = NEW) -> dict[str, Any]:
    """The columns of a figure of this level.

    Args:
        kind: the kind of an owner; no matter at other levels.
    """
    subject, proof = aggregate.subject, aggregate.evidence
    fastest_machine, slowest_machine = aggregate.machines_range or (None, None)
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
        "owners": aggregate.owners.total,
        "confirmed_owners": aggregate.owners.confirmed,
        "established_owners": aggregate.owners.established,
        "owner_kind": kind,
        "trust_level": aggregate.trust_level,
        "newest_at": aggregate.newest_at,
        "result_id": proof.result_id,
        "spread": aggregate.spread.share,
        "spread_between": aggregate.spread.between,
        "machines_fastest_ns": fastest_machine,
        "machines_slowest_ns": slowest_machine,
        "disturbed": aggregate.disturbed,
        "left_out": aggregate.left_out,
        "accuracy": proof.accuracy,
        "joules_per_sample": proof.joules_per_sample,
        "energy_scope": proof.energy_scope,
    }
