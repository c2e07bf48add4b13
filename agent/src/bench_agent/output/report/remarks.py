"""A report in sentences: its finding, accuracies, deviations from a published run, warnings."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import geometric_mean

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell, caveat
from bench_protocol.payload import doubt_text
from bench_protocol.payload.doubts import DISTURBANCES, disturbances
from bench_protocol.payload.result import Result, Warn
from bench_protocol.training.accuracy import judge
from bench_protocol.trust.trust_levels import DEVICES

from ...plan.presets import corrections
from ..documents import short_name
from .figures import CellFigures, Report, at_one_batch, fastest, grouped, speed_up

LONGER = "run again with --budget-seconds 30"
QUIETER = "close other programs and run again"
COOLER = "let the machine cool: --wait-seconds 300 waits for it"
# Fixes for each kind of warning (bench_protocol.payload.doubts.Code).
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


def headline(report: Report) -> str:
    """The finding in at most 15 words, without a full stop: ``TensorFlow on the CPU, tuned, is
    fastest here: 7,274 samples/s on mnist-cnn``."""
    best = fastest(at_one_batch(report.cells), lambda figures: figures.cell.workload)
    if not best:
        return "No set-up could be measured"
    names = [_setup(figures.cell) for figures in best]
    winner = max(names, key=names.count)
    won = [figures for figures, name in zip(best, names, strict=True) if name == winner]
    doubtful = any(figures.in_doubt for figures in won)
    workload = won[0].cell.workload
    speed = speeds.words(won[0].samples_per_second, workload)
    if len(report.cells) == 1:
        return f"{winner}, trains {workload} at {'about ' * doubtful}{speed}"
    verb = "may be" if doubtful else "is"
    if len(won) > 1:
        return f"{winner}, {verb} fastest on {len(won)} of {len(best)} workloads here"
    return f"{winner}, {verb} fastest here: {speed} on {workload}"


def _setup(cell: Cell) -> str:
    framework = people.framework(cell.framework)
    kind, _, index = str(cell.device).partition(":")
    device = f"{DEVICES[cell.device.kind]}{index and f':{index}'}"
    half = "" if cell.precision == "float32" else f", {cell.precision}"
    return f"{framework} on {'the ' * (kind == 'cpu')}{device}, {cell.recipe}{half}"


def tuned_words(report: Report) -> str:
    """What tuned loops are worth: the geometric mean over every undisturbed pair, how many pairs
    these are, and how sure. Empty without pairs."""
    cells = {figures.cell for figures in report.cells}
    tuned = [
        figures
        for figures in report.cells
        if figures.cell.recipe == "tuned"
        and figures.cell.model_copy(update={"recipe": "naive"}) in cells
    ]
    used = [(figures, naive) for figures in tuned if (naive := naive_of(report, figures))]
    if not used:
        slowed = "Tuned is not compared with naive, because other work or heat slowed them."
        return slowed if tuned else ""
    worth = geometric_mean(speed_up(figures, naive).speed_up for figures, naive in used)
    doubted = sum(figures.in_doubt or naive.in_doubt for figures, naive in used)
    pairs = f"{len(used)} of {people.plural(len(tuned), 'pair')} undisturbed"
    doubts = f", {doubted} of them in doubt" if doubted else ""
    return f"Tuned {people.faster_than(worth)} naive ({pairs}{doubts})."


def naive_of(report: Report, figures: CellFigures) -> CellFigures | None:
    """The naive loop that a figure can be compared with; None where either was disturbed: the
    ratio would be that of the other programs."""
    naive = figures.cell.model_copy(update={"recipe": "naive"})
    base = next((other for other in report.cells if other.cell == naive), None)
    if base is None or base is figures or base.slowed or figures.slowed:
        return None
    return base


def accuracy_lines(results: Sequence[Result]) -> list[str]:
    """One line for each accuracy pass: the accuracy reached, and its band."""
    lines = []
    for result in results:
        workload, measurement = workload_named(result.cell.workload), result.measurement
        evaluation = measurement and measurement.evaluation
        if measurement and evaluation and evaluation.epochs == workload.epochs:
            sentence = judge(workload, measurement, result.cell.batch_size).sentence
            lines.append(f"{short_name(result.cell)}: {sentence}")
    return lines


def published_lines(preset: str | None) -> list[str]:
    return [f"otherwise than published: {correction}" for correction in corrections(preset)]


def doubts_of(report: Report, every: bool = True) -> list[str]:
    """What a reader must know of the recipes, each once; how many measurements are in no figure;
    and one line for each kind of warning: how many measurements have it, the worst, and a fix.
    Unless ``every``, one kind for each cause, and none of the cause of :func:`slowed_by`."""
    cells = (result.cell for result in report.results)
    caveats = (caveat(cell.framework, cell.recipe, cell.device.kind) for cell in cells)
    lines = list(dict.fromkeys(line for line in caveats if line))
    if count := sum(figures.left_out for figures in report.cells):
        verb = "measurements are" if count != 1 else "measurement is"
        lines.append(
            f"{count} disturbed {verb} in no figure: undisturbed ones of the same set-up are"
        )
    warnings = [(short_name(r.cell), warn) for r in report.results for warn in r.warnings]
    if not every:
        named = slowed_by(report)
        warnings = [
            (name, warn)
            for cause in grouped(warnings, lambda each: _cause(each[1]))
            for name, warn in cause
            if warn.code == _main_code(cause) and not (named and _cause(named) == _cause(warn))
        ]
    return lines + worst_lines(warnings, people.plural(len(report.results), "measurement"))


def slowed_by(report: Report) -> Warn | None:
    """The worst warning of what slowed most of the disturbed figures; None if none is disturbed."""
    slowed = {figures.cell for figures in report.cells if figures.slowed}
    found = [
        ("", warn)
        for result in report.results
        if result.cell in slowed
        for warn in disturbances(result.warnings)
    ]
    if not found:
        return None
    code = _main_code(found)
    return doubt_text.worst_of_each(each for each in found if each[1].code == code)[0][2]


def _cause(warn: Warn) -> str:
    return FIXES.get(warn.code, warn.code)


def _main_code(warnings: Sequence[tuple[str, Warn]]) -> str:
    """The kind that tells most of a cause: a disturbance, else the most frequent."""
    codes = [warn.code for _, warn in warnings]
    return max(codes, key=lambda code: (code in DISTURBANCES, codes.count(code)))


def worst_lines(warnings: Iterable[tuple[str, Warn]], of_all: str) -> list[str]:
    """Warnings of many measurements, each kind once: ``2 of 16 runs (the worst: B): block times
    spread by 31.0 %; fix: close other programs and run again``. The figures are the worst one's.
    ``warnings``: each with the name of its measurement."""
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


def comparison(figures: CellFigures, base: CellFigures) -> str:
    """A speed-up in words, with its interval within the run if there were enough processes, and
    the properties of the base that differ."""
    verdict, interval, names = speed_up(figures, base), "", []
    if verdict.low and verdict.high:
        interval = f" ({people.interval(verdict.low, verdict.high, people.times)} within this run)"
    if figures.cell.framework != base.cell.framework:
        names.append(base.cell.framework)
    if figures.cell.device != base.cell.device:
        names.append(f"on {base.cell.device}")
    if figures.cell.recipe != base.cell.recipe:
        names.append(base.cell.recipe)
    times = people.ratio(verdict.speed_up).rstrip("×")
    return f"{times} times as fast as {' '.join(names)}{interval}"
