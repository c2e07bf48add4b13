"""From repeats to figures to ranks: pure functions of rows.

A repeat is one process: the median of its blocks. A machine's figure is the median over its
repeats, an owner's over machines, a hardware's over owners: one value each, so that nobody counts
twice by measuring twice. The unit throughout is nanoseconds per sample. A key stands for its owner
until owners exist.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple

from bench_protocol import verdicts
from bench_protocol.doubts import UNSTEADY_SPREAD

OWNERS_FOR_A_FIGURE = 3


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


class Repeat(NamedTuple):
    """One result that may count."""

    result_id: str
    owner: str
    machine_id: str
    hardware: str
    hardware_slug: str
    setup: Setup
    ns_per_sample: float
    spread: float
    trust_level: int


@dataclass(frozen=True)
class Figure:
    """What one hardware does in one set-up.

    ``fastest`` and ``slowest`` span the repeats, ``spread`` is the median within-run spread,
    ``trust_level`` the lowest among what counts, ``result_id`` the repeat closest to the figure.
    """

    hardware: str
    hardware_slug: str
    setup: Setup
    ns_per_sample: float
    fastest_ns_per_sample: float
    slowest_ns_per_sample: float
    spread: float
    repeats: int
    machines: int
    owners: int
    trust_level: int
    result_id: str

    @property
    def provisional(self) -> bool:
        """Fewer owners than a figure needs to be more than one person's word."""
        return self.owners < OWNERS_FOR_A_FIGURE

    @property
    def unsteady(self) -> bool:
        """The block times within a run differ so much that the figure says little; it counts."""
        return unsteady(self.spread)


@dataclass(frozen=True)
class RankedRow:
    """A place on the board. ``others``: the hardware's further set-ups, fastest first."""

    rank: int
    figure: Figure
    others: tuple[Figure, ...] = ()


def unsteady(spread: float | None) -> bool:
    """Half of a run's block times lie further apart than a fifth of their median."""
    return spread is not None and spread > UNSTEADY_SPREAD


def figures(repeats: Iterable[Repeat]) -> list[Figure]:
    """One figure for each hardware and set-up, fastest first. Real and generated data stay apart:
    the data is part of the set-up."""
    groups: defaultdict[tuple[str, Setup], list[Repeat]] = defaultdict(list)
    for repeat in repeats:
        groups[repeat.hardware_slug, repeat.setup].append(repeat)
    found = [_figure(group) for group in groups.values()]
    return sorted(found, key=lambda f: (f.ns_per_sample, f.hardware_slug, f.setup))


def by_hardware(found: Sequence[Figure]) -> list[RankedRow]:
    """Each hardware once, in its fastest set-up; measured on real data where there is any."""
    own: defaultdict[str, list[Figure]] = defaultdict(list)
    for figure in found:
        own[figure.hardware_slug].append(figure)
    best = [sorted(group, key=_real_first) for group in own.values()]
    best.sort(key=lambda group: (group[0].ns_per_sample, group[0].hardware_slug))
    return [RankedRow(rank, group[0], tuple(group[1:])) for rank, group in enumerate(best, 1)]


def by_setup(found: Sequence[Figure]) -> list[RankedRow]:
    """Every figure a place of its own."""
    return [RankedRow(rank, figure) for rank, figure in enumerate(found, 1)]


Kind = verdicts.Kind


@dataclass(frozen=True)
class Comparison:
    """How much faster ``a`` is than ``b``: times b / times a, with its interval where one can be
    stated. ``n_a`` and ``n_b`` count independent values: repeats of one machine, or machines."""

    speed_up: float
    low: float | None
    high: float | None
    n_a: int
    n_b: int
    unit: Literal["repeats", "machines"]
    kind: Kind
    verdict: str


def compare(a: Sequence[Repeat], b: Sequence[Repeat]) -> Comparison:
    """Compare two sides that ran the same set-up, each with at least one repeat.

    The values are repeats where both sides are one machine each, else machines: repeats on one
    machine say nothing about how machines differ. See :mod:`bench_protocol.verdicts`.
    """
    machines = max(len({r.machine_id for r in side}) for side in (a, b))
    unit: Literal["repeats", "machines"] = "repeats" if machines == 1 else "machines"
    times_a, times_b = _values(a, unit), _values(b, unit)
    found = verdicts.compare(times_a, times_b, unit)
    few = found.kind == "too_few_runs"
    speed_up = _of_owners(b) / _of_owners(a) if few else found.speed_up
    counts = len(times_a), len(times_b)
    return Comparison(speed_up, found.low, found.high, *counts, unit, found.kind, found.words)


def _values(side: Sequence[Repeat], unit: str) -> list[float]:
    if unit == "repeats":
        return [repeat.ns_per_sample for repeat in side]
    machines: defaultdict[str, list[float]] = defaultdict(list)
    for repeat in side:
        machines[repeat.machine_id].append(repeat.ns_per_sample)
    return [median(times) for times in machines.values()]


def _of_owners(group: Sequence[Repeat]) -> float:
    """Median over owners of medians over machines of medians over repeats, ns per sample."""
    tree: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for repeat in group:
        tree[repeat.owner][repeat.machine_id].append(repeat.ns_per_sample)
    return median(median(median(times) for times in own.values()) for own in tree.values())


def _figure(group: list[Repeat]) -> Figure:
    first = min(group, key=lambda repeat: repeat.result_id)
    value = _of_owners(group)
    times = [repeat.ns_per_sample for repeat in group]
    nearest = min(group, key=lambda r: (abs(r.ns_per_sample - value), r.result_id))
    return Figure(
        hardware=first.hardware,
        hardware_slug=first.hardware_slug,
        setup=first.setup,
        ns_per_sample=value,
        fastest_ns_per_sample=min(times),
        slowest_ns_per_sample=max(times),
        spread=median(repeat.spread for repeat in group),
        repeats=len(group),
        machines=len({repeat.machine_id for repeat in group}),
        owners=len({repeat.owner for repeat in group}),
        trust_level=min(repeat.trust_level for repeat in group),
        result_id=nearest.result_id,
    )


def _real_first(figure: Figure) -> tuple[bool, float]:
    return (figure.setup.data != "real", figure.ns_per_sample)
