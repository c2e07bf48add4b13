"""What a run gave, for the person who started it: a table, and what to do next."""

from statistics import median

from rich import box
from rich.table import Table

from bench_protocol import doubts
from bench_protocol import format as people
from bench_protocol.accuracy import judge
from bench_protocol.catalogue import workload_named
from bench_protocol.figures import epoch_seconds, samples_per_second, within_run_spread
from bench_protocol.matrix import Cell
from bench_protocol.result import Measured, Measurement, Result, Warn

from .display import one_line
from .home import Home
from .run import RunSummary


def summary_table(results: list[Result]) -> Table:
    """One row a cell, medians over its repeats: rate, epoch, spread, and how it beats naive."""
    table = Table(
        title="Training speed of this machine",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for heading in ("workload", "on", "recipe"):
        table.add_column(heading, no_wrap=True)
    for heading in ("samples/s", "epoch", "spread", "vs naive"):
        table.add_column(heading, justify="right", no_wrap=True)
    cells: dict[Cell, list[Result]] = {}
    for result in results:
        cells.setdefault(result.cell, []).append(result)
    rates = {cell: _median_rate(repeats) for cell, repeats in cells.items()}
    for cell, repeats in cells.items():
        workload = f"{cell.workload}, {cell.batch_size}"
        names = (workload, f"{cell.framework} {cell.device}", cell.recipe)
        rate = rates[cell]
        if rate is None:
            table.add_row(*names, one_line(repeats[-1]), "", "", "")
            continue
        naive = rates.get(cell.model_copy(update={"recipe": "naive"}))
        table.add_row(
            *names,
            people.rate(rate),
            people.seconds(epoch_seconds(workload_named(cell.workload), cell.batch_size, rate)),
            people.percent(_spread(repeats)),
            people.ratio(rate / naive) if naive and cell.recipe != "naive" else "",
        )
    return table


def closing_lines(summary: RunSummary, home: Home) -> list[str]:
    """What the figures are worth, where the results are, and how to go on."""
    lines = accuracy_lines(summary.results) + doubt_lines(summary.results)
    kept = len(summary.results)
    lines.append(f"{kept} results kept in {home.outbox}, {summary.sent} sent now.")
    if summary.waiting:
        lines.append(f"{summary.waiting} wait: bench-agent submit --server URL sends them.")
    if summary.interrupted:
        lines.append("Interrupted: bench-agent run --resume goes on with what is missing.")
    return lines


def accuracy_lines(results: list[Result]) -> list[str]:
    """One line an accuracy pass: what was reached, and what that is held against."""
    lines = []
    for result in results:
        workload, measurement = workload_named(result.cell.workload), result.measurement
        evaluation = measurement and measurement.evaluation
        if measurement and evaluation and evaluation.epochs == workload.epochs:
            sentence = judge(workload, result.cell.data, measurement).sentence
            lines.append(f"{result.cell}: {sentence}")
    return lines


def doubt_lines(results: list[Result]) -> list[str]:
    """One line a kind of doubt: how many measurements have it, and the first of them."""
    found: dict[str, list[tuple[Cell, Warn]]] = {}
    for result in results:
        for warn in result.warnings:
            found.setdefault(warn.code, []).append((result.cell, warn))
    return [
        f"Warning, {len(own)} of {len(results)} measurements: {doubts.words(own[0][1])}"
        + (f" ({own[0][0]}{', and others' if len(own) > 1 else ''})")
        for own in found.values()
    ]


def _measurements(repeats: list[Result]) -> list[Measurement]:
    outcomes = (repeat.outcome for repeat in repeats)
    return [outcome.measurement for outcome in outcomes if isinstance(outcome, Measured)]


def _spread(repeats: list[Result]) -> float:
    return median(within_run_spread(measurement) for measurement in _measurements(repeats))


def _median_rate(repeats: list[Result]) -> float | None:
    batch_size = repeats[0].cell.batch_size
    rates = [samples_per_second(m, batch_size) for m in _measurements(repeats)]
    return median(rates) if rates else None
