"""What a better loop is worth: ``make benchmark-recipes``.

Two tables, in Markdown. The first: each recipe beside ``naive``, per workload and framework, at
equal batch in float32 on generated data, with achieved FLOP/s and their share of a matrix product
measured in the same process. The second: ``tuned`` beside the better of two plain hand-written
loops (``bare_loops/``, of fashion-mlp alone). Every figure is from a fresh process of the agent's
own worker. The sides of a round live at the same time and time their blocks in turns
(:mod:`bench_agent.worker.lockstep`), so that what else the machine does meets them
all; a round's ratio is the median of its turns', and those printed are medians over the
rounds. The two large workloads are timed three times as long as ``--seconds`` says.

``--epochs 1`` times whole epochs in place of ``--seconds``. All of them take an hour and a half on
two cores: choose with ``--workloads``. Where others use the machine too, ``--clock cpu`` counts
processor time instead (threads that wait do not show in it) and ``--threads 1`` leaves fewer to
wait for each other.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from fidelity import ALLOCATOR, FRAMEWORKS, THREADS, at_least, some_of, version_of
from fidelity_one_process import WORKLOAD
from fidelity_sides import Loop, bare
from repeats import cell_of, measured, rounds, times_as_long

from bench_agent.base.messages import Timing
from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import Recipe
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measurement

NAIVE: Recipe = "naive"
OTHERS: tuple[Recipe, ...] = ("pipeline", "tuned")
BARE_RECIPES = ("naive", "tuned")
# A step of so many FLOPs takes about a second where a product of matrices reaches 200 GFLOP/s.
# Three seconds of it are four blocks, too few for a median: large workloads are timed for longer.
LARGE_STEP = 2e11
LARGE_TIMES = 3


@dataclass(frozen=True)
class Speed:
    """What one process reached; ``seconds`` a sample, one value a block."""

    seconds: Sequence[float]
    flops_per_second: float = 0.0
    gemm_fraction: float | None = None

    @property
    def samples_per_second(self) -> float:
        return 1 / median(self.seconds)


Side = Callable[[str], Speed]
"""One side of a round, given where its turns are to be had."""


def speed(
    framework: str, workload: Workload, recipe: Recipe, timing: Timing, clock: str, turns: str
) -> Speed:
    """Of one fresh worker."""
    cell = cell_of(framework, workload, recipe)
    measurement = measured(cell, workload, timing, clock, turns=turns)
    samples = measurement.blocks.steps_per_block * cell.batch_size
    seconds = [duration_ns / 1e9 / samples for duration_ns in measurement.blocks.durations_ns]
    flops = workload.training_flops_per_sample / median(seconds)
    peak = _gemm_flops_per_second(measurement)
    return Speed(seconds, flops, flops / peak if peak else None)


def timing_of(workload: Workload, seconds: float, epochs: int | None) -> Timing:
    """The same for all sides of a round."""
    large = workload.training_flops_per_sample * workload.batch_size >= LARGE_STEP
    budget = seconds * LARGE_TIMES if large else seconds
    return Timing(budget_seconds=budget, target_spread=0.0, epochs=epochs)


def _gemm_flops_per_second(measurement: Measurement) -> float | None:
    gemm = measurement.gemm
    return 2 * gemm.size**3 * 1e9 / gemm.duration_ns if gemm else None


def over(speeds: Sequence[Speed], base: Sequence[Speed]) -> str:
    """Two cells: the median ratio of the rounds, and their range."""
    ratios = sorted(times_as_long(b.seconds, a.seconds) for a, b in zip(speeds, base, strict=True))
    return f"{people.ratio(median(ratios))} | {ratios[0]:.2f} to {ratios[-1]:.2f}"


def rows(
    framework: str,
    workload: Workload,
    recipes: Sequence[Recipe],
    timing: Timing,
    clock: str,
    count: int,
) -> None:
    """Print a row for each recipe of one workload and framework."""

    def side(recipe: Recipe) -> Side:
        return partial(speed, framework, workload, recipe, timing, clock)

    chosen: list[Recipe] = [NAIVE, *recipes]
    naive, *others = zip(*rounds([side(recipe) for recipe in chosen], count), strict=True)
    for recipe, speeds in zip(chosen, (naive, *others), strict=True):
        fractions = [s.gemm_fraction for s in speeds if s.gemm_fraction is not None]
        print(
            f"| {workload.name}, {workload.batch_size} | {framework} | {recipe} "
            f"| {people.rate(median(s.samples_per_second for s in speeds))} "
            f"| {median(s.flops_per_second for s in speeds) / 1e9:.1f} "
            f"| {people.percent(median(fractions)) if fractions else ''} "
            f"| {over(speeds, naive) if recipe != NAIVE else '|'} |",
            flush=True,
        )


def bare_row(framework: str, timing: Timing, clock: str, count: int) -> None:
    """Print ``tuned`` beside the better hand-written loop."""
    samples = WORKLOAD.steps_per_epoch(WORKLOAD.batch_size) * WORKLOAD.batch_size

    def written(recipe: Recipe, turns: str) -> Speed:
        epochs = bare(Loop(framework, recipe, timing.budget_seconds, clock), turns)
        return Speed([seconds / samples for seconds in epochs])

    tuned = partial(speed, framework, WORKLOAD, "tuned", timing, clock)
    sides = [tuned, *(partial(written, recipe) for recipe in BARE_RECIPES)]
    agents, *loops = zip(*rounds(sides, count), strict=True)
    best = max(loops, key=lambda speeds: median(s.samples_per_second for s in speeds))
    print(
        f"| {WORKLOAD.name}, {WORKLOAD.batch_size} | {framework} "
        f"| {BARE_RECIPES[loops.index(best)]} | {over(agents, best)} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = [workload.name for workload in CATALOGUE]
    parser.add_argument("--workloads", type=some_of(names), default=",".join(names))
    parser.add_argument("--frameworks", type=some_of(FRAMEWORKS), default=",".join(FRAMEWORKS))
    parser.add_argument("--recipes", type=some_of(OTHERS), default=",".join(OTHERS))
    parser.add_argument(
        "--pairs", type=at_least(1), default=3, help="rounds of one process a side (3)"
    )
    parser.add_argument(
        "--seconds", type=at_least(0.5, float), default=5.0, help="timed in each process (5)"
    )
    parser.add_argument("--epochs", type=at_least(1), help="time so many whole epochs instead")
    parser.add_argument(
        "--threads", type=at_least(0), default=0, help="0: as many as the libraries take"
    )
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--bare", action="store_true", help="only the second table")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    if options.threads:
        os.environ.update(dict.fromkeys(THREADS, str(options.threads)))
    frameworks = options.frameworks
    timing = partial(timing_of, seconds=options.seconds, epochs=options.epochs)
    versions = ", ".join(f"{name} {version_of(name)}" for name in frameworks)
    print(
        f"{versions}; {options.pairs} round{'s' * (options.pairs != 1)} by the {options.clock} "
        f"clock, ratios of blocks in turns; load {os.getloadavg()[0]:.1f} at the beginning\n",
        flush=True,
    )
    if not options.bare:
        print(
            "| workload, batch | framework | recipe | samples/s | GFLOP/s | of a matrix product ",
            end="",
        )
        print("| over naive | of the rounds |\n|---|---|---|---|---|---|---|---|")
        for workload in map(workload_named, options.workloads):
            for framework in frameworks:
                rows(
                    framework,
                    workload,
                    options.recipes,
                    timing(workload),
                    options.clock,
                    options.pairs,
                )
    os.environ.update(ALLOCATOR)  # recipes have only what they bring themselves
    print("\n| workload, batch | framework | best bare loop | tuned over it | of the rounds |")
    print("|---|---|---|---|---|")
    for framework in frameworks:
        bare_row(framework, timing(WORKLOAD), options.clock, options.pairs)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
