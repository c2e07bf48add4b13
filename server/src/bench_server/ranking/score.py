"""The score: one number for a hardware, or the list of workloads that it lacks.

Version 1 is frozen: the geometric mean (Fleming and Wallace, How not to lie with statistics, 1986)
of speed-ups over the workloads below, each at its batch size in float32 on real data, in the
hardware's fastest framework and recipe that counts, against the published Intel Core i7-8700. A
change of the list or of the baseline is a new version.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import geometric_mean
from typing import NamedTuple

from .figures import Figure

VERSION = 1


class Term(NamedTuple):
    """A workload of the score, and the baseline's time for one of its samples."""

    workload: str
    batch_size: int
    baseline_ns_per_sample: float


# Seconds of an epoch of the published i7-8700 (data/published.json) over its training samples.
TERMS: tuple[Term, ...] = (
    Term("mnist-cnn", 64, 13.6e9 / 60_000),
    Term("fashion-cnn", 64, 25.5e9 / 60_000),
    Term("cifar100-vgg16", 128, 863e9 / 50_000),
)


@dataclass(frozen=True)
class Score:
    """``value`` is null unless every term is covered; ``missing`` names the workloads that are
    not."""

    version: int
    value: float | None
    covered: int
    terms: int
    missing: tuple[str, ...]


def score(figures: Iterable[Figure]) -> Score:
    """Score one hardware from its figures; published ones do not count."""
    fastest: dict[str, float] = {}
    for figure in figures:
        setup, workload = figure.setup, figure.subject.workload
        if figure.published or (setup.precision, setup.data) != ("float32", "real"):
            continue
        if (workload, setup.batch_size) in {(term.workload, term.batch_size) for term in TERMS}:
            best = fastest.get(workload, figure.ns_per_sample)
            fastest[workload] = min(best, figure.ns_per_sample)
    missing = tuple(term.workload for term in TERMS if term.workload not in fastest)
    ratios = [
        term.baseline_ns_per_sample / fastest[term.workload]
        for term in TERMS
        if term.workload in fastest
    ]
    value = None if missing else geometric_mean(ratios)
    return Score(VERSION, value, len(ratios), len(TERMS), missing)
