"""Medians of repeats, machines, owners and hardware: pure functions.

A repeat is one process: the median of its blocks. A machine's figure is the median over its
repeats, an owner's over machines, a hardware's over owners: one value each, so that a second
measurement does not count twice, and an owner moves a hardware's figure by no more than one value
among the owners' (the breakdown point of the median, Huber 1964). The unit throughout is
nanoseconds per sample.

:func:`combine` is that median, the same at each level. :mod:`.aggregates` stores its values in a
table; :func:`figures` computes them from repeats.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Literal, NamedTuple

import orjson

from bench_protocol import comparison
from bench_protocol.comparison import LogSample
from bench_protocol.doubts import UNSTEADY_SPREAD

OWNERS_FOR_A_FIGURE = 3
# Logarithms are summed as integers of this part of 1, so that a sum depends on no order.
LOG_SCALE = 100_000

Unit = Literal["repeats", "machines", "owners"]
Kind = comparison.Kind
UNITS: tuple[Unit, ...] = ("repeats", "machines", "owners")


class Setup(NamedTuple):
    """How a workload was trained: the axes of a cell except workload and hardware."""

    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str

    @property
    def words(self) -> str:
        """Framework and recipe, which distinguish the set-ups of a board, and any precision other
        than float32."""
        unusual = "" if self.precision == "float32" else f" {self.precision}"
        return f"{self.framework} {self.recipe}{unusual}"


@dataclass(frozen=True)
class Subject:
    """What a figure describes: hardware, owner or machine, in one set-up.

    ``owner`` and ``machine_id`` are empty above their level; ``environment_id`` is set only where
    figures are of one environment.
    """

    hardware: str
    hardware_slug: str
    workload: str
    workload_digest: str
    setup: Setup
    owner: str = ""
    machine_id: str = ""
    environment_id: str = ""

    @property
    def level(self) -> str:
        """Its level: ``environment``, ``machine``, ``owner`` or ``hardware``."""
        if self.environment_id:
            return "environment"
        return "machine" if self.machine_id else "owner" if self.owner else "hardware"

    @cached_property
    def id(self) -> str:
        """32 hex digits, equal for equal subjects. A machine's id does not depend on its owner."""
        scope = ("machine", self.machine_id) if self.machine_id else ("owner", self.owner)
        named = (self.hardware_slug, self.workload_digest, *self.setup, *scope)
        text = orjson.dumps((*named, self.environment_id))
        return hashlib.sha256(text).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Values of the middle repeat, which represents a figure; ``spread`` is within its run."""

    result_id: str
    spread: float
    accuracy: float | None = None
    joules_per_sample: float | None = None
    energy_scope: str | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """The speed of one repeat, machine, owner or hardware in one set-up.

    ``fastest_ns`` and ``slowest_ns`` are the extremes of the repeats. ``values`` are the
    independent values of a comparison, each a ``unit``: owners if there are several, else machines,
    else repeats. ``trust_level`` is the lowest of all counted results. ``evidence`` is of the
    repeat in the middle.
    """

    id: str
    subject: Subject
    ns_per_sample: float
    fastest_ns: float
    slowest_ns: float
    values: LogSample
    unit: Unit
    repeats: int
    machines: int
    owners: int
    trust_level: int
    newest_at: datetime
    evidence: Evidence
    published: bool = False

    @property
    def setup(self) -> Setup:
        return self.subject.setup

    @property
    def hardware(self) -> str:
        return self.subject.hardware

    @property
    def hardware_slug(self) -> str:
        return self.subject.hardware_slug

    @property
    def provisional(self) -> bool:
        """Whether too few owners measured it, so that one owner could set the figure."""
        return self.owners < OWNERS_FOR_A_FIGURE

    @property
    def unsteady(self) -> bool:
        """Whether block times within a run vary too much for a reliable figure. It is still
        ranked."""
        return unsteady(self.evidence.spread)


def unsteady(spread: float | None) -> bool:
    """Whether the interquartile range of a run's block times is above a fifth of their median."""
    return spread is not None and spread > UNSTEADY_SPREAD


