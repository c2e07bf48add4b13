"""A short repeat for each framework and device that this machine has not measured yet.

Without it the estimate of a long plan could be wrong by any factor. Only the measured time of
a step is stored; a calibration is no result.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench_protocol.catalogue.seeded import DEFAULT_SEED

from ..base.home import Home
from ..base.messages import Answer, Job, Timing
from ..plan import estimates
from ..plan.plan import Plan, PlannedCell
from .patience import limits_for, place_of, why_silent
from .worker_process import Limits, run_task, worker_command

# For shorter plans calibration would cost more time than it saves.
WORTH_SECONDS = 300.0
SHORT = Timing(warm_up_seconds=0.2, budget_seconds=3.0)

RunJob = Callable[[Job, Path, Limits, Sequence[str]], Answer]


def is_worth_it(plan: Plan) -> bool:
    """Whether the plan is long enough for its estimate to matter."""
    return plan.estimate_seconds > WORTH_SECONDS


def unknown(plan: Plan, home: Home) -> list[PlannedCell]:
    """The quickest planned cell of each framework and device without a measured time."""
    measured_times = estimates.load(home.measured_times)
    quickest: dict[tuple[str, str], PlannedCell] = {}
    for planned in sorted(plan.cells, key=lambda p: estimates.step_flops(p.cell, p.workload)):
        cell = planned.cell
        if not measured_times.has(cell.framework, cell.device):
            quickest.setdefault((cell.framework, str(cell.device)), planned)
    return list(quickest.values())


def calibrate(
    cells: list[PlannedCell],
    home: Home,
    show: Callable[[str], None],
    run_job: RunJob = run_task,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run each cell briefly and store its measured time; a cell that fails stores nothing."""
    for planned in cells:
        cell = planned.cell
        show(f"calibrating: {cell.framework} on {cell.device}")
        measured_times = estimates.load(home.measured_times)
        if reason := why_silent(place_of(planned), measured_times):
            show(reason)
        job = Job(workload=planned.workload, cell=cell, seed=DEFAULT_SEED, timing=SHORT)
        log = home.logs / "calibration" / f"{cell.framework}-{cell.device.kind}.log"
        began = clock()
        limits = limits_for(place_of(planned), planned.estimate_seconds, measured_times)
        command = worker_command(planned.python)
        measurement = run_job(job, log, limits, command).outcome.measurement
        if measurement:
            wall_seconds = clock() - began
            times = estimates.cell_times_of(
                cell, planned.workload, measurement, SHORT, wall_seconds, planned.python
            )
            estimates.note(home.measured_times, cell, times)
