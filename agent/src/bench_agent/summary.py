"""What a run gave, for the person who started it: a table, and what to do next."""

from statistics import median

from rich import box
from rich.table import Table

from bench_protocol import format as people
from bench_protocol.catalogue import workload_named
from bench_protocol.figures import epoch_seconds, samples_per_second, within_run_spread
from bench_protocol.matrix import Cell
from bench_protocol.result import Failed, Measured, Measurement, Result

from .display import one_line
from .home import Home
from .run import RunSummary

# Above this, other work was going on beside the measurement, or the machine was throttling.
UNSTEADY = 0.2


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
    lines = []
    measured = [result for result in summary.results if not isinstance(result.outcome, Failed)]
    unsteady = sum(_spread([result]) > UNSTEADY for result in measured)
    if unsteady:
        lines.append(
            f"Unsteady: {unsteady} of {len(measured)} measurements (spread above "
            f"{people.percent(UNSTEADY)}). Other work was going on: measure again when idle."
        )
    kept = len(summary.results)
    lines.append(f"{kept} results kept in {home.outbox}, {summary.sent} sent now.")
    if summary.waiting:
        lines.append(f"{summary.waiting} wait: bench-agent submit --server URL sends them.")
    if summary.interrupted:
        lines.append("Interrupted: bench-agent run --resume goes on with what is missing.")
    return lines


def _measurements(repeats: list[Result]) -> list[Measurement]:
    outcomes = (repeat.outcome for repeat in repeats)
    return [outcome.measurement for outcome in outcomes if isinstance(outcome, Measured)]


def _spread(repeats: list[Result]) -> float:
    return median(within_run_spread(measurement) for measurement in _measurements(repeats))


def _median_rate(repeats: list[Result]) -> float | None:
    batch_size = repeats[0].cell.batch_size
    rates = [samples_per_second(m, batch_size) for m in _measurements(repeats)]
    return median(rates) if rates else None
