"""Medians of runs, machines, owners and hardware: pure functions.

A repeat is one process. A run's figure is the median over its repeats, a machine's over its runs,
an owner's over machines, a hardware's over owners: one value each, so that a second measurement
does not count twice, and an owner moves a hardware's figure by no more than one value among the
owners' (the breakdown point of the median, Huber 1964). The median of an even number is the slower
of the two in the middle, so each figure is the time of one repeat. Repeats of one run are not
independent of each other, so a run is the smallest unit of a comparison. Where enough owners are
confirmed, they alone make the figure of a hardware (:func:`of_owners`). Of what is left at each
level, disturbed values are left out while there are others (:func:`counting`). The unit of time is
nanoseconds per sample.

:func:`combine` is that median, the same at each level. :mod:`.aggregates` stores its values in a
table; :func:`figures` computes them from repeats.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import orjson

from bench_protocol import comparison
from bench_protocol.comparison import LogSample

from .spread import NO_SPREAD, Between, Range, Spread, range_of

# From this number of confirmed owners on, they alone make a hardware's figure. One is not enough:
# nobody would have reproduced it.
CONFIRMED_FOR_A_FIGURE = 2
OWNERS_FOR_A_FIGURE = 3
# Logarithms are summed as integers of this part of 1, so that a sum depends on no order.
LOG_SCALE = 100_000

Level = Literal["run", "machine", "owner", "hardware"]
Unit = Literal["runs", "machines", "owners"]
Kind = comparison.Kind
UNITS: tuple[Unit, ...] = ("runs", "machines", "owners")
# What a level's figure is a median over; repeats are no unit, because they are not independent.
UNIT_OF_LEVEL: dict[Level, Unit] = {"machine": "runs", "owner": "machines", "hardware": "owners"}
# What the children of a level are, for its spread. An owner's figure is that of a machine.
BETWEEN: dict[Level, Between] = {
    "run": "repeats",
    "machine": "runs",
    "owner": "machines",
    "hardware": "machines",
}
# Evidence of a hardware's figure, best first: two or more confirmed owners, three or more owners,
# fewer.
Tier = Literal["confirmed", "several", "provisional"]
TIERS: tuple[Tier, ...] = ("confirmed", "several", "provisional")


class Setup(NamedTuple):
    """How a workload was trained and timed: the axes of a cell except workload and hardware, and
    whether its timing is long (:func:`bench_protocol.figures.timing_kind`)."""

    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str
    timing: str

    @property
    def words(self) -> str:
        """Framework and recipe, which distinguish the set-ups of a board, and any precision other
        than float32."""
        unusual = "" if self.precision == "float32" else f" {self.precision}"
        return f"{self.framework} {self.recipe}{unusual}"


class Subject(NamedTuple):
    """What a figure describes: hardware, owner, machine or run, in one set-up.

    ``owner``, ``machine_id``, ``run_id`` and ``environment_id`` are empty above their level. What a
    run measured before and after a change of its environment counts as two runs.
    """

    hardware: str
    hardware_slug: str
    workload: str
    workload_digest: str
    setup: Setup
    owner: str = ""
    machine_id: str = ""
    run_id: str = ""
    environment_id: str = ""

    @property
    def level(self) -> Level:
        """Its level."""
        if self.run_id:
            return "run"
        return "machine" if self.machine_id else "owner" if self.owner else "hardware"

    @property
    def id(self) -> str:
        """32 hex digits, equal for equal subjects. A machine's id does not depend on its owner."""
        return _id(self)


@lru_cache(maxsize=8192)
def _id(subject: Subject) -> str:
    """Cached: the repeats of a run share their subjects."""
    scope = ("machine", subject.machine_id) if subject.machine_id else ("owner", subject.owner)
    named = (subject.hardware_slug, subject.workload_digest, *subject.setup, *scope)
    text = orjson.dumps((*named, subject.run_id, subject.environment_id))
    return hashlib.sha256(text).hexdigest()[:32]


class Evidence(NamedTuple):
    """Values of the middle repeat, whose time the figure is."""

    result_id: str
    accuracy: float | None = None
    joules_per_sample: float | None = None
    energy_scope: str | None = None


