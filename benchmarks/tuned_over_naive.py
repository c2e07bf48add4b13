"""Tuned over naive, in fresh processes that take turns: ``python benchmarks/tuned_over_naive.py``.

Options: ``--frameworks jax,torch --workloads mnist-cnn --pairs 3 --seconds 3``. Prints the median
milliseconds a step of each process and the ratio of each pair.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from bench_agent.job import Job, Timing
from bench_agent.runner import run_job
from bench_protocol.catalogue import CATALOGUE, workload_named
from bench_protocol.matrix import Cell, Device, Recipe
from bench_protocol.result import Measured
from bench_protocol.seeded import DEFAULT_SEED

RECIPES: tuple[Recipe, ...] = ("naive", "tuned")


def milliseconds(framework: str, name: str, recipe: Recipe, seconds: float) -> float:
    """Median time of a step in one fresh worker."""
    workload = workload_named(name)
    cell = Cell(
        workload=workload.name,
        workload_digest=workload.digest,
        framework=framework,
        device=Device(kind="cpu"),
        recipe=recipe,
        batch_size=workload.batch_size,
        precision="float32",
        data="generated",
    )
    timing = Timing(budget_seconds=seconds, target_spread=0.0)
    job = Job(workload=workload, cell=cell, seed=DEFAULT_SEED, timing=timing)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        outcome = run_job(job, log).outcome
        if not isinstance(outcome, Measured):
            raise SystemExit(f"{cell}: {outcome}\n{log.read_text(errors='replace')[-2000:]}")
    blocks = outcome.measurement.blocks
    return statistics.median(blocks.durations_ns) / blocks.steps_per_block / 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frameworks", default="jax,torch")
    parser.add_argument("--workloads", default=",".join(workload.name for workload in CATALOGUE))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    for name in options.workloads.split(","):
        for framework in options.frameworks.split(","):
            pairs = [
                [milliseconds(framework, name, recipe, options.seconds) for recipe in RECIPES]
                for _ in range(options.pairs)
            ]
            ratios = [naive / tuned for naive, tuned in pairs]
            naive, tuned = (statistics.median(times) for times in zip(*pairs, strict=True))
            print(
                f"{name:14} {framework:6} naive {naive:8.3f} ms  tuned {tuned:8.3f} ms  "
                f"x{statistics.median(ratios):.2f} [{min(ratios):.2f}-{max(ratios):.2f}]",
                flush=True,
            )


if __name__ == "__main__":
    main()
