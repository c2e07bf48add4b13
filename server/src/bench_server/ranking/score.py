"""The score: one number for a hardware, the same on its page, on the home page and in a comparison.

Each hardware counts at its best: for each workload, at its batch size in float32, the best of its
set-ups (:mod:`.best`). The score is the geometric mean (Fleming and Wallace, How not to lie with
statistics, 1986) of the speed-ups over the baseline, over the scored workloads that both have. It
is complete if both have all of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from bench_protocol.catalogue.catalogue import CATALOGUE, REPRESENTATIVE

from .best import best
from .compare import Comparison, compare
from .figures import Figure
from .owners import BACKINGS, Backing

VERSION = 2
PRECISION = "float32"
SCORED = tuple(one.name for one in CATALOGUE if one.name in REPRESENTATIVE)
# The figures of one hardware or machine at its best, by workload.
Bests = dict[str, Figure]


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
    backing: Backing | None
    covered: int
    terms: int
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether it has a rank: all scored workloads, measured here."""
        return not self.missing and self.backing is not None


def best_of(figures: Iterable[Figure]) -> Bests:
    """A hardware's or machine's best figures by workload, in the catalogue's order, at the
    workload's batch size in float32, from all of its figures."""
    cells: defaultdict[tuple[str, int], list[Figure]] = defaultdict(list)
    for figure in figures:
        if figure.setup.precision == PRECISION:
            cells[figure.subject.workload_digest, figure.setup.batch_size].append(figure)
    return {
        workload.name: found
        for workload in CATALOGUE
        if (found := best(cells[workload.digest, workload.batch_size]))
    }


def with_leads(figures: Sequence[Figure]) -> list[Figure]:
    """All figures of a hardware or machine, those of :func:`best_of` with their leads: a set-up
    has the same range in a list as at the head of it."""
    bests = {one.id: one for one in best_of(figures).values()}
    return [bests.get(one.id, one) for one in figures]


def score(
    bests: Mapping[str, Figure],
    baseline: Mapping[str, Figure],
    scored: Sequence[str] = SCORED,
) -> Score:
    """Score a hardware, from :func:`best_of` its figures and those of the baseline."""
    both = [workload for workload in scored if workload in bests and workload in baseline]
    pairs = [(bests[workload], baseline[workload]) for workload in both]
    found = overall([compare(own, base) for own, base in pairs])
    itself = all(own.id == base.id for own, base in pairs)
    first = next(iter(baseline.values()), None)
    return Score(
        VERSION,
        found.speed_up if found else None,
        None if itself or not found else found.speed_up_low,
        None if itself or not found else found.speed_up_high,
        first.hardware if first else None,
        first.hardware_slug if first else None,
        _least([own for own, _ in pairs]),
        len(pairs),
        len(scored),
        tuple(workload for workload in scored if workload not in both),
    )


def overall(found: Sequence[Comparison]) -> Overall | None:
    """The geometric mean of speed-ups; None without any.

    The bounds are the geometric means of theirs. Their errors are not independent, but the standard
    error of a mean is at most the mean of the standard errors (Minkowski's inequality). So the
    bounds hold at least as often as those of each speed-up.
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


def _least(figures: Sequence[Figure]) -> Backing | None:
    backings = [figure.backing for figure in figures]
    if not backings or None in backings:
        return None
    return max(filter(None, backings), key=BACKINGS.index)
