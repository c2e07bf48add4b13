"""For the fidelity benchmark: seconds per epoch of ``fashion-mlp`` in the agent's worker, in the
bare loop, in one process with both, and with and without the sampler."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import fidelity_one_process as one_process
from fidelity_one_process import WORKLOAD
from repeats import BARE_LOOPS, cell_of, measured

from bench_agent.base.messages import BlockDone, PhaseBegan, Timing
from bench_agent.run.monitor import Monitor
from bench_protocol.catalogue.matrix import Device, Recipe
from bench_protocol.payload.readings import Conditions

FIT_EPOCHS = 12
WATCHED_SECONDS = 20.0
WINDOW_BLOCKS = 12

Seconds = Sequence[float]
"""Per epoch, one value a block."""


class Loop(NamedTuple):
    """What both sides train, for how many seconds, and by which clock they are timed."""

    framework: str
    recipe: Recipe
    seconds: float
    clock: str


def bare(loop: Loop, turns: str | None = None, *, launcher: Sequence[str] = ()) -> Seconds:
    """Run the bare loop in a fresh process."""
    script = BARE_LOOPS / f"{loop.framework}_loops.py"
    command = [*launcher, sys.executable, str(script), loop.recipe]
    command += ["--seconds", str(loop.seconds), "--clock", loop.clock]
    command += ["--turns", turns] if turns else []
    epochs: list[float] = run(command)["epoch_seconds"]
    return epochs


def agent(loop: Loop, turns: str | None = None, *, launcher: Sequence[str] = ()) -> Seconds:
    """Run the agent's worker in a fresh process, with the sampler, as in a run."""
    cell = cell_of(loop.framework, WORKLOAD, loop.recipe)
    timing = Timing(budget_seconds=loop.seconds, target_spread=0.0)
    if (loop.framework, loop.recipe) == ("tensorflow", "naive"):
        # The bare loop is one call of fit, which tells of nothing shorter than an epoch.
        timing = Timing(epochs=FIT_EPOCHS, block_seconds=3600.0)
    with watch(cell.device):
        found = measured(cell, WORKLOAD, timing, loop.clock, turns=turns, launcher=launcher)
    return [epoch_seconds(d, found.blocks.steps_per_block) for d in found.blocks.durations_ns]


def together(
    framework: str, processes: int, seconds: float, launcher: Sequence[str]
) -> Iterator[tuple[Seconds, Seconds]]:
    """Run both ``naive`` loops in each of some fresh processes. The side that begins alternates."""
    for number in range(processes):
        first = one_process.SIDES[number % 2]
        command = [*launcher, sys.executable, one_process.__file__, framework, first]
        done = run([*command, "--seconds", str(seconds)])
        yield done["agent"], done["bare"]


def run(command: Sequence[str]) -> Any:
    """The last line of a command's output, which is JSON.

    Raises:
        SystemExit: the command failed; the message has the end of its stderr.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def epoch_seconds(duration_ns: int, steps: int) -> float:
    """Convert the duration of some steps to seconds per epoch."""
    return duration_ns / 1e9 / steps * WORKLOAD.steps_per_epoch(WORKLOAD.batch_size)


def sampled_in_turns(loop: Loop, launcher: Sequence[str]) -> Iterator[tuple[Seconds, Seconds]]:
    """Pairs of windows of one fresh process, with the sampler (A) and without it (B): A B, B A,
    A B, ..."""
    cell = cell_of(loop.framework, WORKLOAD, loop.recipe)
    windows: list[list[float]] = [[]]
    with ExitStack() as watching:
        watching.enter_context(watch(cell.device))

        def heard(message: PhaseBegan | BlockDone) -> None:
            if not isinstance(message, BlockDone):
                return
            windows[-1].append(epoch_seconds(message.duration_ns, message.steps))
            if len(windows[-1]) == WINDOW_BLOCKS:
                if len(windows) % 4 == 1:
                    watching.close()
                elif len(windows) % 4 == 3:
                    watching.enter_context(watch(cell.device))
                windows.append([])

        timing = Timing(budget_seconds=loop.seconds, target_spread=0.0)
        measured(cell, WORKLOAD, timing, loop.clock, launcher=launcher, listener=heard)
    for number in range(0, len(windows) - 2, 2):
        # The first block of a window began before the sampler was switched.
        first, second = (window[1:] for window in windows[number : number + 2])
        yield (second, first) if number % 4 else (first, second)


def watch(device: Device) -> Monitor:
    """The sampler that a run has around a worker."""
    return Monitor(device, Conditions(), os.cpu_count() or 1, time.monotonic_ns)


def sampler_share() -> float:
    """Processor time of the agent's own process while it watches, as a share of one core."""
    began = time.process_time()
    with watch(Device(kind="cpu")):
        time.sleep(WATCHED_SECONDS)
    return (time.process_time() - began) / WATCHED_SECONDS
