"""What a person sees of a run: a live bar at a terminal, plain lines elsewhere."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from bench_protocol import format as people
from bench_protocol.figures import samples_per_second
from bench_protocol.result import Failed, Result

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
        total = len(plan)
        left = people.rough(plan.estimate_seconds)
        self._console.print(f"{total} measurement{'s' * (total != 1)}, about {left}")
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
        total = len(self._plan)
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
