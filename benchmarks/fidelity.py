"""How true the agent's figures are: ``make benchmark-fidelity``.

Three tables, in Markdown: the agent's seconds per epoch of ``fashion-mlp`` beside the same loop
written bare (``bare_loops/``), what sampling the machine costs the timed part, and how far the
reported median of one cell varies from process to process. Every figure is from a fresh process;
the two sides take turns, and who begins does too.

One thread for BLAS and OpenMP by default: on a machine that others use, threads that wait for each
other make times that say nothing about the loop. ``--threads 0`` leaves the choice to them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median, stdev

from bench_agent.job import Job, Timing
from bench_agent.runner import run_job
from bench_agent.watch import Watch
from bench_protocol import format as people
from bench_protocol.catalogue import workload_named
from bench_protocol.figures import epoch_seconds, samples_per_second
from bench_protocol.matrix import Cell, Device
from bench_protocol.result import Conditions, Measured
from bench_protocol.seeded import DEFAULT_SEED
from bench_protocol.verdicts import compare_pairs

BARE_LOOPS = Path(__file__).parent / "bare_loops"
WORKLOAD = workload_named("fashion-mlp")
RECIPES = ("naive", "tuned")
PACKAGES = {"tensorflow": "tensorflow-cpu", "mlx": "mlx", "jax": "jax", "torch": "torch"}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")

Side = Callable[[], float]


def bare(framework: str, recipe: str, seconds: float) -> float:
    """Seconds per epoch of the bare loop in a fresh process."""
    script = BARE_LOOPS / f"{framework}_loops.py"
    command = [sys.executable, str(script), recipe, "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{script.name} {recipe}: {done.stderr[-2000:]}")
    return float(json.loads(done.stdout.splitlines()[-1])["epoch_seconds"])


def agent(framework: str, recipe: str, seconds: float, *, watched: bool = True) -> float:
    """Seconds per epoch as the agent reports them; ``watched``: with its sampler, as in a run."""
    cell = Cell(
        workload=WORKLOAD.name,
        workload_digest=WORKLOAD.digest,
        framework=framework,
        device=Device(kind="cpu"),
        recipe=recipe,
        batch_size=WORKLOAD.batch_size,
        precision="float32",
        data="generated",
    )
    timing = Timing(budget_seconds=seconds, target_spread=0.0)
    job = Job(workload=WORKLOAD, cell=cell, seed=DEFAULT_SEED, timing=timing)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        if watched:
            with Watch(cell.device, Conditions(), os.cpu_count() or 1, time.monotonic_ns):
                outcome = run_job(job, log).outcome
        else:
            outcome = run_job(job, log).outcome
        if not isinstance(outcome, Measured):
            raise SystemExit(f"{cell}: {outcome}\n{log.read_text(errors='replace')[-2000:]}")
    rate = samples_per_second(outcome.measurement, cell.batch_size)
    return epoch_seconds(WORKLOAD, cell.batch_size, rate)


def in_turns(a: Side, b: Side, pairs: int) -> Iterator[tuple[float, float]]:
    """A B, B A, A B, ..."""
    for number in range(pairs):
        if number % 2:
            second, first = b(), a()
        else:
            first, second = a(), b()
        yield first, second


def row(name: str, a: Side, b: Side, pairs: int) -> str:
    """Medians of both sides, the median ratio of the pairs, and its verdict."""
    done = list(in_turns(a, b, pairs))
    first, second = ([pair[side] for pair in done] for side in (0, 1))
    ratios = sorted(x / y for x, y in done)
    verdict = compare_pairs(first, second)
    return (
        f"| {name} | {people.seconds(median(first))} | {people.seconds(median(second))} "
        f"| {median(ratios):.3f} | {ratios[0]:.3f} to {ratios[-1]:.3f} | {verdict.words} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--frameworks", default=",".join(PACKAGES))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.threads:
        os.environ.update(dict.fromkeys(THREADS, str(options.threads)))
    frameworks, seconds, pairs = options.frameworks.split(","), options.seconds, options.pairs
    versions = ", ".join(f"{name} {version(PACKAGES[name])}" for name in frameworks)
    load = os.getloadavg()[0]
    print(f"{versions}; {pairs} pairs of {seconds:g} s, load {load:.1f} at the beginning\n")
    print("| fashion-mlp, an epoch | agent | bare | agent / bare | of the pairs | agent is |")
    print("|---|---|---|---|---|---|")
    for framework in frameworks:
        for recipe in RECIPES:

            def of_agent(framework: str = framework, recipe: str = recipe) -> float:
                return agent(framework, recipe, seconds)

            def of_bare(framework: str = framework, recipe: str = recipe) -> float:
                return bare(framework, recipe, seconds)

            print(row(f"{framework} {recipe}", of_agent, of_bare, pairs), flush=True)
    chosen = frameworks[0]
    print(f"\n| {chosen} tuned | sampled | not sampled | ratio | of the pairs | sampled is |")
    print("|---|---|---|---|---|---|")

    def sampled() -> float:
        return agent(chosen, "tuned", seconds)

    def unsampled() -> float:
        return agent(chosen, "tuned", seconds, watched=False)

    print(row("sampler", sampled, unsampled, pairs), flush=True)
    medians = [sampled() for _ in range(options.repeats)]
    print(
        f"\n{options.repeats} processes of {chosen} tuned: median {people.seconds(median(medians))}"
        f", coefficient of variation {people.percent(stdev(medians) / fmean(medians))}; "
        f"load {os.getloadavg()[0]:.1f} at the end"
    )


if __name__ == "__main__":
    main()
