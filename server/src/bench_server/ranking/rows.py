"""Conversion between rows of the ``aggregate`` and ``measurement`` tables and figures."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from bench_protocol.statistics.comparison import LogSample

from ..db.tables import Aggregate, Measurement, table_of
from .figures import Evidence, Figure, Level, Setup, Subject, at_level
from .medians import sample_of_one
from .owners import NO_OWNER, OwnerCounts, OwnerFacts
from .spread import Range, Spread

TABLE = table_of(Aggregate)
RESULTS = table_of(Measurement)
# Levels, the lowest first.
LEVELS: tuple[Level, ...] = ("run", "machine", "owner", "hardware")
ABOVE: dict[str, Level] = {"run": "machine", "machine": "owner", "owner": "hardware"}
SUBJECT_FIELDS = tuple(name for name in Subject._fields if name != "setup")
# The columns of a result that name the subject of its figures.
SUBJECT_COLUMNS = (*SUBJECT_FIELDS, *Setup._fields)
# Columns of an aggregate that have the names of its figure's fields.
SAME_NAMES = (
    *("id", "ns_per_sample", "fastest_ns", "slowest_ns", "repeats", "runs", "machines"),
    *("trust_level", "newest_at", "disturbed", "left_out"),
)


def subject_of(row: Any) -> Subject:
    """The subject of a result, at the level ``run``, from its row."""
    named = {name: getattr(row, name) for name in SUBJECT_FIELDS}
    return Subject(setup=Setup.of(row), **named)


@lru_cache(maxsize=4096)
def lineage(lowest: Subject) -> Mapping[Level, Subject]:
    """The subjects of a result's aggregates by level, given its own. Cached: the repeats of a run
    share them, and their ids are digests (a fifth of the projection's processor time)."""
    return {"run": lowest, **_above_run(at_level("machine", lowest))}


@lru_cache(maxsize=4096)
def _above_run(machine: Subject) -> Mapping[Level, Subject]:
    return {level: at_level(level, machine) for level in LEVELS[1:]}


RESULT_COLUMNS = tuple(
    RESULTS.c[name]
    for name in (
        *("submission_id", "ns_per_sample", "trust_level", "received_at", "disturbed"),
        *("accuracy", "joules_per_sample", "energy_scope", "spread", *SUBJECT_COLUMNS),
    )
)


def figure_of_result(row: Any) -> Figure:
    """A measured result with ``RESULT_COLUMNS`` as a figure of one repeat, ranked or not."""
    time = row.ns_per_sample
    return Figure(
        id=row.submission_id,
        subject=subject_of(row),
        ns_per_sample=time,
        fastest_ns=time,
        slowest_ns=time,
        values=sample_of_one(time),
        trust_level=row.trust_level,
        newest_at=row.received_at,
        evidence=Evidence(row.submission_id, row.accuracy, row.joules_per_sample, row.energy_scope),
        spread=Spread(row.spread or 0.0),
        disturbed=row.disturbed,
    )


# Columns in the order of :func:`figure`, which reads them by position: reading by name takes ten
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
        *(hardware, slug, workload, digest, setup), *(owner, machine_id, run_id, environment_id)
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
        machines_range=(
            None if machines_fastest_ns is None else Range(machines_fastest_ns, machines_slowest_ns)
        ),
        disturbed=disturbed,
        left_out=left_out,
    )


def aggregate_columns(
    level: str, aggregate: Figure, owner: OwnerFacts = NO_OWNER
) -> dict[str, Any]:
    """The columns of a figure of this level.

    Args:
        owner: kind and area of an owner; no matter at other levels.
    """
    subject = aggregate.subject
    fastest_machine, slowest_machine = aggregate.machines_range or (None, None)
    return {
        **{name: getattr(aggregate, name) for name in SAME_NAMES},
        **aggregate.evidence._asdict(),
        "level": level,
        "parent_id": at_level(ABOVE[level], subject).id if level in ABOVE else None,
        **{name: getattr(subject, name) for name in SUBJECT_FIELDS},
        **subject.setup._asdict(),
        "value_unit": aggregate.unit,
        "value_count": aggregate.values.n,
        "value_log_mean": aggregate.values.mean,
        "value_log_variance": aggregate.values.variance,
        "owners": aggregate.owners.total,
        "confirmed_owners": aggregate.owners.confirmed,
        "established_owners": aggregate.owners.established,
        "owner_kind": owner.kind,
        "area": owner.area,
        "spread": aggregate.spread.share,
        "spread_between": aggregate.spread.between,
        "machines_fastest_ns": fastest_machine,
        "machines_slowest_ns": slowest_machine,
    }
