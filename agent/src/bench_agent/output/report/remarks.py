"""Remarks of a report: accuracies, deviations from a published run, warnings."""

from collections.abc import Sequence

from bench_protocol import doubt_text
from bench_protocol.accuracy import judge
from bench_protocol.catalogue import workload_named
from bench_protocol.matrix import caveat
from bench_protocol.result import Result

from ...plan.presets import corrections


def accuracy_lines(results: Sequence[Result]) -> list[str]:
    """One line for each accuracy pass: the accuracy reached, and its band."""
    lines = []
    for result in results:
        workload, measurement = workload_named(result.cell.workload), result.measurement
        evaluation = measurement and measurement.evaluation
        if measurement and evaluation and evaluation.epochs == workload.epochs:
            sentence = judge(workload, measurement).sentence
            lines.append(f"{result.cell}: {sentence}")
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
    """One line for each kind of warning: how many measurements have it, and the worst."""
    warnings = ((result.cell, warn) for result in results for warn in result.warnings)
    of_all = f"{len(results)} measurement{'s' * (len(results) != 1)}"
    lines = []
    for count, cell, worst in doubt_text.worst_of_each(warnings):
        which = f"{cell}{', the worst of them' if count > 1 else ''}"
        lines.append(f"Warning, {count} of {of_all}: {doubt_text.words(worst)} ({which})")
    return lines
