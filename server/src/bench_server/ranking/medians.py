"""Medians of runs, machines, owners and hardware: pure functions.

A repeat is one process. A run's figure is the median over its repeats, a machine's over its runs,
an owner's over machines, a hardware's over owners: one value each, so that a second measurement
does not count twice, and an owner moves a hardware's figure by no more than one value among the
owners' (the breakdown point of the median, Huber 1964). The median of an even number is the slower
of the two in the middle, so each figure is the time of one repeat. Repeats of one run are not
independent of each other, so a run is the smallest unit of a comparison. Owners of the best kind
make the figure of a hardware (:attr:`.owners.OwnerCounts.deciding`). Where these are new, a key
costs nothing, so an area counts once, by its fastest owner that was not disturbed if there is one.
Of what is left at each level, disturbed values are left out while there are others
(:func:`counting`).

:func:`combine` is that median, the same at each level. :mod:`.aggregates` stores its values in a
table; :func:`combined` computes them from figures in memory.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Protocol, TypeVar

from bench_protocol.statistics.comparison import LogSample

from .figures import BETWEEN, UNIT_OF_LEVEL, UNITS, Figure, Level, Subject, at_level
from .owners import NO_OWNER, ONE_OWNER, OwnerCounts, OwnerFacts
from .spread import Range, Spread, range_of

# Logarithms are summed as integers of this part of 1, so that a sum depends on no order.
LOG_SCALE = 100_000
ALL_NEW: Mapping[str, OwnerFacts] = MappingProxyType({})


class _Disturbable(Protocol):
    @property
    def disturbed(self) -> bool: ...


Child = TypeVar("Child", bound=_Disturbable)


def counting(children: Sequence[Child]) -> Sequence[Child]:
    """The children that count: the undisturbed ones, or all if there are none."""
    return [child for child in children if not child.disturbed] or children


@dataclass(frozen=True, slots=True)
class Children:
    """What a median needs of the one or more figures below it that count. They are ordered by time,
    then id; of an even number ``middle`` is the slower of the two in the middle. ``owners`` counts
    all, by the kind of their owner. ``left_out`` counts disturbed results of the deciding ones that
    do not count, and what was left out below.
    ``log_sum`` and ``log_square_sum`` add their times' logarithms as integers of 1/``LOG_SCALE``.
    """

    count: int
    owners: OwnerCounts
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
    middle: Figure

    @classmethod
    def of(
        cls, children: Iterable[Figure], facts: Mapping[str, OwnerFacts] = ALL_NEW
    ) -> "Children":
        """Summarise figures that are in memory; :mod:`.children` does the same in SQL."""
        every = [(child, facts.get(child.subject.owner, NO_OWNER)) for child in children]
        owners = OwnerCounts.add_up((about.kind, 1) for _, about in every)
        deciding = [child for child, about in every if about.kind <= owners.deciding]
        if not owners.older:
            deciding = _one_of_each_area(every)
        ordered = sorted(counting(deciding), key=lambda child: (child.ns_per_sample, child.id))
        logs = [scaled_log(child.ns_per_sample) for child in ordered]
        middle = ordered[len(ordered) // 2]
        results = sum(child.repeats + child.left_out for child in deciding)
        return cls(
            count=len(ordered),
            owners=owners,
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
            middle=middle,
        )

    @property
    def logs(self) -> LogSample:
        """Number, mean and variance of the logarithms of their times."""
        n, total = self.count, self.log_sum
        spread = n * self.log_square_sum - total * total
        variance = spread / (n * (n - 1) * LOG_SCALE**2) if n > 1 else 0.0
        return LogSample(n, total / (n * LOG_SCALE), variance)


def _one_of_each_area(children: Iterable[tuple[Figure, OwnerFacts]]) -> list[Figure]:
    """The fastest of each area, of the undisturbed ones if there are any."""
    found: dict[int | str, Figure] = {}
    for child, about in children:
        area = child.id if about.area is None else about.area
        found[area] = min(child, found.get(area, child), key=_undisturbed_first)
    return [*found.values()]


def _undisturbed_first(child: Figure) -> tuple[bool, float, str]:
    return child.disturbed, child.ns_per_sample, child.id


def scaled_log(ns_per_sample: float) -> int:
    """The logarithm of a time as an integer of 1/``LOG_SCALE``."""
    return round(math.log(ns_per_sample) * LOG_SCALE)


def sample_of_one(ns_per_sample: float) -> LogSample:
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
        machines_range = max(
            machines_range or children.range, children.range, key=lambda one: one.width_ns
        )
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
        owners=children.owners if level == "hardware" else ONE_OWNER,
        trust_level=children.trust_level,
        newest_at=children.newest_at,
        evidence=middle.evidence,
        spread=max(
            middle.spread,
            Spread(children.range.width_ns / time, between),
            key=lambda one: one.share,
        ),
        machines_range=machines_range,
        disturbed=children.disturbed,
        left_out=children.left_out,
    )


def combined(
    children: Iterable[Figure], level: Level, facts: Mapping[str, OwnerFacts] = ALL_NEW
) -> list[Figure]:
    """The figures of a level from those of the level below; owners without ``facts`` are new."""
    groups: defaultdict[Subject, list[Figure]] = defaultdict(list)
    for child in children:
        groups[at_level(level, child.subject)].append(child)
    return [combine(Children.of(group, facts), level, subject) for subject, group in groups.items()]


def of_machines(
    machines: Iterable[Figure], facts: Mapping[str, OwnerFacts] = ALL_NEW
) -> list[Figure]:
    """Figures of hardware from figures of machines."""
    return combined(combined(machines, "owner"), "hardware", facts)


def names_machine(figures: Sequence[Figure]) -> Figure:
    """The figure that names a machine's hardware: a GPU's if there is one, else the first."""
    return min(figures, key=lambda figure: figure.setup.device == "cpu")
