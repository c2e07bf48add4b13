"""From repeats to figures to ranks: pure functions.

A repeat is one process: the median of its blocks. A machine's figure is the median over its
repeats, an owner's over machines, a hardware's over owners: one value each, so that nobody counts
twice by measuring twice, and an owner moves a hardware's figure by no more than one value among
the owners' (the breakdown point of the median, Huber 1964). The unit throughout is nanoseconds per
sample.

:func:`combine` is that median, the same at each level. :mod:`.aggregates` keeps its answers in a
table; :func:`figures` gives them from repeats, for whoever wants to check.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from statistics import median
from typing import Literal, NamedTuple

from bench_protocol import comparison
from bench_protocol.comparison import LogSample
from bench_protocol.doubts import UNSTEADY_SPREAD

OWNERS_FOR_A_FIGURE = 3

Unit = Literal["repeats", "machines", "owners"]
Kind = comparison.Kind
UNITS: tuple[Unit, ...] = ("repeats", "machines", "owners")


class Setup(NamedTuple):
    """How a workload was trained: the axes of a cell besides workload and hardware."""

    framework: str
    device: str
    recipe: str
    batch_size: int
    precision: str
    data: str

    @property
    def words(self) -> str:
        """Framework and recipe, which tell set-ups of one board apart, and a precision that is not
        the usual one."""
        unusual = "" if self.precision == "float32" else f" {self.precision}"
        return f"{self.framework} {self.recipe}{unusual}"


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose figure it is, in what. ``owner`` and ``machine_id`` are empty above their level,
    ``environment_id`` but where figures are of one environment."""

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
        """What it is: ``environment``, ``machine``, ``owner`` or ``hardware``."""
        if self.environment_id:
            return "environment"
        return "machine" if self.machine_id else "owner" if self.owner else "hardware"

    @property
    def id(self) -> str:
        """32 hex digits, the same for the same subject; a machine's whoever owns it."""
        whose = ("machine", self.machine_id) if self.machine_id else ("owner", self.owner)
        named = (self.hardware_slug, self.workload_digest, *self.setup, *whose)
        return _digest((*named, self.environment_id))


@lru_cache(maxsize=10_000)
def _digest(named: tuple[str | int, ...]) -> str:
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What only the repeat that stands for a figure can say; ``spread`` is within its run."""

    result_id: str
    spread: float
    accuracy: float | None = None
    joules_per_sample: float | None = None
    energy_scope: str | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """What one repeat, machine, owner or hardware does in one set-up.

    ``fastest_ns`` and ``slowest_ns`` span the repeats. ``values`` are the independent values a
    comparison counts, each a ``unit``: owners where there are several, else machines, else repeats.
    ``trust_level`` is the lowest among what counts. ``evidence`` is of the repeat in the middle.
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

    def __hash__(self) -> int:
        return hash(self.id)  # all fields would take longer than what is found by it

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
        """Fewer owners than a figure needs to be more than one person's word."""
        return self.owners < OWNERS_FOR_A_FIGURE

    @property
    def unsteady(self) -> bool:
        """The block times within a run differ so much that the figure says little; it counts."""
        return unsteady(self.evidence.spread)


def unsteady(spread: float | None) -> bool:
    """Half of a run's block times lie further apart than a fifth of their median."""
    return spread is not None and spread > UNSTEADY_SPREAD


