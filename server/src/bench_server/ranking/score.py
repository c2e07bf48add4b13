"""The score: one number for a hardware, or the list of workloads that it lacks.

Version 2 is the geometric mean (Fleming and Wallace, How not to lie with statistics, 1986) of
speed-ups over the workloads below, each at its batch size in float32 on real data. Both sides are
measured figures in the same recipe that are not provisional, each in the fastest framework with
such a figure. The baseline is a hardware of the same server, which its operator chooses
(``BENCH_SERVER_SCORE_BASELINE``). This project has none to freeze: docs/results.md holds figures of
one shared virtual machine on generated data, whose pace changes by a factor of two. Without a
baseline there is no value.

Version 1 compared any recipe with a published i7-8700 in the recipe ``naive``, whose seconds
contain validation and start-up, so that it mixed hardware and recipe.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import geometric_mean

from .figures import Figure

VERSION = 2
RECIPE = "tuned"
# Workloads, and the batch size of each.
TERMS = {"mnist-cnn": 64, "fashion-cnn": 64, "cifar100-vgg16": 128}


@dataclass(frozen=True)
class Score:
    """``baseline`` is the hardware that the score is relative to, null if the operator chose none.
    ``value`` is null unless there is one and every term is covered on both sides; ``missing`` names
    the workloads that this hardware does not cover. ``recipe`` is that of both sides."""

    version: int
    value: float | None
    baseline: str | None
    recipe: str
    covered: int
    terms: int
    missing: tuple[str, ...]


def score(figures: Iterable[Figure], baseline: Iterable[Figure] = ()) -> Score:
    """Score one hardware from its figures and those of the baseline."""
    baseline = tuple(baseline)
    times, base_times = _times(figures), _times(baseline)
    missing = tuple(workload for workload in TERMS if workload not in times)
    value = None
    if times.keys() == base_times.keys() == TERMS.keys():
        value = geometric_mean(base_times[workload] / times[workload] for workload in TERMS)
    return Score(
        VERSION,
        value,
        baseline[0].hardware if baseline else None,
        RECIPE,
        len(times),
        len(TERMS),
        missing,
    )


def _times(figures: Iterable[Figure]) -> dict[str, float]:
    """Nanoseconds a sample by workload, of the fastest framework that counts."""
    times: dict[str, float] = {}
    for figure in figures:
        workload = figure.subject.workload
        if _counts(figure) and figure.ns_per_sample < times.get(workload, float("inf")):
            times[workload] = figure.ns_per_sample
    return times


def _counts(figure: Figure) -> bool:
    setup = figure.setup
    return (
        figure.tier in ("confirmed", "several")
        and (setup.recipe, setup.precision, setup.data) == (RECIPE, "float32", "real")
        and TERMS.get(figure.subject.workload) == setup.batch_size
    )
