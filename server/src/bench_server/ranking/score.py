"""The score: one number for a hardware, the same on its page, on the home page and in a comparison.

Each hardware counts at its best: for each workload of the catalogue, at its batch size in
float32, the fastest set-up of the best evidence, on both sides of one kind: the same kind of data
and of timing (:func:`alike`). The score is the geometric mean (Fleming and Wallace, How not to lie
with statistics, 1986) of the speed-ups over the baseline, over all workloads in which both have a
kind in common.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from bench_protocol.catalogue.catalogue import CATALOGUE

from .compare import Comparison, compare, section
from .figures import Figure
from .owners import TIERS, Tier

VERSION = 1
PRECISION = "float32"
# Kind of data and of timing.
Kind = tuple[str, str]
Bests = dict[Kind, Figure]


@dataclass(frozen=True)
class Overall:
    """The geometric mean of speed-ups, with bounds at 95 % or more, or None where one of them has
    none."""

    speed_up: float
    speed_up_low: float | None
    speed_up_high: float | None


@dataclass(frozen=True)
class Score:
    """A hardware's score: the geometric mean of its speed-ups over the baseline's, with bounds."""

    version: int
    value: float | None
    value_low: float | None
    value_high: float | None
    baseline: str | None
    baseline_slug: str | None
    tier: Tier | None
    covered: int
    terms: int
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether it has a rank: all workloads, measured here, none provisional."""
        return not self.missing and self.tier in ("confirmed", "several")


def kind_of(figure: Figure) -> Kind:
    return figure.setup.data, figure.setup.timing


def bests(figures: Iterable[Figure]) -> Bests:
    """The best figure of each kind: of its best tier the fastest."""
    found: Bests = {}
    for figure in sorted(figures, key=lambda f: (section(f), f.ns_per_sample, f.id)):
        found.setdefault(kind_of(figure), figure)
    return found


def best_of(figures: Iterable[Figure]) -> dict[str, Bests]:
    """A hardware's or machine's best figures by workload, in the catalogue's order, at the
    workload's batch size in float32, from all of its figures."""
    groups: defaultdict[tuple[str, int], list[Figure]] = defaultdict(list)
    for figure in figures:
        if figure.setup.precision == PRECISION:
            groups[figure.subject.workload_digest, figure.setup.batch_size].append(figure)
    return {
        workload.name: bests(groups[key])
        for workload in CATALOGUE
        if (key := (workload.digest, workload.batch_size)) in groups
    }


def place(best: Bests) -> Figure:
    """The figure that a board shows (:func:`.compare.ranked`): of the best tier, then on real data,
    then of a long timing."""
    return min(best.values(), key=lambda figure: (section(figure), *_last(kind_of(figure))))


def alike(sides: Sequence[Bests]) -> list[Figure] | None:
    """One figure a side, all of one kind: of the kinds that all sides have, the one with most
    evidence on its weakest side, then as a place prefers them; None without such a kind."""
    common = [kind for kind in sides[0] if all(kind in side for side in sides)]
    if not common:
        return None
    best = min(common, key=lambda kind: (max(section(side[kind]) for side in sides), *_last(kind)))
    return [side[best] for side in sides]


def _last(kind: Kind) -> tuple[bool, bool]:
    data, timing = kind
    return data != "real", timing != "long"


def score(best: Mapping[str, Bests], baseline: Mapping[str, Bests]) -> Score:
    """Score a hardware, from :func:`best_of` its figures and those of the baseline."""
    pairs = [
        (workload, pair)
        for workload, base in baseline.items()
        if workload in best and (pair := alike([best[workload], base]))
    ]
    found = overall([compare(own, base) for _, (own, base) in pairs])
    itself = all(own.id == base.id for _, (own, base) in pairs)
    covered = {workload for workload, _ in pairs}
    first = next((place(one) for one in baseline.values()), None)
    return Score(
        VERSION,
        found.speed_up if found else None,
        None if itself or not found else found.speed_up_low,
        None if itself or not found else found.speed_up_high,
        first.hardware if first else None,
        first.hardware_slug if first else None,
        _least([own for _, (own, _) in pairs]),
        len(covered),
        len(baseline),
        tuple(workload for workload in baseline if workload not in covered),
    )


def overall(found: Sequence[Comparison]) -> Overall | None:
    """The geometric mean of speed-ups; None without any.

    The bounds are the geometric means of theirs. The same machines are in all of them, so their
    errors are not independent; but the standard error of a mean is at most the mean of the standard
    errors, however they depend on each other (Minkowski's inequality). So the bounds hold at least
    as often as those of each speed-up.
    """
    if not found:
        return None
    lows = [one.speed_up_low for one in found if one.speed_up_low is not None]
    highs = [one.speed_up_high for one in found if one.speed_up_high is not None]
    bounded = len(lows) == len(found)
    return Overall(
        geometric_mean(one.speed_up for one in found),
        geometric_mean(lows) if bounded else None,
        geometric_mean(highs) if bounded else None,
    )


def _least(places: Sequence[Figure]) -> Tier | None:
    if not places or any(figure.tier is None for figure in places):
        return None
    return TIERS[max(map(section, places))]
