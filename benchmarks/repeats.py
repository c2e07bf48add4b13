"""One repeat of the agent's own worker, in a fresh process, for the benchmarks beside this file."""

import sys
import tempfile
from pathlib import Path

from bench_agent.job import Job, Timing
from bench_agent.runner import run_job
from bench_protocol.matrix import Cell, DataKind, Device, Recipe
from bench_protocol.result import Measured, Measurement
from bench_protocol.seeded import DEFAULT_SEED
from bench_protocol.workloads import Workload

# The worker as it is, but for its clock.
CPU_CLOCK_WORKER = """
import time
from functools import partial
from bench_agent import worker
worker.work = partial(worker.work, clock=time.process_time_ns)
worker.main()
"""


def cell_of(
    framework: str, workload: Workload, recipe: Recipe, data: DataKind = "generated"
) -> Cell:
    """A cell on the CPU, in float32, at the workload's own batch size."""
    return Cell(
        workload=workload.name,
        workload_digest=workload.digest,
        framework=framework,
        device=Device(kind="cpu"),
        recipe=recipe,
        batch_size=workload.batch_size,
        precision="float32",
        data=data,
    )


def measured(
    cell: Cell, workload: Workload, timing: Timing, clock: str, seed: str = DEFAULT_SEED
) -> Measurement:
    """What one fresh worker measured by the ``wall`` or the ``cpu`` clock.

    Raises:
        SystemExit: it did not measure; with the end of its log.
    """
    job = Job(workload=workload, cell=cell, seed=seed, timing=timing)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-c", CPU_CLOCK_WORKER] if clock == "cpu" else None
        outcome = run_job(job, log, command=command).outcome
        if not isinstance(outcome, Measured):
            raise SystemExit(f"{cell}: {outcome}\n{log.read_text(errors='replace')[-2000:]}")
    return outcome.measurement
