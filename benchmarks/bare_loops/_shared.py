"""What the bare loops share: the data, and a stopwatch of a dozen lines."""

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from bench_agent.worker import parent_watch
from bench_agent.worker.lockstep import LockstepClock
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named

WORKLOAD = workload_named("fashion-mlp")
SAMPLES, BATCH, CLASSES = 50_000, 128, 10
STEPS_PER_EPOCH = SAMPLES // BATCH
RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7
WARM_UP_SECONDS, BLOCK_SECONDS = 0.5, 0.2
LEAST_WARM_STEPS = 16  # one slow step must not choose the block size

random = np.random.default_rng(0)
clocks = {"wall": time.perf_counter, "cpu": time.process_time}
now = clocks["wall"]


def pictures() -> np.ndarray:
    """(50,000, 28, 28), float32 from 0 to 1: those the agent trains on."""
    return seeded.generated_data(WORKLOAD.data_set, "train")[0].astype(np.float32) / 255


def labels() -> np.ndarray:
    """(50,000,), int32 from 0 to 9."""
    return seeded.generated_data(WORKLOAD.data_set, "train")[1]


def shuffled() -> np.ndarray:
    """(50,000,), int32: an order of the samples. Rows in their own order would be fetched faster
    than any training fetches them."""
    return random.permutation(SAMPLES).astype(np.int32)


def weights() -> list[tuple[np.ndarray, np.ndarray]]:
    """Kernel (in, out) and bias of the three dense layers."""
    sizes = (784, 512, 64, 10)
    kernels = [
        random.uniform(-limit, limit, (i, o)).astype(np.float32)
        for i, o in pairwise(sizes)
        for limit in ((6 / (i + o)) ** 0.5,)
    ]
    return [(kernel, np.zeros(kernel.shape[1], np.float32)) for kernel in kernels]


def time_blocks(
    train: Callable[[int], None], seconds: float, epoch: int = STEPS_PER_EPOCH, unit: int = 1
) -> list[float]:
    """Seconds per epoch, one value a block.

    Args:
        train: trains so many steps and returns when the device has done them.
        epoch: steps in an epoch.
        unit: a block is a multiple of this many steps.
    """
    most = max(unit, epoch // unit * unit)

    def timed(steps: int) -> float:
        began = now()
        train(steps)
        return now() - began

    timed(unit)  # compiles
    steps, warm, fastest = unit, 0.0, math.inf
    while warm < WARM_UP_SECONDS or steps < min(LEAST_WARM_STEPS, most):
        steps = min(2 * steps, most)
        last = timed(steps)
        warm += last
        fastest = min(fastest, last / steps)
    steps = max(unit, min(round(BLOCK_SECONDS / fastest / unit) * unit, most))
    meet()
    blocks: list[float] = []
    while sum(blocks) < seconds:
        blocks.append(timed(steps))
    return [block / steps * epoch for block in blocks]


def meet() -> None:
    """What is timed from now on counts: see :mod:`bench_agent.worker.lockstep`."""
    if isinstance(now, LockstepClock):
        now.meet()


def arguments(recipes: Iterable[str]) -> argparse.ArgumentParser:
    """The options of every loop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("recipe", choices=recipes)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--clock", choices=clocks, default="wall")
    parser.add_argument("--turns", help="as the agent's worker has it")
    return parser


def layers_arguments(forms: Iterable[str]) -> argparse.ArgumentParser:
    """The options of a loop for any workload."""
    parser = arguments(forms)
    parser.add_argument("--workload", default=WORKLOAD.name)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", default="float32")
    return parser


def main(recipes: dict[str, Callable[[float], list[float]]]) -> None:
    """Run one recipe of ``fashion-mlp``."""
    options = arguments(recipes).parse_args()
    finish(options, recipes[options.recipe])


def finish(options: argparse.Namespace, loop: Callable[[float], list[float]]) -> None:
    """Run a loop and print the seconds per epoch of each block."""
    global now
    parent_watch.die_with(os.getppid())
    now = clocks[options.clock]
    if options.turns:
        now = LockstepClock(now, options.turns)
    print(json.dumps({"epoch_seconds": loop(options.seconds)}), flush=True)
    # As the agent's worker, which is killed when it has answered: an interpreter takes a second to
    # tidy up, and the other side times its last blocks meanwhile.
    os._exit(0)
