"""Remarks of a report: accuracies, deviations from a published run, warnings with their fixes."""

from collections.abc import Iterable, Mapping, Sequence

from bench_protocol.base.format import plural
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import caveat
from bench_protocol.payload import doubt_text
from bench_protocol.payload.result import Result, Warn
from bench_protocol.training.accuracy import judge

from ...plan.presets import corrections
from ..names import short_name

LONGER = "run again with --budget-seconds 30"
QUIETER = "close other programs and run again"
COOLER = "let the machine cool: --wait-seconds 300 waits for it"
# What helps against each kind of warning (bench_protocol.payload.doubts.Code).
FIXES: Mapping[str, str] = {
    "few_blocks": LONGER,
    "outliers": QUIETER,
    "drift": LONGER,
    "slow_first_blocks": LONGER,
    "unsteady": QUIETER,
    "throttled": COOLER,
    "thermal_pressure": COOLER,
    "cpu_throttled": COOLER,
    "other_load": QUIETER,
    "not_idle": QUIETER,
    "hot": COOLER,
    "on_battery": "connect the charger",
    "low_power_mode": "switch low-power mode off",
    "slept": "keep the machine awake",
    "clock_set": "set the clock before the run",
}


def accuracy_lines(results: Sequence[Result]) -> list[str]:
    """One line for each accuracy pass: the accuracy reached, and its band."""
    lines = []
    for result in results:
        workload, measurement = workload_named(result.cell.workload), result.measurement
        evaluation = measurement and measurement.evaluation
        if measurement and evaluation and evaluation.epochs == workload.epochs:
            sentence = judge(workload, measurement).sentence
            lines.append(f"{short_name(result.cell)}: {sentence}")
    return lines


def published_lines(preset: str | None) -> list[str]:
    """One line for each difference between a ``--like`` run and its source."""
    return [f"otherwise than published: {correction}" for correction in corrections(preset)]


def caveat_lines(results: Sequence[Result]) -> list[str]:
    """What a reader must know of the recipes, each once."""
    cells = (result.cell for result in results)
    caveats = (caveat(cell.recipe, cell.device.kind) for cell in cells)
    return list(dict.fromkeys(line for line in caveats if line))


def doubt_lines(results: Sequence[Result]) -> list[str]:
    """One line for each kind of warning: how many measurements have it, the worst, and a fix."""
    warnings = [(short_name(r.cell), warn) for r in results for warn in r.warnings]
    return worst_lines(warnings, plural(len(results), "measurement"))


def worst_lines(warnings: Iterable[tuple[str, Warn]], of_all: str) -> list[str]:
    """Warnings of many measurements, each kind once: ``2 of 16 runs (the worst: B): block times
    spread by 31.0 %; fix: close other programs and run again``. The figures are the worst one's.

    Args:
        warnings: each with the name of its measurement.
    """
    lines = []
    for count, name, worst in doubt_text.worst_of_each(warnings):
        which = f"the worst: {name}" if count > 1 else name
        words = f"{count} of {of_all} ({which}): {doubt_text.words(worst)}"
        lines.append(f"{words}{fix_of(worst)}")
    return lines


def fix_of(warn: Warn) -> str:
    """``; fix: connect the charger``; empty for an unknown kind."""
    fix = FIXES.get(warn.code)
    return f"; fix: {fix}" if fix else ""
