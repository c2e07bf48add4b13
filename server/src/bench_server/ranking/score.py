"""The score: one number for a hardware, the same on its page, on the home page and in a comparison.

Version 3 is each hardware at its best: for each workload of the catalogue, at its batch size in
float32, the place that it has on that board (:func:`.compare.ranked`). The score is the geometric
mean (Fleming and Wallace, How not to lie with statistics, 1986) of the speed-ups over the
baseline's places, over all workloads that both have.

Version 2 compared equal recipes in three workloads, version 1 any recipe with a published figure.
Neither agreed with the boards (docs/adr/0012).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from bench_protocol.catalogue import CATALOGUE

from .compare import Comparison, compare, ranked, section
from .figures import TIERS, Figure, Tier

VERSION = 3
PRECISION = "float32"


@dataclass(frozen=True)
class Overall:
    """The geometric mean of speed-ups, with bounds at 95 % or more, or None where one of them has
    none."""

    speed_up: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Score:
    """``value``: how many times as fast as the baseline, the geometric mean over the ``covered``
    workloads that both have, of ``terms`` that the baseline has; null without any. ``low`` and
    ``high`` bound it with 95 % confidence or more; null where a workload has too few runs.
    ``missing`` names the baseline's workloads that this hardware lacks. ``tier``: the least
    evidence among the places; null for published figures."""

    version: int
    value: float | None
    low: float | None
    high: float | None
    baseline: str | None
    baseline_slug: str | None
    tier: Tier | None
    covered: int
    terms: int
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether it has a rank: all workloads, measured here, none provisional."""
        return not self.missing and self.tier in TIERS[:-1]


def best_of(figures: Iterable[Figure]) -> dict[str, Figure]:
    """A hardware's or machine's places by workload, in the catalogue's order, from all of its
    figures."""
    fastest_first = sorted(figures, key=lambda figure: (figure.ns_per_sample, figure.id))
    best = {}
    for workload in CATALOGUE:
        usual = [
            figure
            for figure in fastest_first
            if figure.subject.workload_digest == workload.digest
            and figure.setup.batch_size == workload.batch_size
            and figure.setup.precision == PRECISION
        ]
        if usual:
            best[workload.name] = ranked(usual, one_each=True)[0].figure
    return best


def score(best: Mapping[str, Figure], baseline: Mapping[str, Figure]) -> Score:
    """Score a hardware.

    Args:
        best, baseline: places by workload, of the hardware and of the baseline.
    """
    both = [workload for workload in baseline if workload in best]
    found = overall([compare(best[workload], baseline[workload]) for workload in both])
    first = next(iter(baseline.values()), None)
    places = [best[workload] for workload in both] or [*best.values()]
    itself = first is not None and {f.id for f in places} <= {f.id for f in baseline.values()}
    return Score(
        VERSION,
        found.speed_up if found else None,
        None if itself or not found else found.low,
        None if itself or not found else found.high,
        first.hardware if first else None,
        first.hardware_slug if first else None,
        _least(places),
        len(both),
        len(baseline),
        tuple(workload for workload in baseline if workload not in best),
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
    lows = [one.low for one in found if one.low is not None]
    highs = [one.high for one in found if one.high is not None]
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