class Figure(NamedTuple):
    """The speed of one repeat, run, machine, owner or hardware in one set-up.

    ``fastest_ns`` and ``slowest_ns`` are the extremes of the repeats. ``values`` are the
    independent values of a comparison, each a ``unit``: owners if there are several, else machines,
    else runs. ``trust_level``: more than half of the figures below have it or a higher one.
    ``evidence`` is of the repeat in the middle. ``owners`` are all that have a figure,
    ``confirmed_owners`` those of them that the operator vouches for; all else is of those that
    count in the figure. ``machines_range``: of the machines, None where there is one.
    ``disturbed``: what counts was disturbed (:func:`bench_protocol.doubts.disturbances`);
    ``left_out``: disturbed results that do not count because others do.
    """

    id: str
    subject: Subject
    ns_per_sample: float
    fastest_ns: float
    slowest_ns: float
    values: LogSample
    unit: Unit
    repeats: int
    runs: int
    machines: int
    owners: int
    trust_level: int
    newest_at: datetime
    evidence: Evidence
    confirmed_owners: int = 0
    published: bool = False
    spread: Spread = NO_SPREAD
    machines_range: Range | None = None
    disturbed: bool = False
    left_out: int = 0

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
    def tier(self) -> Tier | None:
        """How much evidence a hardware's figure has, by the owners that count in it. None for a
        published figure, and below the level of hardware: nobody else can measure the same
        machine."""
        if self.published or self.subject.level != "hardware":
            return None
        counted = self.values.n if self.unit == "owners" else 1
        if counted < CONFIRMED_FOR_A_FIGURE:
            return "provisional"
        if confirmed_decide(self.confirmed_owners):
            return "confirmed"
        return "several" if counted >= OWNERS_FOR_A_FIGURE else "provisional"

    @property
    def provisional(self) -> bool:
        """Whether too few owners measured a hardware, so that one owner could set its figure."""
        return self.tier == "provisional"


def confirmed_decide(confirmed_owners: int) -> bool:
    """Whether this many confirmed owners are enough to make a hardware's figure alone."""
    return confirmed_owners >= CONFIRMED_FOR_A_FIGURE


class _Disturbable(Protocol):
    @property
    def disturbed(self) -> bool: ...


Child = TypeVar("Child", bound=_Disturbable)


def counting(children: Sequence[Child]) -> Sequence[Child]:
    """The children that count: the undisturbed ones, or all if there are none."""
    return [child for child in children if not child.disturbed] or children


class Middle(NamedTuple):
    """The child in the middle of its siblings."""

    ns_per_sample: float
    unit: Unit
    values: LogSample
    evidence: Evidence
    spread: Spread
    machines_range: Range | None


