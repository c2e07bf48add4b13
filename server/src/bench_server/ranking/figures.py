"""Figures: what was measured in a set-up, by whom, at which level, and with which evidence.

A figure is a median that :mod:`.medians` computes. The unit of time is nanoseconds per sample.
"""

import hashlib
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import orjson

from bench_protocol.statistics import comparison
from bench_protocol.statistics.comparison import LogSample

from .owners import CONFIRMED_FOR_A_FIGURE, ONE_OWNER, Backing, OwnerCounts
from .spread import NO_SPREAD, Between, Range, Spread

Level = Literal["run", "machine", "owner", "hardware"]
Unit = Literal["runs", "machines", "owners"]
Kind = comparison.Kind
UNITS: tuple[Unit, ...] = ("runs", "machines", "owners")
# The unit that a level's figure is a median over. Repeats are not independent, so no unit.
UNIT_OF_LEVEL: dict[Level, Unit] = {"machine": "runs", "owner": "machines", "hardware": "owners"}
# Names of the children of a level, for its spread. An owner's figure is that of a machine.
BETWEEN: dict[Level, Between] = {
    "run": "repeats",
    "machine": "runs",
    "owner": "machines",
    "hardware": "machines",
}


class Setup(NamedTuple):
    """How a workload was trained and timed: the axes of a cell except workload and hardware, and
    whether its timing is long (:func:`bench_protocol.payload.figures.timing_kind`)."""

    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str
    timing: str

    @classmethod
    def of(cls, row: Any) -> "Setup":
        """The set-up of a row, which has a column for each field."""
        return cls._make(getattr(row, name) for name in cls._fields)

    @property
    def words(self) -> str:
        """Framework and recipe, which distinguish the set-ups of a board, and any precision other
        than float32."""
        unusual = "" if self.precision == "float32" else f" {self.precision}"
        return f"{self.framework} {self.recipe}{unusual}"


class Subject(NamedTuple):
    """The subject of a figure: hardware, owner, machine or run, in one set-up.

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
    """Values of the median repeat, whose time the figure is."""

    result_id: str
    accuracy: float | None = None
    joules_per_sample: float | None = None
    energy_scope: str | None = None


class Figure(NamedTuple):
    """The speed of one repeat, run, machine, owner or hardware in one set-up.

    ``fastest_ns`` and ``slowest_ns`` are the extremes of the repeats. ``values`` are the
    independent values of a comparison, each a ``unit``: owners if there are several, else machines,
    else runs. ``trust_level``: more than half of the figures below have it or a higher one.
    ``evidence`` is of the repeat in the middle. ``owners`` are all that have a figure, by kind; all
    else is of those that count in the figure. ``held``: it waits for a second owner (:mod:`.held`).
    ``machines_range``: of the machines, None where there is one. ``disturbed``: what counts was
    disturbed (:func:`bench_protocol.payload.doubts.disturbances`); ``left_out``: disturbed results
    that do not count because others do. ``lead``: how far it may be too fast by chance as the best
    of several set-ups, in logarithms (:mod:`.best`).
    """

    id: str
    subject: Subject
    ns_per_sample: float
    fastest_ns: float
    slowest_ns: float
    values: LogSample
    trust_level: int
    newest_at: datetime
    evidence: Evidence
    unit: Unit = "runs"
    repeats: int = 1
    runs: int = 1
    machines: int = 1
    owners: OwnerCounts = ONE_OWNER
    published: bool = False
    spread: Spread = NO_SPREAD
    machines_range: Range | None = None
    disturbed: bool = False
    left_out: int = 0
    held: bool = False
    lead: float = 0.0

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
    def backing(self) -> Backing | None:
        """What backs a hardware's figure, by the owners that count in it. None for a published
        figure, and below the level of hardware: nobody else can measure the same machine."""
        if self.published or self.subject.level != "hardware":
            return None
        if min(self.counted, self.owners.confirmed) >= CONFIRMED_FOR_A_FIGURE:
            return "confirmed"
        return "several" if self.counted > 1 else "one"

    @property
    def counted(self) -> int:
        """How many owners count in it."""
        return self.values.n if self.unit == "owners" else 1

    @property
    def backed(self) -> bool:
        """Whether more than one new owner stands behind the figure: a confirmed or established
        one, or new ones of different areas. Only such a figure holds others (:mod:`.held`)."""
        return self.owners.older > 0 or self.counted > 1


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
