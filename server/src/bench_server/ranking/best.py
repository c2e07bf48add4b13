"""The best of a hardware's or machine's set-ups, and how far it may be too fast by chance.

The best is the fastest figure that is neither held (:mod:`.held`) nor disturbed; if all are
disturbed, the fastest that is not held. The fastest of several noisy figures is too fast on
average. The figure is not corrected for this: it is the time of a measured repeat, so that the
ratio of two rows is the ratio on every page. Instead its range reaches down by its *lead*: how much
faster it is than the mean of the set-ups that cannot be told apart from it. If these are equally
fast, their mean has no bias, and the lead is what chance added. See
docs/adr/0032-the-lead-of-the-best.md.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from . import ranges
from .figures import Figure


def candidates(figures: Iterable[Figure]) -> list[Figure]:
    """Those that may be the best, in the same order: not held, and undisturbed if any are."""
    free = [figure for figure in figures if not figure.held]
    return [figure for figure in free if not figure.disturbed] or free


def best_first(figures: Iterable[Figure]) -> list[Figure]:
    """The figures that are not held, from the best on; disturbed ones last."""
    free = (figure for figure in figures if not figure.held)
    return sorted(free, key=lambda one: (one.disturbed, one.ns_per_sample, one.id))


def best(figures: Iterable[Figure]) -> Figure | None:
    """The best of figures of one workload, with its lead; None if all are held."""
    ordered = best_first(figures)
    return first_of(ordered) if ordered else None


def first_of(ordered: Sequence[Figure]) -> Figure:
    """The best, with its lead, of figures that are :func:`best_first`."""
    return with_lead(ordered[0], candidates(ordered))


def with_lead(chosen: Figure, among: Sequence[Figure]) -> Figure:
    """The chosen one of these candidates, with its lead if it is the fastest of them."""
    leads = [math.log(one.ns_per_sample / chosen.ns_per_sample) for one in among]
    if chosen.published or min(leads, default=0.0) < 0:
        return chosen
    near = [
        lead
        for one, lead in zip(among, leads, strict=True)
        if not one.published and lead <= ranges.noise(chosen, one)
    ]
    return chosen._replace(lead=fmean(near) if near else 0.0)