@dataclass(frozen=True, slots=True)
class Children:
    """What a median needs of the one or more figures below it that count. They are ordered by time,
    then id; of an even number ``middle`` is the slower of the two in the middle. ``total`` counts
    those that are left out too, ``left_out`` their results and what was left out below.
    ``log_sum`` and ``log_square_sum`` add their times' logarithms as integers of 1/``LOG_SCALE``.
    """

    count: int
    total: int
    disturbed: bool
    left_out: int
    fastest_ns: float
    slowest_ns: float
    repeats: int
    runs: int
    machines: int
    trust_level: int
    newest_at: datetime
    log_sum: int
    log_square_sum: int
    range: Range
    middle: Middle

    @classmethod
    def of(cls, children: Iterable[Figure]) -> "Children":
        """Summarise figures that are in memory; :mod:`.aggregates` does the same in SQL."""
        everything = sorted(children, key=lambda child: (child.ns_per_sample, child.id))
        ordered = counting(everything)
        logs = [scaled_log(child.ns_per_sample) for child in ordered]
        middle = ordered[len(ordered) // 2]
        results = sum(child.repeats + child.left_out for child in everything)
        return cls(
            count=len(ordered),
            total=len(everything),
            disturbed=middle.disturbed,
            left_out=results - sum(child.repeats for child in ordered),
            fastest_ns=min(child.fastest_ns for child in ordered),
            slowest_ns=max(child.slowest_ns for child in ordered),
            repeats=sum(child.repeats for child in ordered),
            runs=sum(child.runs for child in ordered),
            machines=sum(child.machines for child in ordered),
            trust_level=sorted(child.trust_level for child in ordered)[(len(ordered) - 1) // 2],
            newest_at=max(child.newest_at for child in ordered),
            log_sum=sum(logs),
            log_square_sum=sum(log * log for log in logs),
            range=range_of([child.ns_per_sample for child in ordered]),
            middle=Middle(
                middle.ns_per_sample,
                middle.unit,
                middle.values,
                middle.evidence,
                middle.spread,
                middle.machines_range,
            ),
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


def sample_of_one(ns_per_sample: float) -> LogSample:
    """One time as a sample."""
    return LogSample(1, scaled_log(ns_per_sample) / LOG_SCALE, 0.0)


def combine(children: Children, level: Level, subject: Subject) -> Figure:
    """The median over one or more figures of the level below: the middle one, with its evidence."""
    middle = children.middle
    time = middle.ns_per_sample
    if level == "run":
        values, unit = sample_of_one(time), UNITS[0]
    elif children.count == 1:
        values, unit = middle.values, middle.unit
    else:
        values, unit = children.logs, UNIT_OF_LEVEL[level]
    between = BETWEEN[level]
    machines_range = middle.machines_range
    if between == "machines" and children.count > 1:
        machines_range = max(machines_range or children.range, children.range, key=_width)
    return Figure(
        id=subject.id,
        subject=subject,
        ns_per_sample=time,
        fastest_ns=children.fastest_ns,
        slowest_ns=children.slowest_ns,
        values=values,
        unit=unit,
        repeats=children.repeats,
        runs=1 if level == "run" else children.runs,
        machines=1 if level in ("run", "machine") else children.machines,
        owners=children.total if level == "hardware" else 1,
        trust_level=children.trust_level,
        newest_at=children.newest_at,
        evidence=middle.evidence,
        spread=max(middle.spread, Spread(children.range.share(time), between), key=_share),
        machines_range=machines_range,
        disturbed=children.disturbed,
        left_out=children.left_out,
    )


def _width(one: Range) -> float:
    return one.slowest_ns - one.fastest_ns


def _share(one: Spread) -> float:
    return one.share


def figures(repeats: Iterable[Figure], confirmed: Set[str] = frozenset()) -> list[Figure]:
    """One figure for each hardware, workload and set-up, fastest first. Data and timing are part of
    the set-up, so real and generated data are separate, and so are long and short timings.

    Args:
        confirmed: labels of the confirmed owners.
    """
    of_hardware = of_machines(of_runs(of_repeats(repeats)), confirmed)
    return sorted(of_hardware, key=lambda f: (f.ns_per_sample, f.hardware_slug, f.setup))


def of_repeats(repeats: Iterable[Figure]) -> list[Figure]:
    """Figures of runs from figures of their repeats."""
    return _combined(repeats, "run")


def of_runs(runs: Iterable[Figure]) -> list[Figure]:
    """Figures of machines from figures of their runs, or of some of them."""
    return _combined(runs, "machine")


def of_machines(machines: Iterable[Figure], confirmed: Set[str] = frozenset()) -> list[Figure]:
    """Figures of hardware from figures of machines."""
    groups = _below(_combined(machines, "owner"), "hardware")
    return [of_owners(group, confirmed, subject) for subject, group in groups.items()]


def of_owners(owners: Sequence[Figure], confirmed: Set[str], subject: Subject) -> Figure:
    """The figure of a hardware from those of its owners: of the confirmed ones alone, where there
    are enough."""
    vouched = [figure for figure in owners if figure.subject.owner in confirmed]
    counted = vouched if confirmed_decide(len(vouched)) else owners
    figure = combine(Children.of(counted), "hardware", subject)
    return figure._replace(owners=len(owners), confirmed_owners=len(vouched))


def names_machine(figures: Sequence[Figure]) -> Figure:
    """The figure that names a machine's hardware: a GPU's if there is one, else the first."""
    return min(figures, key=lambda figure: figure.setup.device == "cpu")


# The fields that are empty in a level's subjects.
EMPTY: dict[Level, dict[str, Any]] = {
    "run": {},
    "machine": {"run_id": "", "environment_id": ""},
    "owner": {"run_id": "", "environment_id": "", "machine_id": ""},
    "hardware": {"run_id": "", "environment_id": "", "machine_id": "", "owner": ""},
}


def at_level(level: Level, subject: Subject) -> Subject:
    """The subject at a level, its own or a higher one."""
    return subject._replace(**EMPTY[level])


def _combined(children: Iterable[Figure], level: Level) -> list[Figure]:
    groups = _below(children, level)
    return [combine(Children.of(group), level, subject) for subject, group in groups.items()]


def _below(children: Iterable[Figure], level: Level) -> dict[Subject, list[Figure]]:
    """Figures by their subject at a higher level."""
    groups: defaultdict[Subject, list[Figure]] = defaultdict(list)
    for child in children:
        groups[at_level(level, child.subject)].append(child)
    return groups