class Middle(NamedTuple):
    """A child in the middle of its siblings, or one of the two."""

    ns_per_sample: float
    unit: Unit
    values: LogSample
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Children:
    """What a median needs of the one or more figures below it. They are ordered by time, then id;
    ``lower`` and ``upper`` are the two in the middle, the same one twice if their number is odd.
    ``log_sum`` and ``log_square_sum`` add their times' logarithms as integers of 1/``LOG_SCALE``.
    """

    count: int
    fastest_ns: float
    slowest_ns: float
    repeats: int
    machines: int
    trust_level: int
    newest_at: datetime
    log_sum: int
    log_square_sum: int
    lower: Middle
    upper: Middle

    @classmethod
    def of(cls, children: Iterable[Figure]) -> "Children":
        """Summarise figures that are in memory; :mod:`.aggregates` does the same in SQL."""
        ordered = sorted(children, key=lambda child: (child.ns_per_sample, child.id))
        logs = [scaled_log(child.ns_per_sample) for child in ordered]
        lower, upper = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        return cls(
            count=len(ordered),
            fastest_ns=min(child.fastest_ns for child in ordered),
            slowest_ns=max(child.slowest_ns for child in ordered),
            repeats=sum(child.repeats for child in ordered),
            machines=sum(child.machines for child in ordered),
            trust_level=min(child.trust_level for child in ordered),
            newest_at=max(child.newest_at for child in ordered),
            log_sum=sum(logs),
            log_square_sum=sum(log * log for log in logs),
            lower=Middle(lower.ns_per_sample, lower.unit, lower.values, lower.evidence),
            upper=Middle(upper.ns_per_sample, upper.unit, upper.values, upper.evidence),
        )

    @property
    def logs(self) -> LogSample:
        """Number, mean and variance of the logarithms of their times."""
        n, total = self.count, self.log_sum
        spread = n * self.log_square_sum - total * total
        variance = spread / (n * (n - 1) * LOG_SCALE**2) if n > 1 else 0.0
        return LogSample(n, total / (n * LOG_SCALE), variance)


def scaled_log(ns_per_sample: float) -> int:
    """The logarithm of a time as an integer of 1/``LOG_SCALE``."""
    return round(math.log(ns_per_sample) * LOG_SCALE)


def combine(children: Children, unit: Unit, subject: Subject) -> Figure:
    """The median over one or more figures of the level below, each a ``unit``.

    The evidence is that of the middle one; of an even number, the faster of the two.
    """
    lower, upper = children.lower, children.upper
    alone = children.count == 1 and unit != "repeats"
    return Figure(
        id=subject.id,
        subject=subject,
        ns_per_sample=(lower.ns_per_sample + upper.ns_per_sample) / 2,
        fastest_ns=children.fastest_ns,
        slowest_ns=children.slowest_ns,
        values=lower.values if alone else children.logs,
        unit=lower.unit if alone else unit,
        repeats=children.repeats,
        machines=1 if unit == "repeats" else children.machines,
        owners=children.count if unit == "owners" else 1,
        trust_level=children.trust_level,
        newest_at=children.newest_at,
        evidence=lower.evidence,
    )


def figures(repeats: Iterable[Figure]) -> list[Figure]:
    """One figure for each hardware, workload and set-up, fastest first. The data is part of the
    set-up, so real and generated data are separate."""
    machines = _grouped(repeats, "repeats", lambda subject: replace(subject, environment_id=""))
    figures_found = of_machines(machines)
    return sorted(figures_found, key=lambda f: (f.ns_per_sample, f.hardware_slug, f.setup))


def of_environments(environments: Iterable[Figure]) -> list[Figure]:
    """Figures of machines from figures of machines in one environment each, with one value for each
    environment. A filter by driver or version mostly leaves one environment of a machine."""
    return _grouped(environments, "repeats", lambda subject: replace(subject, environment_id=""))


def names_machine(figures: Sequence[Figure]) -> Figure:
    """The figure that names a machine's hardware: a GPU's if there is one, else the first."""
    return min(figures, key=lambda figure: figure.setup.device == "cpu")


def of_machines(machines: Iterable[Figure]) -> list[Figure]:
    """Figures of hardware from figures of machines."""
    owners = _grouped(machines, "machines", lambda subject: replace(subject, machine_id=""))
    return _grouped(owners, "owners", lambda subject: replace(subject, machine_id="", owner=""))


def _grouped(
    children: Iterable[Figure], unit: Unit, above: Callable[[Subject], Subject]
) -> list[Figure]:
    groups: defaultdict[Subject, list[Figure]] = defaultdict(list)
    for child in children:
        groups[above(child.subject)].append(child)
    return [combine(Children.of(group), unit, subject) for subject, group in groups.items()]
