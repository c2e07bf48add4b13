"""What a better loop is worth: ``make benchmark-recipes``.

Two tables, in Markdown. The first: each recipe beside ``naive``, per workload and framework, at
equal batch in float32 on generated data, with achieved FLOP/s and their share of a matrix product
measured in the same process. The second: ``tuned`` beside the best hand-written loop: in JAX and
PyTorch one from each workload's list of layers (``bare_loops/layers_*.py``), and for fashion-mlp on
a CPU in float32 two more (``bare_loops/*_loops.py``). ``--forms`` gives this table every form
of ``tuned``. Every figure is from a fresh process. A side that fails prints one
line. The sides of a round live at the same time and time their blocks in turns
(:mod:`bench_agent.worker.lockstep`), so that what else the machine does meets them
all; a round's ratio is the median of its turns', and those printed are medians over the
rounds. The two large workloads are timed three times as long as ``--seconds`` says.

``--json`` adds a line for each side to a file. ``--epochs 1`` times whole epochs in
place of ``--seconds``. The first table takes an hour and a half on two cores: choose with
``--workloads``. Where others use the machine too, ``--clock cpu`` counts processor time instead
(threads that wait do not show in it) and ``--threads 1`` leaves fewer to wait for each other.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from fidelity import ALLOCATOR, FRAMEWORKS, THREADS, at_least, some_of, version_of
from recipes_sides import Asked, Side, Speed, bare_sides, or_none, rate, record, speed, tuned_forms
from repeats import rounds, times_as_long

from bench_agent.base.messages import Timing
from bench_protocol.base import format as people
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import Device, Recipe
from bench_protocol.catalogue.workloads import Workload

NAIVE: Recipe = "naive"
OTHERS: tuple[Recipe, ...] = ("pipeline", "tuned")
# A step of so many FLOPs takes about a second where a product of matrices reaches 200 GFLOP/s.
# Three seconds of it are four blocks, too few for a median: large workloads are timed for longer.
LARGE_STEP = 2e11
LARGE_TIMES = 3


def timing_of(workload: Workload, seconds: float, epochs: int | None) -> Timing:
    """The same for all sides of a round."""
    large = workload.training_flops_per_sample * workload.batch_size >= LARGE_STEP
    budget = seconds * LARGE_TIMES if large else seconds
    return Timing(budget_seconds=budget, target_spread=0.0, epochs=epochs)


def over(speeds: Sequence[Speed], base: Sequence[Speed]) -> str:
    """Two cells: the median ratio of the rounds, and their range."""
    ratios = sorted(times_as_long(b.seconds, a.seconds) for a, b in zip(speeds, base, strict=True))
    return f"{people.ratio(median(ratios))} | {ratios[0]:.2f} to {ratios[-1]:.2f}"


def rows(
    asked: Asked, framework: str, workload: Workload, recipes: Sequence[Recipe], timing: Timing
) -> None:
    """Print a row for each recipe of one workload and framework."""
    chosen: list[Recipe] = [NAIVE, *recipes]
    sides = [partial(speed, asked, framework, workload, one, timing, "") for one in chosen]
    naive, *others = zip(*rounds(sides, asked.rounds), strict=True)
    for recipe, speeds in zip(chosen, (naive, *others), strict=True):
        record(asked, framework, workload, recipe, speeds)
        fractions = [s.gemm_fraction for s in speeds if s.gemm_fraction is not None]
        print(
            f"| {workload.name}, {workload.batch_size} | {framework} | {recipe} "
            f"| {people.rate(rate(speeds))} "
            f"| {median(s.flops_per_second for s in speeds) / 1e9:.1f} "
            f"| {people.percent(median(fractions)) if fractions else ''} "
            f"| {over(speeds, naive) if recipe != NAIVE else '|'} |",
            flush=True,
        )


def bare_row(
    asked: Asked, framework: str, workload: Workload, timing: Timing, *, all_forms: bool
) -> None:
    """Print the best form of ``tuned`` beside the best hand-written loop."""
    own: list[tuple[str, Side]] = [
        (
            f"tuned {form}".strip(),
            partial(speed, asked, framework, workload, "tuned", timing, form),
        )
        for form in tuned_forms(asked, framework, workload, all_forms=all_forms)
    ]
    loops = [(f"bare {n}", s) for n, s in bare_sides(asked, framework, workload, timing)]
    if not loops:
        return
    sides = [partial(or_none, name, side) for name, side in (*own, *loops)]
    columns = zip(*rounds(sides, asked.rounds), strict=True)
    found = {
        name: [one for one in column if one]
        for (name, _), column in zip((*own, *loops), columns, strict=True)
        if all(column)
    }
    for name, speeds in found.items():
        record(asked, framework, workload, name, speeds)
    agents, by_hand = (
        max((name for name, _ in some if name in found), key=lambda n: rate(found[n]), default="")
        for some in (own, loops)
    )
    if agents and by_hand:
        print(
            f"| {workload.name}, {workload.batch_size} | {framework} | {agents} | {by_hand} "
            f"| {over(found[agents], found[by_hand])} |",
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
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", default="float32", help="tf32, mixed_bfloat16, ...")
    parser.add_argument("--bare", action="store_true", help="only the second table")
    parser.add_argument("--forms", action="store_true", help="every form of tuned in table two")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add a line for each side")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    if options.threads:
        os.environ.update(dict.fromkeys(THREADS, str(options.threads)))
    frameworks = options.frameworks
    device = Device(kind=options.device)
    asked = Asked(device, options.precision, options.clock, options.pairs, options.json)
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
                rows(asked, framework, workload, options.recipes, timing(workload))
    os.environ.update(ALLOCATOR)  # recipes have only what they bring themselves
    print("\n| workload, batch | framework | tuned | best bare loop | tuned over it ", end="")
    print("| of the rounds |\n|---|---|---|---|---|---|")
    for workload in map(workload_named, options.workloads):
        for framework in frameworks:
            bare_row(asked, framework, workload, timing(workload), all_forms=options.forms)
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
