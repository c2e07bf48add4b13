"""Progress of a run: a table at a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bench_protocol.base import format as people
from bench_protocol.catalogue import speeds
from bench_protocol.payload.result import Failed, Result

from ..base.errors import ServerUnreachable
from ..base.messages import BlockDone, PhaseBegan, WorkerEvent
from ..plan.plan import Plan, PlannedCell
from ..remote.outbox import problem_text
from ..remote.submit import Delivery
from ..run.telemetry import Reading
from .console import FAILURE, WARNING, say
from .documents import PHASES, one_line, short_name
from .plan_table import estimate

# The sensors that are shown, if known.
SENSORS: dict[str, Callable[[float], str]] = {
    "load_average": lambda value: f"load {value:.1f}",
    "cpu_utilisation_percent": lambda value: f"processor {value:.0f} %",
    "cpu_temperature_celsius": lambda value: f"{value:.0f} °C",
    "cpu_power_watts": lambda value: f"{value:.0f} W",
    "gpu_utilisation_percent": lambda value: f"GPU {value:.0f} %",
    "gpu_temperature_celsius": lambda value: f"GPU {value:.0f} °C",
    "gpu_power_watts": lambda value: f"GPU {value:.0f} W",
}
# Weight of the plan's estimate against the run's own pace.
BELIEF_SECONDS = 60.0


@dataclass
class Progress:
    """Progress of a run. ``estimate_seconds``: of all repeats that were missing at its start.
    ``count``: repeats that began. ``rate``: of the last block, None outside the timing;
    ``phase_began``: the clock at the start of what the current repeat is doing."""

    total: int
    estimate_seconds: float
    began: float
    count: int = 0
    estimate_done: float = 0.0
    current: PlannedCell | None = None
    doing: str = ""
    phase_began: float = 0.0
    share_done: float = 0.0
    rate: float | None = None
    reading: Reading = field(default_factory=dict)

    def left_seconds(self, now: float) -> float:
        """The plan's estimate of the rest, corrected by the run's pace so far."""
        share = self.share_done * self.current.estimate_seconds if self.current else 0.0
        done = self.estimate_done + share
        left = max(0.0, self.estimate_seconds - done)
        return left * (now - self.began + BELIEF_SECONDS) / (done + BELIEF_SECONDS)


class LiveDisplay:
    """Shows a run on a console; a context manager, so that the live table ends cleanly."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._state: Progress | None = None
        self._live = Live(
            console=console, get_renderable=self._view, transient=True, refresh_per_second=4
        )

    def __enter__(self) -> "LiveDisplay":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def planned(self, plan: Plan, left: Sequence[PlannedCell]) -> None:
        """Print how much there is to measure; less than the plan if a run resumes."""
        seconds = sum(planned.estimate_seconds for planned in left)
        self._state = Progress(len(plan), seconds, self._clock())
        total = people.plural(len(plan), "measurement")
        what = total if len(left) == len(plan) else f"{len(left)} of {total} left"
        self.note(f"{what}, {estimate(left, seconds)}")

    def skipped(self, planned: PlannedCell) -> None:
        """Count a repeat that this run had already measured before it was resumed."""
        if self._state:
            self._state.count += 1

    def started(self, repeat: int, planned: PlannedCell) -> None:
        if self._state:
            self._state.count += 1
            self._state.current = planned
            self._state.doing, self._state.phase_began = PHASES["start"], self._clock()

    def heard(self, message: WorkerEvent) -> None:
        if not (self._state and self._state.current):
            return
        if isinstance(message, PhaseBegan):
            self._state.doing, self._state.rate = PHASES[message.phase], None
            self._state.phase_began = self._clock()
            if message.phase == "import":  # a repeat that is measured again begins at zero
                self._state.share_done = 0.0
        elif isinstance(message, BlockDone):
            samples = message.steps * self._state.current.cell.batch_size
            self._state.rate = samples * 1e9 / message.duration_ns
            self._state.share_done = min(1.0, message.share_done)

    def sensed(self, reading: Reading) -> None:
        if self._state:
            self._state.reading = reading

    def finished(self, result: Result) -> None:
        state = self._state
        if not (state and state.current):
            return
        state.estimate_done += state.current.estimate_seconds
        state.current, state.share_done, state.rate = None, 0.0, None
        doubtful = f" ({', '.join(w.code.replace('_', ' ') for w in result.warnings)})"
        failed = isinstance(result.outcome, Failed)
        left = f"; about {people.rough(state.left_seconds(self._clock()))} left"
        self.note(
            f"[{state.count}/{state.total}] {short_name(result.cell)}: {one_line(result)}"
            f"{doubtful if result.warnings else ''}"
            f"{left if state.count < state.total and not self._console.is_terminal else ''}",
            FAILURE if failed else WARNING if result.warnings else "",
        )

    def delivered(self, delivery: Delivery) -> None:
        if delivery.state == "refused":
            server, why = delivery.answer["server"], problem_text(delivery.answer)
            self.note(f"{server} refused a result: {why}", FAILURE)

    def note(self, text: str, style: str = "") -> None:
        say(self._console, text, style)

    def unreachable(self, error: ServerUnreachable) -> None:
        self.note(f"{error}; results stay pending in the outbox", WARNING)

    def _view(self) -> Table | Text:
        return view(self._state, self._clock()) if self._state else Text()


def view(state: Progress, now: float) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(width=20)
    table.add_column(ratio=1)
    elapsed, left = people.rough(now - state.began), people.rough(state.left_seconds(now))
    done = state.count - bool(state.current)
    table.add_row(
        "run",
        _bar(done + state.share_done, state.total),
        f"{done} of {state.total} done, {elapsed} gone, about {left} left",
    )
    if state.current:
        share = state.share_done if state.rate else 0.0
        progress = f", {people.rough(max(0.0, now - state.phase_began))}"
        if state.rate:
            speed = speeds.words(state.rate, state.current.cell.workload)
            progress = f" {people.percent(share, 0)}, {speed}"
        table.add_row("now", _bar(share, 1), short_name(state.current.cell))
        table.add_row("", "", f"{state.doing}{progress}")
    if sensors := sensor_words(state.reading):
        table.add_row("machine", "", sensors)
    return table


def sensor_words(reading: Reading) -> str:
    readings = ((words, reading.get(sensor)) for sensor, words in SENSORS.items())
    return ", ".join(words(value) for words, value in readings if value is not None)


def _bar(done: float, total: float) -> ProgressBar:
    return ProgressBar(total=max(total, 1e-9), completed=done, width=20)
