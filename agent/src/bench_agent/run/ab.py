"""A against B on this machine: pairs of short repeats in fresh processes that time in turns.

Both processes of a pair live at the same time, and one's block follows the other's while the other
is stopped (:mod:`..worker.lockstep`). A temporary slowdown of the machine affects both and cancels
in their ratio. Two processes of one cell may differ permanently, because of where their memory
lies, so there are several pairs and the verdict is over all of them. This shows a difference of a
few per cent even on a machine whose speed varies by more than that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import DEFAULT_SEED
from bench_protocol.payload import doubts
from bench_protocol.payload.figures import samples_per_second
from bench_protocol.payload.result import Failed, Measurement, Warn
from bench_protocol.statistics.comparison import SpeedVerdict, compare_pairs

from ..base.errors import UsageProblem
from ..base.messages import Answer, FormChoice, Job, Probe, Timing, WorkerEvent
from ..plan.estimates import MeasuredTimes
from ..plan.plan import PlannedCell, Selection, make_plan
from ..plan.presets import Preset
from ..worker.lockstep import Lockstep
from . import interpreters
from .worker_process import IN_TURNS, Limits, Listener, run_task, worker_command

PAIRS = 8  # an even number: each side begins as often
SECONDS = 3.0
DEFAULT_RECIPE = "tuned"
# Every run is timed for the whole budget, so that neither side stops earlier.
AB = Preset(name="ab", timing=Timing(target_spread=0.0, budget_seconds=SECONDS), repeats=PAIRS)
AXES = {
    "workload": "workloads",
    "framework": "frameworks",
    "device": "devices",
    "recipe": "recipes",
    "batch-size": "batch_sizes",
    "precision": "precisions",
    "data": "data",
}

RunJob = Callable[[Job, Path, Limits, Sequence[str], Listener], Answer]
ChooseForm = Callable[[PlannedCell, tuple[str, ...]], FormChoice | None]


@dataclass(frozen=True)
class Choice:
    """One side as the user chose it: filters of its cell, environment variables, interpreter, which
    is None where it follows from the cell, as in a run."""

    selection: Selection
    environ: Mapping[str, str]
    python: str | None = None

    @property
    def settings(self) -> tuple[str, ...]:
        """Sets the environment variables; goes before a worker's command."""
        return ("env", *(f"{name}={value}" for name, value in self.environ.items()))

    def command(self, python: str | None = None) -> tuple[str, ...]:
        """Starts a worker of this side. ``python``: the cell's, unless the user chose one."""
        return (*self.settings, *worker_command(self.python or python))


@dataclass(frozen=True)
class Side:
    """One side, ready to run: its planned cell and the command of its worker."""

    name: str
    planned: PlannedCell
    command: tuple[str, ...]

    @property
    def cell(self) -> Cell:
        return self.planned.cell


@dataclass(frozen=True)
class Pair:
    """Samples per second of one run of each side, and the warnings on each side's blocks."""

    a: float
    b: float
    doubts: tuple[tuple[str, Warn], ...] = ()


class RunFailed(Exception):
    def __init__(self, side: Side, failed: Failed, log: Path) -> None:
        super().__init__(side.name, failed, log)
        self.side, self.failed, self.log = side, failed, log


def choose(base: Selection, assignments: list[str], python: str | None = None) -> Choice:
    """A side from ``key=value`` texts: lower-case keys are axes of the cell, upper-case ones
    environment variables of the worker.

    Raises:
        UsageProblem: a text is neither, or there is no such interpreter with this bench-agent.
    """
    if python is not None:
        asked = interpreters.ask(python, interpreters.own())
        if asked.problem:
            fix = asked.hint or "--a-python and --b-python take an interpreter's path"
            raise UsageProblem(f"{python}: {asked.problem}; fix: {fix}")
    chosen: dict[str, Any] = {}
    environ: dict[str, str] = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        field = AXES.get(key.replace("_", "-"))
        if not equals or not (field or key.isupper()):
            axes = ", ".join(AXES)
            raise UsageProblem(
                f"{text!r} is not key=value with a key of: {axes}, "
                "or the name of an environment variable in upper case"
            )
        if field is None:
            environ[key] = value
        else:
            chosen[field] = _value(field, value)
    return Choice(replace(base, **chosen), environ, python)


def _value(field: str, text: str) -> str | tuple[str] | tuple[int]:
    """A filter that lets only one value through."""
    if field == "data":
        return text
    if field != "batch_sizes":
        return (text,)
    if not text.isdecimal() or int(text) < 1:
        raise UsageProblem(f"batch-size is a whole number from 1 on, not {text!r}")
    return (int(text),)


