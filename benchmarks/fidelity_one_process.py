"""For the fidelity benchmark: the agent's ``naive`` loop and the bare one in one process, block by
block in turns: ``python benchmarks/fidelity_one_process.py mlx bare``.

Two processes of the same loop can differ by 1 to 3 % for as long as they run, and the cause is not
known (docs/results: Fidelity). Here both loops run in one process, so the ratio
compares only their code. Use it for loops that change no setting of the whole process, such as the
number of threads, and that train any number of steps on request. TensorFlow's ``fit`` cannot.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib import import_module

from repeats import BARE_LOOPS, cell_of

from bench_agent.engines import engine_named
from bench_agent.engines.seam import Data
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named

FRAMEWORKS = ("mlx", "jax", "torch")
SIDES = ("agent", "bare")
WORKLOAD = workload_named("fashion-mlp")
WARM_UP_STEPS, WARM_UP_ROUNDS = 16, 3
BLOCK_SECONDS = 0.2

Train = Callable[[int], object]
"""Train a number of steps, and return when the device has finished."""


def bare_loop(framework: str) -> Train:
    """The function that the bare loop gives to ``time_blocks``."""
    sys.path.append(str(BARE_LOOPS))
    module = import_module(f"{framework}_loops")
    given: list[Train] = []

    def keep(train: Train, seconds: float) -> list[float]:
        given.append(train)
        return []

    module.time_blocks = keep  # type: ignore[attr-defined]
    module.naive(0.0)
    return given[0]


def agents_loop(framework: str) -> Train:
    """A function that trains a block in the agent's session and waits for the device."""
    cell = cell_of(framework, WORKLOAD, "naive")
    engine = engine_named(framework)
    engine.load(WORKLOAD, cell)
    data_set, seed = WORKLOAD.data_set, seeded.DEFAULT_SEED
    train, test = (seeded.generated_data(data_set, split) for split in ("train", "test"))
    data = Data(*train, *test, seeded.order(data_set.train_samples, 0, seed))
    session = engine.open(WORKLOAD, cell, seeded.initial_weights(WORKLOAD, seed), data)

    def block(steps: int) -> None:
        session.train_block(steps)
        session.sync()

    return block


def seconds_of(train: Train, steps: int) -> float:
    began = time.perf_counter()
    train(steps)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("first", choices=SIDES, help="who is built first and begins each turn")
    parser.add_argument("--seconds", type=float, default=6.0)
    options = parser.parse_args()
    build = {"agent": agents_loop, "bare": bare_loop}
    order = sorted(SIDES, key=lambda side: side != options.first)
    loops = {side: build[side](options.framework) for side in order}
    step = min(
        seconds_of(loops[side], WARM_UP_STEPS) / WARM_UP_STEPS
        for _ in range(WARM_UP_ROUNDS)
        for side in order
    )
    steps = max(1, round(BLOCK_SECONDS / step))
    blocks: dict[str, list[float]] = {side: [] for side in order}
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        for side in order:
            blocks[side].append(seconds_of(loops[side], steps))
    an_epoch = WORKLOAD.steps_per_epoch(WORKLOAD.batch_size) / steps
    print(json.dumps({side: [block * an_epoch for block in blocks[side]] for side in SIDES}))


if __name__ == "__main__":
    main()
