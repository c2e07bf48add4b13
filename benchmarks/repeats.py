"""For the benchmarks beside this file: one repeat of the agent's own worker in a fresh process, and
rounds of processes that time in turns."""

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TypeVar

from bench_agent.base.messages import FormChoice, Job, Timing
from bench_agent.run.worker_process import IN_TURNS, Listener, run_task, worker_command
from bench_agent.worker.lockstep import Lockstep
from bench_protocol.catalogue.matrix import Cell, DataKind, Device, Precision, Recipe
from bench_protocol.catalogue.seeded import DEFAULT_SEED
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measured, Measurement
from bench_protocol.statistics.comparison import compare_pairs

Speed = TypeVar("Speed")

BARE_LOOPS = Path(__file__).parent / "bare_loops"

# The worker as it is, but for its clock.
CPU_CLOCK_WORKER = """
import time
from bench_agent.worker.main import main
time.perf_counter_ns = time.process_time_ns
main()
"""


CPU = Device(kind="cpu")


def cell_of(
    framework: str,
    workload: Workload,
    recipe: Recipe,
    data: DataKind = "generated",
    device: Device = CPU,
    precision: Precision = "float32",
) -> Cell:
    """A cell at the workload's own batch size."""
    return Cell(
        workload=workload.name,
        workload_digest=workload.digest,
        framework=framework,
        device=device,
        recipe=recipe,
        batch_size=workload.batch_size,
        precision=precision,
        data=data,
    )


def measured(
    cell: Cell,
    workload: Workload,
    timing: Timing,
    clock: str,
    seed: str = DEFAULT_SEED,
    turns: str | None = None,
    launcher: Sequence[str] = (),
    listener: Listener = lambda message: None,
    form: str = "",
) -> Measurement:
    """What one fresh worker measured by the ``wall`` or the ``cpu`` clock.

    Args:
        turns: the address of its turns (:mod:`bench_agent.worker.lockstep`), if it takes turns.
        launcher: what stands before the worker's command line.
        listener: is told of phases and blocks as they come.
        form: of the cell's step; empty for the plain one.

    Raises:
        SystemExit: it did not measure; with the end of its log.
    """
    choice = FormChoice(name=form, tried={}) if form else None
    job = Job(workload=workload, cell=cell, seed=seed, timing=timing, form=choice)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-c", CPU_CLOCK_WORKER] if clock == "cpu" else worker_command()
        command = [*launcher, *command, *(["--turns", turns] if turns else [])]
        outcome = run_task(job, log, IN_TURNS, command, listener).outcome
        if not isinstance(outcome, Measured):
            raise SystemExit(f"{cell}: {outcome}\n{log.read_text(errors='replace')[-2000:]}")
    return outcome.measurement


def times_as_long(a: Sequence[float], b: Sequence[float]) -> float:
    """How many times as long A took as B, whose blocks took turns: the median of the turns.

    What slows the machine for a second meets both sides of a turn, and falls out of their ratio.
    """
    return median(x / y for x, y in zip(a, b, strict=False))


def rounds(sides: Sequence[Callable[[str], Speed]], count: int) -> Iterator[list[Speed]]:
    """What each side finds in a round, in the order of the sides; round n begins with side n.

    Args:
        sides: each is given where its turns are to be had; all live at the same time.
    """
    for number in range(count):
        begin = number % len(sides)
        with ThreadPoolExecutor() as threads, Lockstep(len(sides)) as turns:
            running = {
                index: threads.submit(sides[index], turns.address)
                for index in (*range(begin, len(sides)), *range(begin))
            }
            yield [running[index].result() for index in range(len(sides))]


def until_sure(
    pairs: Iterable[Sequence[Sequence[float]]], least: int, percent: float
) -> Iterator[Sequence[Sequence[float]]]:
    """Pairs, at least so many, until the 95 % interval of the mean ratio of their turns reaches no
    further than so many per cent to either side."""
    ratios: list[float] = []
    for a, b in pairs:
        yield a, b
        ratios.append(times_as_long(a, b))
        mean = compare_pairs([1.0] * len(ratios), ratios)
        is_sure = mean.low and mean.high and mean.high / mean.low <= (1 + percent / 100) ** 2
        if len(ratios) >= least and is_sure:
            return