def side(
    name: str, choice: Choice, probes: Mapping[str, Probe], measured_times: MeasuredTimes
) -> Side:
    """The cell of a side. If no device is named, the first one that is not the CPU.

    Raises:
        UsageProblem: the choice names no cell, or several.
    """
    selection = choice.selection
    if not selection.recipes:
        selection = replace(selection, recipes=(DEFAULT_RECIPE,))
    plan = make_plan(AB, selection, probes, measured_times=measured_times)
    cells = sorted(plan.cells, key=lambda planned: planned.cell.device.kind == "cpu")
    if not selection.devices:
        cells = [planned for planned in cells if planned.cell.device == cells[0].cell.device]
    if not cells:
        why = "; ".join(f"{left.what}: {left.reason}" for left in plan.excluded)
        raise UsageProblem(f"side {name} cannot run here: {why}")
    if len(cells) > 1:
        raise UsageProblem(_several(name, [planned.cell for planned in cells]))
    planned = cells[0].model_copy(update={"python": choice.python or cells[0].python})
    return Side(name, planned, choice.command(planned.python))


def _several(name: str, cells: list[Cell]) -> str:
    """Name the options that choose one of these cells, and a command line with them."""
    main = ("workload", "framework")
    # Workloads differ in default batch size, so the option need not be named.
    alike = [cell for cell in cells if all(getattr(cell, a) == getattr(cells[0], a) for a in main)]

    def values_of(axis: str) -> list[str]:
        among = cells if axis in main else alike
        return list(dict.fromkeys(str(getattr(cell, axis.replace("-", "_"))) for cell in among))

    differing = {axis: values_of(axis) for axis in AXES}
    missing = {axis: values for axis, values in differing.items() if len(values) > 1}
    lists = " and ".join(f"one --{axis} ({', '.join(them)})" for axis, them in missing.items())
    named = {*main, *missing} - {"recipe"}
    options = " ".join(f"--{axis} {differing[axis][0]}" for axis in AXES if axis in named)
    return (
        f"side {name} must be one set-up, but {len(cells)} match; name {lists}, for example:\n"
        f"bench-agent ab {options} --a recipe=naive --b recipe=tuned"
    )


def pairs(
    a: Side,
    b: Side,
    count: int,
    logs: Path,
    listener: Callable[[WorkerEvent], None] = lambda message: None,
    run_job: RunJob = run_task,
    *,
    limits: Limits = IN_TURNS,
    choose_form: ChooseForm = lambda planned, command: None,
) -> Iterator[Pair]:
    """Run pairs and yield each when it is done, or raise ``RunFailed``.

    ``listener``: receives the messages of both workers, in a thread of each. ``choose_form``: the
    form of a side's step, chosen while nothing else runs.
    """

    forms = {side.name: choose_form(side.planned, side.command) for side in (a, b)}

    def ran(side: Side, number: int, turns: str) -> Measurement:
        log = logs / f"{number:03d}-{side.name}.log"
        planned = side.planned
        job = Job(
            workload=planned.workload,
            cell=planned.cell,
            seed=DEFAULT_SEED,
            timing=planned.timing,
            form=forms[side.name],
        )
        outcome = run_job(job, log, limits, (*side.command, "--turns", turns), listener).outcome
        if isinstance(outcome, Failed):
            raise RunFailed(side, outcome, log)
        return outcome.measurement

    for number in range(1, count + 1):
        # Going first may help or hurt, so the sides alternate.
        order = (a, b) if number % 2 else (b, a)
        # Lockstep's exit ends both workers, so an error in one leaves no other waiting.
        with ThreadPoolExecutor() as threads, Lockstep(2) as turns:
            running = {
                threads.submit(ran, side, number, turns.address): side.name for side in order
            }
            measurements = {running[done]: done.result() for done in as_completed(running)}
        speed_a, speed_b = (
            samples_per_second(measurements[side.name], side.cell.batch_size) for side in (a, b)
        )
        doubted = [
            (side.name, doubt)
            for side in (a, b)
            for doubt in doubts.of_blocks(measurements[side.name].blocks)
        ]
        yield Pair(speed_a, speed_b, tuple(doubted))


def compare_sides(done: list[Pair]) -> SpeedVerdict:
    return compare_pairs([1 / pair.b for pair in done], [1 / pair.a for pair in done])
