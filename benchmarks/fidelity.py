"""What the agent costs the loop that it times: ``make benchmark-fidelity``.

It prints tables in Markdown: how far the median of one cell varies between processes, what the
sampler costs, and the agent's seconds per epoch of ``fashion-mlp`` beside the same loop written
bare (``bare_loops/``). A pair is of two fresh processes, the agent's and the bare loop's. Both run
at the same time: one times a block while the other is stopped (:mod:`bench_agent.worker.lockstep`),
so other work meets both. Each turn gives one ratio, the agent's block over the bare loop's; the
ratio of a pair is their median.

Two processes of the same loop can differ by more than that. So the cost of the sampler is measured
within one process, in windows with and without it, in turns. And a second table has the ``naive``
loops of MLX, JAX and PyTorch with both sides in one process (:mod:`fidelity_one_process`).

On a shared machine the wall time depends on the other users. ``--clock cpu`` counts the processor
time of both sides' processes instead, by the same code.

BLAS and OpenMP have one thread by default: on a shared machine, threads that wait for each other
make times that say nothing about the loop. Both sides then share one core, because two cores may
carry different load, and this process uses another. Loops that cut a batch between cores use all
cores and are timed three times as long. On one core a woken thread waits until the thread that woke
it releases the core (``chrt --batch``). Otherwise TensorFlow's ``fit`` sleeps through a second of
most epochs (docs/notebook: what fit waits for). ``--threads 0`` leaves threads and cores to the
libraries.

``--sure 1`` adds pairs to a row, up to eight times ``--pairs``, until the 95 % interval of its mean
ratio extends at most 1 % to each side. Some loops vary more between processes than others,
TensorFlow's ``fit`` by a tenth.
"""

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from statistics import fmean, median, stdev
from typing import NamedTuple

import fidelity_one_process as one_process
from fidelity_sides import (
    WINDOW_BLOCKS,
    Loop,
    Seconds,
    agent,
    bare,
    sampled_in_turns,
    sampler_share,
    together,
)
from repeats import rounds, times_as_long, until_sure

from bench_agent.base.messages import Timing
from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Recipe
from bench_protocol.statistics.comparison import compare_pairs

SAMPLER_PAIRS = 40
RECIPES: tuple[Recipe, ...] = ("naive", "tuned")
FRAMEWORKS = ("mlx", "jax", "tensorflow", "torch")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
# Loops that cut a batch between the cores. Each core waits for the other, so that whatever stops
# either shows, and their blocks vary more: they are timed for longer.
ON_ALL_CORES = (("mlx", "tuned"), ("tensorflow", "tuned"))
ON_ALL_CORES_TIMES = 3
# At most so many times ``--pairs`` where they are to go on until they are sure.
SURE_TIMES = 8
# glibc asks the kernel for every large block anew until a process has freed one of that size, and a
# loop can be 1.5 times as slow until then. Both sides get what a process has learnt by then, so
# that it does not matter which of them freed what before its loop.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**27)}


class Cores(NamedTuple):
    """What to put before a command to run it on one fixed core or on all cores; empty where the
    system cannot pin a process."""

    one: Sequence[str] = ()
    all: Sequence[str] = ()


def share_out_cores() -> Cores:
    """Move this process off the core of the loops that have one core."""
    taskset, chrt = shutil.which("taskset"), shutil.which("chrt")
    if not taskset or not chrt:
        return Cores()
    *others, last = cores = sorted(os.sched_getaffinity(0))
    if others:
        os.sched_setaffinity(0, others)
    one, every = ([taskset, "--cpu-list", ",".join(map(str, some))] for some in ([last], cores))
    return Cores([chrt, "--batch", "0", *one], every)


def of_medians(a: Seconds, b: Seconds) -> float:
    """How many times as long A took as B."""
    return median(a) / median(b)


def row(
    name: str, pairs: Iterable[Sequence[Seconds]], ratio: Callable[[Seconds, Seconds], float]
) -> str:
    """A row of a table: number of pairs, median of each side, median and range of the ratios, 95 %
    interval of the mean ratio, and its verdict."""
    done = list(pairs)
    first, second = (median(median(pair[side]) for pair in done) for side in (0, 1))
    ratios = sorted(ratio(a, b) for a, b in done)
    verdict = compare_pairs(ratios, [1.0] * len(ratios))
    bounds = (verdict.high, verdict.low)  # of how many times as fast, so the other way round
    interval = " to ".join(f"{1 / bound:.3f}" for bound in bounds if bound)
    return (
        f"| {name} | {len(done)} | {people.seconds(first)} | {people.seconds(second)} "
        f"| {median(ratios):.3f} | {ratios[0]:.3f} to {ratios[-1]:.3f} | {interval} "
        f"| {verdict.words} |"
    )


