"""Warnings about a measurement (:mod:`.doubts`) in words, and the worst of several."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from ..base import format as people
from .result import Warn

Numbers = Mapping[str, float]
Owner = TypeVar("Owner")


def words(warn: Warn) -> str:
    """A warning as a sentence without a full stop; unknown codes are spelt out."""
    say = WORDS.get(warn.code)
    try:
        if say:
            return say(_numbers(warn))
    except KeyError:  # another version's figures
        pass
    figures = ", ".join(f"{_spelt(name)} {value}" for name, value in warn.figures.items())
    return _spelt(warn.code) + (f" ({figures})" if figures else "")


def weight(warn: Warn) -> float:
    """Severity among warnings of one code: larger is worse; 0 without a figure for it."""
    weigh = WEIGHTS.get(warn.code)
    try:
        return weigh(_numbers(warn)) if weigh else 0.0
    except (KeyError, ValueError):  # another version's figures
        return 0.0


def worst_of_each(warnings: Iterable[tuple[Owner, Warn]]) -> list[tuple[int, Owner, Warn]]:
    """For each code, in order of appearance: count, owner of the worst, the worst warning."""
    by_code: dict[str, list[tuple[Owner, Warn]]] = {}
    for owner, warn in warnings:
        by_code.setdefault(warn.code, []).append((owner, warn))
    return [
        (len(warns), *max(warns, key=lambda owned: weight(owned[1]))) for warns in by_code.values()
    ]


def _busy_words(figures: Numbers) -> str:
    parts = {
        "cpu_percent": "the processor was {:.0f} % busy",
        "gpu_percent": "the GPU was {:.0f} % busy",
        "gpu_processes": "{:.0f} other programs computed on the GPU",
    }
    phrases = [say.format(figures[name]) for name, say in parts.items() if name in figures]
    return f"{' and '.join(phrases)} before the start"


WORDS: dict[str, Callable[[Numbers], str]] = {
    "few_blocks": lambda f: (
        f"only {f['blocks']:.0f} {'block was' if f['blocks'] == 1 else 'blocks were'} timed"
    ),
    "outliers": lambda f: (
        f"{f['outliers']:.0f} of {f['blocks']:.0f} blocks "
        f"lie{'s' * (f['outliers'] == 1)} far from the others, "
        f"the farthest at {people.ratio(f['worst_over_median'])} the median"
    ),
    "drift": lambda f: (
        f"blocks got {people.percent(abs(f['change']))} "
        f"{'slower' if f['change'] > 0 else 'faster'} during the timing"
    ),
    "slow_first_blocks": lambda f: (
        f"the first block took {people.ratio(f['first_over_median'])} the median of the others"
    ),
    "unsteady": lambda f: f"block times spread by {people.percent(f['spread'])}",
    "throttled": lambda f: (
        f"slowed down by heat or its power limit in {people.percent(f['share_of_samples'])} "
        "of the samples"
    ),
    "other_load": lambda f: (
        f"other programs kept {f['busy_cores']:.1f} of {f['cores']:.0f} cores busy"
    ),
    "thermal_pressure": lambda f: (
        f"the system reported heat in {people.percent(f['share_of_samples'])} of the samples"
    ),
    "cpu_throttled": lambda f: f"heat slowed processor cores down {f['times']:.0f} times",
    "not_idle": _busy_words,
    "hot": lambda f: "the machine was hot before the start",
    "on_battery": lambda f: "the machine ran on battery",
    "low_power_mode": lambda f: "low-power mode was on",
    "slept": lambda f: f"the machine slept for {people.rough(f['seconds'])} during the repeat",
    "clock_set": lambda f: (
        f"the wall clock was set {'forward' if f['seconds'] > 0 else 'back'} "
        f"by {people.rough(abs(f['seconds']))} during the repeat"
    ),
}


WEIGHTS: dict[str, Callable[[Numbers], float]] = {
    "few_blocks": lambda f: -f["blocks"],
    "outliers": lambda f: abs(math.log(f["worst_over_median"])),
    "drift": lambda f: abs(f["change"]),
    "slow_first_blocks": lambda f: f["first_over_median"],
    "unsteady": lambda f: f["spread"],
    "throttled": lambda f: f["share_of_samples"],
    "other_load": lambda f: f["busy_cores"],
    "thermal_pressure": lambda f: f["share_of_samples"],
    "cpu_throttled": lambda f: f["times"],
    "not_idle": lambda f: max(f.values(), default=0.0),
    "slept": lambda f: f["seconds"],
    "clock_set": lambda f: abs(f["seconds"]),
}


def _numbers(warn: Warn) -> dict[str, float]:
    return {
        name: float(value) for name, value in warn.figures.items() if isinstance(value, int | float)
    }


def _spelt(name: str) -> str:
    return name.replace("_", " ")