def combine(children: Sequence[Figure], unit: Unit, subject: Subject) -> Figure:
    """The median over figures of the level below, at least one; ``unit`` is what each of them is.

    The one in the middle (of an even number the faster of the two) stands for all as evidence.
    """
    ordered = sorted(children, key=lambda child: (child.ns_per_sample, child.id))
    middle = ordered[(len(ordered) - 1) // 2]
    alone = len(ordered) == 1 and unit != "repeats"
    return Figure(
        id=subject.id,
        subject=subject,
        ns_per_sample=median(child.ns_per_sample for child in ordered),
        fastest_ns=min(child.fastest_ns for child in ordered),
        slowest_ns=max(child.slowest_ns for child in ordered),
        values=middle.values if alone else LogSample.of([c.ns_per_sample for c in ordered]),
        unit=middle.unit if alone else unit,
        repeats=sum(child.repeats for child in ordered),
        machines=1 if unit == "repeats" else sum(child.machines for child in ordered),
        owners=len(ordered) if unit == "owners" else 1,
        trust_level=min(child.trust_level for child in ordered),
        newest_at=max(child.newest_at for child in ordered),
        evidence=middle.evidence,
        published=middle.published,
    )


def figures(repeats: Iterable[Figure]) -> list[Figure]:
    """One figure for each hardware, workload and set-up, fastest first. Real and generated data
    stay apart: the data is part of the set-up."""
    machines = _grouped(repeats, "repeats", lambda subject: replace(subject, environment_id=""))
    found = of_machines(machines)
    return sorted(found, key=lambda f: (f.ns_per_sample, f.hardware_slug, f.setup))


def of_environments(environments: Iterable[Figure]) -> list[Figure]:
    """Figures of machines from figures of machines in one environment each, every environment one
    value: what a filter by driver or version leaves of a machine is mostly one environment."""
    return _grouped(environments, "repeats", lambda subject: replace(subject, environment_id=""))


def names_machine(figures: Sequence[Figure]) -> Figure:
    """The figure whose hardware a machine goes by: a GPU's where it has one, else the first."""
    return min(figures, key=lambda figure: figure.setup.device == "cpu")


def of_machines(machines: Iterable[Figure]) -> list[Figure]:
    """Figures of hardware from figures of machines."""
    owners = _grouped(machines, "machines", lambda subject: replace(subject, machine_id=""))
    return _grouped(owners, "owners", lambda subject: replace(subject, machine_id="", owner=""))


@dataclass(frozen=True)
class RankedRow:
    """A place on the board; published figures have none. ``others``: the same hardware's (or
    machine's) further set-ups, fastest first."""

    rank: int | None
    figure: Figure
    others: tuple[Figure, ...] = ()


def ranked(ordered: Sequence[Figure], *, one_each: bool, ranks_before: int = 0) -> list[RankedRow]:
    """Ranks in the order of the figures given, after ``ranks_before`` on earlier pages. With
    ``one_each``, every hardware or machine has one row: its first set-up, measured on real data
    where there is any."""
    groups: defaultdict[object, list[tuple[bool, int, Figure]]] = defaultdict(list)
    for number, figure in enumerate(ordered):
        subject = (figure.hardware_slug, figure.subject.machine_id, figure.published)
        groups[subject if one_each else number].append(
            (figure.setup.data != "real", number, figure)
        )
    best = sorted((sorted(group) for group in groups.values()), key=lambda group: group[0][1])
    place, rows = ranks_before, []
    for (_, _, first), *rest in best:
        place += not first.published
        others = tuple(figure for _, _, figure in rest)
        rows.append(RankedRow(None if first.published else place, first, others))
    return rows


@dataclass(frozen=True)
class Comparison:
    """How much faster ``a`` is than ``b``: times b / times a, with its interval where one can be
    stated. ``n_a`` and ``n_b`` count independent values, each a ``unit``."""

    speed_up: float
    low: float | None
    high: float | None
    n_a: int
    n_b: int
    unit: Unit
    kind: Kind
    verdict: str


def compare(a: Figure, b: Figure) -> Comparison:
    """Compare two figures of the same cell.

    The values are repeats where both sides are one machine each: repeats on one machine say nothing
    about how machines differ. Else they are machines where both are one owner each, else owners.
    See :mod:`bench_protocol.comparison`. With too few the speed-up is the ratio of the figures.
    """
    unit = max(a.unit, b.unit, key=UNITS.index)
    times, base = _values(a, unit), _values(b, unit)
    found = comparison.compare_samples(times, base, unit)
    speed_up = found.speed_up
    if found.kind == "too_few_runs":
        speed_up = b.ns_per_sample / a.ns_per_sample
    return Comparison(
        speed_up, found.low, found.high, times.n, base.n, unit, found.kind, found.words
    )


def _values(figure: Figure, unit: Unit) -> LogSample:
    return figure.values if figure.unit == unit else LogSample.of([figure.ns_per_sample])


def _grouped(
    children: Iterable[Figure], unit: Unit, above: Callable[[Subject], Subject]
) -> list[Figure]:
    groups: defaultdict[Subject, list[Figure]] = defaultdict(list)
    for child in children:
        groups[above(child.subject)].append(child)
    return [combine(group, unit, subject) for subject, group in groups.items()]
