"""What a person sees of a run: a live bar at a terminal, plain lines elsewhere, then a table."""

from statistics import median

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from bench_protocol import format as people
from bench_protocol.figures import samples_per_second, within_run_spread
from bench_protocol.matrix import Cell
from bench_protocol.result import Failed, Measured, Measurement, Result

from .client import Delivery, ServerUnreachable
from .job import BlockDone, PhaseBegan
from .plan import Plan, PlannedCell

PHASES = {
    "start": "starting",
    "import": "importing the framework",
    "data": "making data",
    "build": "building the model",
    "conformance": "checking the computation",
    "warm_up": "warming up",
    "timing": "timing",
    "evaluate": "evaluating",
}


class Display:
    """Reports a run on a console; a context manager, so that the live bar ends cleanly."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not self._live,
            transient=True,
        )
        self._all: TaskID | None = None
        self._cell: TaskID | None = None
        self._plan: Plan | None = None
        self._current: PlannedCell | None = None
        self._seconds_done = 0.0
        self._count = 0

    def __enter__(self) -> "Display":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def planned(self, plan: Plan) -> None:
        self._plan = plan
        total = len(plan.cells) * plan.repeats
        left = people.rough(plan.estimate_seconds)
        self._console.print(f"{total} measurements, about {left}")
        self._all = self._progress.add_task(
            "run", total=plan.estimate_seconds, note=f"about {left} left"
        )
        self._cell = self._progress.add_task("", total=1.0, note="")

    def skipped(self, planned: PlannedCell) -> None:
        """Count a repeat that an earlier start of this run has measured."""
        self._count += 1
        self._seconds_done += planned.estimate_seconds

    def started(self, repeat: int, planned: PlannedCell) -> None:
        self._count += 1
        self._current = planned
        if self._cell is not None:
            self._progress.reset(self._cell, description=str(planned.cell), note="starting")

    def heard(self, message: PhaseBegan | BlockDone) -> None:
        if self._cell is None or self._all is None or self._current is None:
            return
        if isinstance(message, PhaseBegan):
            self._progress.update(self._cell, note=PHASES[message.phase])
            return
        done = min(1.0, message.share_done)
        self._progress.update(self._cell, completed=done, note=f"timing, {done:.0%}")
        self._show_left(self._seconds_done + done * self._current.estimate_seconds)

    def finished(self, result: Result) -> None:
        if self._current is None or self._plan is None:
            return
        self._seconds_done += self._current.estimate_seconds
        self._show_left(self._seconds_done)
        total = len(self._plan.cells) * self._plan.repeats
        self._console.print(
            f"[{self._count}/{total}] {result.cell}: {one_line(result)}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    def delivered(self, delivery: Delivery) -> None:
        if delivery.state == "refused":
            detail = delivery.answer.get("detail", "no reason given")
            self._console.print(
                f"the server refused a result: {detail}", markup=False, soft_wrap=True
            )

    def note(self, text: str) -> None:
        """Say something beside the progress."""
        self._console.print(text, markup=False, soft_wrap=True)

    def unreachable(self, error: ServerUnreachable) -> None:
        self._console.print(f"{error}; results wait in the outbox", markup=False, soft_wrap=True)

    def _show_left(self, seconds_done: float) -> None:
        if self._plan is None or self._all is None:
            return
        left = max(0.0, self._plan.estimate_seconds - seconds_done)
        self._progress.update(
            self._all, completed=seconds_done, note=f"about {people.rough(left)} left"
        )


def one_line(result: Result) -> str:
    """Outcome of a repeat in a few words."""
    if isinstance(result.outcome, Failed):
        return failure(result.outcome)
    rate = people.rate(samples_per_second(result.outcome.measurement, result.cell.batch_size))
    return f"{rate} samples/s"


def failure(failed: Failed) -> str:
    """A failure in a few words."""
    why = f" ({failed.exception_class})" if failed.exception_class else ""
    return f"{failed.kind.replace('_', ' ')} while {PHASES[failed.phase]}{why}"


def summary_table(results: list[Result], epoch_samples: dict[str, int]) -> Table:
    """One row a cell, medians over its repeats: rate, epoch, spread, and how it beats naive.

    Args:
        epoch_samples: training samples of each workload by name.
    """
    table = Table(
        title="Training speed of this machine", title_justify="left", box=None, padding=(0, 1, 0, 0)
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
            people.seconds(epoch_samples[cell.workload] / rate),
            people.percent(max(within_run_spread(m) for m in _measurements(repeats))),
            people.ratio(rate / naive) if naive and cell.recipe != "naive" else "",
        )
    return table


def _measurements(repeats: list[Result]) -> list[Measurement]:
    outcomes = (repeat.outcome for repeat in repeats)
    return [outcome.measurement for outcome in outcomes if isinstance(outcome, Measured)]


def _median_rate(repeats: list[Result]) -> float | None:
    batch_size = repeats[0].cell.batch_size
    rates = [samples_per_second(m, batch_size) for m in _measurements(repeats)]
    return median(rates) if rates else None
