"""A against B on this machine: short repeats in fresh processes that take turns.

What slows the machine for a while meets both of a pair, and falls out of their ratio; that each
pair begins with the other side takes care of what only ever meets the second. So a difference of a
few per cent can be seen on a machine whose pace moves by more than that.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_protocol.figures import samples_per_second
from bench_protocol.matrix import Cell
from bench_protocol.result import Failed
from bench_protocol.seeded import DEFAULT_SEED
from bench_protocol.verdicts import Verdict, compare_pairs

from .job import Answer, BlockDone, Job, PhaseBegan, Probe, Timing
from .paces import Paces
from .plan import PlannedCell, Selection, make_plan
from .presets import Preset
from .problems import UsageProblem
from .runner import Listener, run_job

PAIRS = 7
SECONDS = 3.0
DEFAULT_RECIPE = "tuned"
# Every run times for the whole budget: that one side settles sooner must not matter.
AB = Preset(
    name="ab",
    summary="one cell of each side",
    timing=Timing(block_seconds=0.1, target_spread=0.0, budget_seconds=SECONDS),
    repeats=PAIRS,
)
AXES = {
    "workload": "workloads",
    "framework": "frameworks",
    "device": "devices",
    "recipe": "recipes",
    "batch-size": "batch_sizes",
    "precision": "precisions",
    "data": "data",
}

RunJob = Callable[[Job, Path, Listener, tuple[str, ...]], Answer]


@dataclass(frozen=True)
class Choice:
    """One side as it was asked for: filters of its cell, environment variables, interpreter."""

    selection: Selection
    environ: Mapping[str, str]
    python: str

    @property
    def command(self) -> tuple[str, ...]:
        """Starts a worker of this side."""
        settings = [f"{name}={value}" for name, value in self.environ.items()]
        return ("env", *settings, self.python, "-m", "bench_agent.worker")


@dataclass(frozen=True)
class Side:
    """One side as it is run."""

    name: str
    planned: PlannedCell
    command: tuple[str, ...]

    @property
    def cell(self) -> Cell:
        return self.planned.cell


@dataclass(frozen=True)
class Pair:
    """Samples per second of one run of each side, one right after the other."""

    a: float
    b: float


class RunFailed(Exception):
    """A run gave no figure, so there is nothing to compare."""

    def __init__(self, side: Side, failed: Failed, log: Path) -> None:
        super().__init__(side.name, failed, log)
        self.side, self.failed, self.log = side, failed, log


def choose(base: Selection, assignments: list[str], python: str) -> Choice:
    """A side from ``key=value`` texts: lower-case keys are axes of the cell, upper-case ones
    environment variables of the worker.

    Raises:
        UsageProblem: a text is neither, or there is no such interpreter.
    """
    if shutil.which(python) is None:
        raise UsageProblem(f"no Python at {python}")
    chosen: dict[str, Any] = {}
    environ: dict[str, str] = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        field = AXES.get(key.replace("_", "-"))
        if not equals or not (field or key.isupper()):
            known = ", ".join(AXES)
            raise UsageProblem(
                f"{text!r} is not key=value with a key of: {known}, "
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


def side(name: str, choice: Choice, probes: Mapping[str, Probe], paces: Paces) -> Side:
    """The one cell a side stands for: where a device is not named, the first that is not the CPU.

    Args:
        probes: what the side's interpreter sees.

    Raises:
        UsageProblem: the choice names no cell, or several.
    """
    selection = choice.selection
    if not selection.recipes:
        selection = replace(selection, recipes=(DEFAULT_RECIPE,))
    plan = make_plan(AB, selection, probes, paces=paces)
    cells = sorted(plan.cells, key=lambda planned: planned.cell.device.kind == "cpu")
    if not selection.devices:
        cells = [planned for planned in cells if planned.cell.device == cells[0].cell.device]
    if not cells:
        why = "; ".join(f"{left.what}: {left.reason}" for left in plan.excluded)
        raise UsageProblem(f"side {name} cannot run here: {why}")
    if len(cells) > 1:
        found = ", ".join(str(planned.cell) for planned in cells[:3])
        raise UsageProblem(
            f"side {name} is one cell, but {len(cells)} fit: {found}...; "
            "name workload, framework and the others that differ"
        )
    return Side(name, cells[0], choice.command)


def pairs(
    a: Side,
    b: Side,
    count: int,
    logs: Path,
    listener: Callable[[PhaseBegan | BlockDone], None] = lambda message: None,
    run_job: RunJob = lambda job, log, listener, command: run_job(
        job, log, listener=listener, command=command
    ),
) -> Iterator[Pair]:
    """Run the sides in turns, A B, B A, A B, ..., and give each pair when it is done.

    Raises:
        RunFailed: a run gave no figure.
    """
    for number in range(1, count + 1):
        speeds: dict[str, float] = {}
        for own in (a, b) if number % 2 else (b, a):
            log = logs / f"{number:03d}-{own.name}.log"
            planned = own.planned
            job = Job(
                workload=planned.workload,
                cell=planned.cell,
                seed=DEFAULT_SEED,
                timing=planned.timing,
            )
            outcome = run_job(job, log, listener, own.command).outcome
            if isinstance(outcome, Failed):
                raise RunFailed(own, outcome, log)
            speeds[own.name] = samples_per_second(outcome.measurement, own.cell.batch_size)
        yield Pair(speeds[a.name], speeds[b.name])


def judge(done: list[Pair]) -> Verdict:
    """How many times as fast B is as A, over all pairs, with its interval and verdict."""
    return compare_pairs([1 / pair.b for pair in done], [1 / pair.a for pair in done])
