"""The figures of a report: those of each cell, derived from the results of a run."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median, median_low
from typing import Any, TypeVar

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.doubts import UNSTEADY_SPREAD, disturbances
from bench_protocol.payload.figures import epoch_seconds, samples_per_second, within_run_spread
from bench_protocol.payload.hardware import hardware_name
from bench_protocol.payload.machine import Machine
from bench_protocol.payload.result import Failed, Measured, Measurement, Result
from bench_protocol.statistics.comparison import LogSample, SpeedVerdict, compare, figure_interval

from ..documents import failure, unusual

Item = TypeVar("Item")
# The meaning of a question mark after a figure.
MARK_WORDS = (
    "? marks doubt: other work or heat slowed it, "
    f"or its blocks or processes differ by more than {UNSTEADY_SPREAD * 100:.0f} %"
)
# The figure of several processes of a cell, in words.
MEDIAN_WORDS = (
    "A figure is the median of its undisturbed processes, a ratio that of two figures. The 95 % "
    "intervals are within this run. Runs differ by more, so one run gives no verdict."
)


@dataclass(frozen=True)
class CellFigures:
    """One cell over its measured repeats that count, one or more: the undisturbed ones, or all
    without any, as on the server.

    ``samples_per_second``: the median repeat's. ``low`` and ``high`` bound the median over
    processes of this run with 95 % confidence; None with fewer than three. ``slowed``: something
    slowed down the machine during those that count; ``left_out``: the number of those that do not.
    ``typical``: the repeat in the middle; its blocks are drawn.
    """

    cell: Cell
    hardware: str
    rates: tuple[float, ...]
    samples_per_second: float
    low: float | None
    high: float | None
    epoch_seconds: float
    within_run_spread: float
    startup_seconds: float
    slowed: bool
    left_out: int
    typical: Measurement

    @property
    def place(self) -> str:
        return f"{self.cell.framework} {self.cell.device}"

    @property
    def task(self) -> tuple[str, int, str, str]:
        return self.cell.workload, self.cell.batch_size, self.cell.precision, self.cell.data

    @property
    def task_name(self) -> str:
        """``mnist-cnn, batch 64``."""
        return f"{self.cell.workload}, batch {self.cell.batch_size:,}{unusual(self.cell)}"

    @property
    def in_doubt(self) -> bool:
        """The machine was slowed down, or blocks or processes varied so much that the figure is
        unsure."""
        apart = max(self.rates) / min(self.rates) - 1
        return self.slowed or max(self.within_run_spread, apart) > UNSTEADY_SPREAD


@dataclass(frozen=True)
class Report:
    """A run: machine, cells in the order of measurement, cells without a figure and why.
    ``incomplete``: a sentence about what the run has not measured; empty once it ended.
    """

    run_id: str
    preset: str | None
    started: str
    machine: Machine
    hardware: str
    software: tuple[tuple[str, str], ...]
    cells: tuple[CellFigures, ...]
    failed: tuple[tuple[Cell, str], ...]
    results: tuple[Result, ...]
    incomplete: str = ""

    @property
    def data(self) -> str:
        return " and ".join(sorted({result.cell.data for result in self.results}))


def report_of(results: Sequence[Result]) -> Report:
    by_cell: dict[Cell, list[Result]] = {}
    # Sort by wall clock: the run's monotonic clock restarts with each challenge and resumption.
    results = sorted(results, key=lambda result: result.clocks.started)
    for result in results:
        by_cell.setdefault(result.cell, []).append(result)
    first = results[0]
    software = {n: v for r in results for n, v in r.environment.packages.items()}
    measured = {cell: repeats for cell, repeats in by_cell.items() if _measured(repeats)}
    cells = tuple(_figures(first.machine, cell, repeats) for cell, repeats in measured.items())
    return Report(
        run_id=first.run_id,
        preset=first.preset,
        started=first.clocks.run_started,
        machine=first.machine,
        hardware=_hardware(first.machine, by_cell),
        software=(("python", first.environment.python), *sorted(software.items())),
        cells=cells,
        failed=tuple((cell, _why(r)) for cell, r in by_cell.items() if cell not in measured),
        results=tuple(results),
    )


def marked(text: str, *cells: CellFigures) -> str:
    """A text about cells, with a question mark if one of them is in doubt."""
    return f"{text} ?" if any(figures.in_doubt for figures in cells) else text


def speed_up(figures: CellFigures, base: CellFigures) -> SpeedVerdict:
    """The ratio of a cell's figure to that of the base, with its interval within this run. The
    repeats of one run are not independent, so its verdict is not one about the cells."""
    times, base_times = ([1 / rate for rate in side.rates] for side in (figures, base))
    return compare(times, base_times)


def grouped(items: Iterable[Item], key: Callable[[Item], Any]) -> list[list[Item]]:
    """Group by key; groups are in the order of their first member."""
    groups: dict[Any, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def at_one_batch(cells: Iterable[CellFigures]) -> list[CellFigures]:
    """The cells at their workload's default batch size, or the smallest measured if that is
    missing."""
    selected = []
    for group in grouped(cells, lambda figures: figures.cell.workload):
        sizes = {figures.cell.batch_size for figures in group}
        standard = workload_named(group[0].cell.workload).batch_size
        chosen = standard if standard in sizes else min(sizes)
        selected += [figures for figures in group if figures.cell.batch_size == chosen]
    return selected


def fastest(cells: Iterable[CellFigures], key: Callable[[CellFigures], Any]) -> list[CellFigures]:
    """The fastest cell of each key, in the order of measurement."""
    return [max(group, key=lambda one: one.samples_per_second) for group in grouped(cells, key)]


def _measured(repeats: list[Result]) -> list[Measurement]:
    outcomes = (result.outcome for result in repeats)
    return [outcome.measurement for outcome in outcomes if isinstance(outcome, Measured)]


def _why(repeats: list[Result]) -> str:
    return next(failure(r.outcome) for r in repeats if isinstance(r.outcome, Failed))


def _hardware(machine: Machine, cells: Iterable[Cell]) -> str:
    """The names of the measured devices, accelerators first."""
    devices = {(cell.device.kind == "cpu", hardware_name(machine, cell.device)) for cell in cells}
    return " and ".join(name for _, name in sorted(devices))


def _figures(machine: Machine, cell: Cell, repeats: list[Result]) -> CellFigures:
    quiet = [repeat for repeat in repeats if not disturbances(repeat.warnings)]
    measured = _measured(quiet) or _measured(repeats)
    rates = [samples_per_second(measurement, cell.batch_size) for measurement in measured]
    rate = median_low(rates)
    low, high = figure_interval(rate, LogSample.of(rates)) or (None, None)
    typical = measured[rates.index(rate)]
    return CellFigures(
        cell=cell,
        hardware=hardware_name(machine, cell.device),
        rates=tuple(rates),
        samples_per_second=rate,
        low=low,
        high=high,
        epoch_seconds=epoch_seconds(workload_named(cell.workload), cell.batch_size, rate),
        within_run_spread=median(within_run_spread(measurement) for measurement in measured),
        startup_seconds=median(one.startup.total_ns / 1e9 for one in measured),
        slowed=not _measured(quiet),
        left_out=len(_measured(repeats)) - len(measured),
        typical=typical,
    )
