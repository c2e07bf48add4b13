"""Does a faster loop still learn: ``make benchmark-accuracy``.

In Markdown: the accuracy on the test samples after all of a workload's epochs, per framework and
recipe, over several seeds. A seed gives all recipes the same starting weights and the same first
order, so that they are held against ``naive`` seed by seed: the mean difference with its 95 %
interval by Student's t over the pairs (`scipy.stats.ttest_rel`). Beside it stands what the seed
alone does, the standard deviation of ``naive``.

On generated data every recipe comes to an accuracy of 1, which tells nothing: the default is
``--data real`` (``bench-agent data fetch``).
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from statistics import fmean, stdev

from fidelity import FRAMEWORKS, at_least, some_of, version_of
from repeats import cell_of, measured
from rich.console import Console
from rich.progress import track
from scipy.stats import ttest_rel

from bench_agent import data
from bench_agent.base.errors import DataProblem
from bench_agent.base.messages import Timing
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import DataKind, Recipe
from bench_protocol.catalogue.workloads import Workload

OTHERS: tuple[Recipe, ...] = ("pipeline", "tuned")
SMALL = "fashion-mlp,fashion-lstm,fashion-cnn,fashion-convnet,mnist-dense,mnist-cnn"


def accuracy(
    framework: str, workload: Workload, recipe: Recipe, kind: DataKind, seed: str, epochs: int
) -> float:
    """Share of the test samples that one fresh worker is right about after training."""
    cell = cell_of(framework, workload, recipe, kind)
    evaluation = measured(cell, workload, Timing(epochs=epochs), "wall", seed).evaluation
    if evaluation is None:
        raise SystemExit(f"{cell}: no evaluation")
    return evaluation.accuracy


def rows(
    framework: str, workload: Workload, epochs: int, found: dict[Recipe, list[float]]
) -> Iterator[str]:
    """A line of the table for each recipe; ``found``: accuracies, seed by seed."""
    naive = found["naive"]
    for recipe, shares in found.items():
        yield (
            f"| {workload.name}, {epochs} | {framework} | {recipe} | {fmean(shares):.4f} "
            f"| {stdev(shares):.4f} | {_against(shares, naive) if recipe != 'naive' else ''} |"
        )


def _against(shares: Sequence[float], naive: Sequence[float]) -> str:
    difference = fmean(shares) - fmean(naive)
    if shares == naive:
        return "the same, seed by seed"
    low, high = ttest_rel(shares, naive).confidence_interval(0.95)
    verdict = "no clear difference" if low <= 0 <= high else "credibly different"
    return f"{difference:+.4f} ({low:+.4f} to {high:+.4f}), {verdict}"


def _require(workloads: Sequence[str]) -> None:
    """Check that their data are here.

    Raises:
        SystemExit: they are not; with what fixes it.
    """
    try:
        data.require({workload_named(name).data_set.name: None for name in workloads})
    except DataProblem as problem:
        raise SystemExit(str(problem)) from None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = [workload.name for workload in CATALOGUE]
    parser.add_argument("--workloads", type=some_of(names), default=SMALL)
    parser.add_argument("--frameworks", type=some_of(FRAMEWORKS), default=",".join(FRAMEWORKS))
    parser.add_argument("--recipes", type=some_of(OTHERS), default=",".join(OTHERS))
    parser.add_argument("--data", choices=("real", "generated"), default="real")
    parser.add_argument("--seeds", type=int, default=5, help="at least two")
    parser.add_argument("--epochs", type=at_least(1), help="in place of each workload's own")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    if options.seeds < 2:
        parser.error(f"argument --seeds: {options.seeds} tells no difference; give two or more")
    if options.data == "real":
        _require(options.workloads)
    frameworks = options.frameworks
    recipes: list[Recipe] = ["naive", *options.recipes]
    print(", ".join(f"{name} {version_of(name)}" for name in frameworks))
    print(f"{options.data} data, {options.seeds} seeds, {os.cpu_count()} cores\n")
    print("| workload, epochs | framework | recipe | accuracy | over seeds | against naive |")
    print("|---|---|---|---|---|---|", flush=True)
    console = Console(stderr=True)
    for name, framework in product(options.workloads, frameworks):
        workload = workload_named(name)
        epochs = options.epochs or workload.epochs
        found: dict[Recipe, list[float]] = {recipe: [] for recipe in recipes}
        turns = list(product(range(options.seeds), recipes))
        for seed, recipe in track(turns, f"{name} {framework}", console=console, transient=True):
            found[recipe].append(
                accuracy(framework, workload, recipe, options.data, f"{seed:032x}", epochs)
            )
        print("\n".join(rows(framework, workload, epochs, found)), flush=True)


if __name__ == "__main__":
    main()