def heading(what: str, a: str, b: str) -> str:
    """The heading of a table whose rows come from :func:`row`."""
    columns = (what, "pairs", a, b, f"{a} / {b}", "of the pairs", "95 % CI of the mean", f"{a} is")
    return f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--frameworks", type=some_of(FRAMEWORKS), default=",".join(FRAMEWORKS))
    parser.add_argument("--recipes", type=some_of(RECIPES), default=",".join(RECIPES))
    parser.add_argument("--pairs", type=at_least(3), default=6)
    parser.add_argument("--sure", type=at_least(0.1, float), metavar="PERCENT")
    parser.add_argument("--repeats", type=at_least(2), default=10)
    parser.add_argument("--seconds", type=at_least(0.5, float), default=6.0)
    parser.add_argument("--threads", type=at_least(0), default=1)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    os.environ.update(ALLOCATOR)
    if options.threads:
        os.environ.update(dict.fromkeys(THREADS, str(options.threads)))
    frameworks, seconds, pairs = options.frameworks, options.seconds, options.pairs
    clock = options.clock
    versions = ", ".join(f"{name} {version_of(name)}" for name in frameworks)
    load = os.getloadavg()[0]
    print(
        f"{versions}; {pairs} pairs of {seconds:g} s by the {clock} clock, "
        f"load {load:.1f} at the beginning\n",
        flush=True,
    )
    first = Loop(frameworks[0], "tuned", seconds, clock)
    cores = share_out_cores()
    print(f"Watching takes {people.percent(sampler_share())} of one core in the agent's process.")
    medians = [median(agent(first, launcher=cores.all)) for _ in range(options.repeats)]
    variation = people.percent(stdev(medians) / fmean(medians))
    print(
        f"{options.repeats} processes of {first.framework} {first.recipe}: "
        f"median {people.seconds(median(medians))} "
        f"an epoch, coefficient of variation {variation}\n"
    )
    print(heading(f"{first.framework} {first.recipe}", "sampled", "not sampled"))
    longer = first._replace(seconds=2 * SAMPLER_PAIRS * WINDOW_BLOCKS * Timing().block_seconds)
    print(row("sampler", sampled_in_turns(longer, cores.all), of_medians) + "\n", flush=True)
    print(heading("fashion-mlp, an epoch", "agent", "bare"))
    for framework in frameworks:
        for recipe in options.recipes:
            all_cores = (framework, recipe) in ON_ALL_CORES
            times = ON_ALL_CORES_TIMES if all_cores else 1
            loop = Loop(framework, recipe, seconds * times, clock)
            launcher = cores.one if options.threads == 1 and not all_cores else cores.all
            sides = [partial(side, loop, launcher=launcher) for side in (agent, bare)]
            found = rounds(sides, pairs * SURE_TIMES if options.sure else pairs)
            if options.sure:
                found = until_sure(found, pairs, options.sure)
            print(row(f"{framework} {recipe}", found, times_as_long), flush=True)
    if "naive" in options.recipes:
        print("\n" + heading("in one process, an epoch", "agent", "bare"))
        for framework in filter(one_process.FRAMEWORKS.__contains__, frameworks):
            found = together(framework, pairs, seconds * 2, cores.one or cores.all)
            print(row(f"{framework} naive", found, times_as_long), flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


def some_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads names with commas between them, for :mod:`argparse`."""

    def names(text: str) -> list[str]:
        if unknown := [name for name in text.split(",") if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return text.split(",")

    return names


def at_least(least: float, kind: type[int] | type[float] = int) -> Callable[[str], float]:
    """Reads a number, for :mod:`argparse`."""

    def number(text: str) -> float:
        if not (value := kind(text)) >= least:  # nan is neither less nor more
            raise argparse.ArgumentTypeError(f"{text} is not {least:g} or more")
        return value

    return number


def version_of(framework: str) -> str:
    for distribution in (framework, f"{framework}-cpu"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    raise SystemExit(f"{framework} is not installed: make frameworks, or choose --frameworks")


if __name__ == "__main__":
    main()
