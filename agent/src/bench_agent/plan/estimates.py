"""Estimates of how long repeats take on this machine, from the times of earlier repeats. No figure
of a result comes from here.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, median

from pydantic import Field, ValidationError

from bench_protocol.base.units import Finite, Wire
from bench_protocol.catalogue.matrix import Cell, Device, DeviceKind
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Gemm, Measurement

from ..base.home import write_durably
from ..base.messages import Timing

# Assumed seconds of a repeat without its steps, before this machine has been measured.
OVERHEAD_SECONDS: Mapping[str, float] = {"tensorflow": 8.0, "mlx": 3.0, "jax": 5.0, "torch": 6.0}
UNKNOWN_OVERHEAD_SECONDS = 8.0
# Sustained FLOP/s assumed before this machine has been measured.
ASSUMED_FLOPS: Mapping[DeviceKind, float] = {"cpu": 5e10, "metal": 2e12, "cuda": 5e12}
# A step's arithmetic is assumed to reach this share of a matrix product's FLOP/s (0.09 to 0.7 were
# measured). The rest of a step's time does not grow with the step.
BULK_EFFICIENCY = 0.2
# No device computes matrix products faster. One that was timed without waiting for the device seems
# to, and would make every estimate far too short.
MOST_FLOPS: Mapping[DeviceKind, float] = {"cpu": 2e14, "metal": 1e14, "cuda": 5e15}
# Cost of a repeat's first step, compilation and readings, in steps, where a step is long: the
# readings of cifar100-vgg16 have nine steps.
OVERHEAD_STEPS = 12


class CellTimes(Wire):
    """Times of the latest repeat of a cell.

    ``overhead_seconds``: the whole repeat without warm-up and timed part. ``settled_seconds``: how
    long its blocks took to settle, None if the budget ended first; ``tried_to_settle`` is false if
    whole epochs were timed, or the budget was too short for enough blocks. ``python``: the worker's
    interpreter; None for the agent's own.
    """

    framework: str
    device: Device
    step_flops: Finite = Field(gt=0)
    step_seconds: Finite = Field(gt=0)
    gemm_flops: Finite | None = Field(default=None, gt=0)
    overhead_seconds: Finite = Field(ge=0)
    tried_to_settle: bool
    settled_seconds: Finite | None = Field(default=None, gt=0)
    python: str | None = None

    def seconds_of_step(self, flops: float) -> float:
        """Expected seconds of a step of ``flops`` operations on the same device."""
        own_flops = self.step_flops / self.step_seconds
        bulk_flops = BULK_EFFICIENCY * (self.gemm_flops or 0.0)
        if own_flops >= bulk_flops:
            return flops / own_flops
        fixed_seconds = self.step_seconds - self.step_flops / bulk_flops
        return fixed_seconds + flops / bulk_flops

    @property
    def base_seconds(self) -> float:
        """The part of the overhead that does not grow with the length of a step."""
        return max(0.0, self.overhead_seconds - OVERHEAD_STEPS * self.step_seconds)


class MeasuredTimes(Wire):
    """Times of this machine's cells, by the cell's digest."""

    cells: dict[str, CellTimes] = Field(default={})

    def has(self, framework: str, device: Device) -> bool:
        return bool(self._of(framework, device))

    def overhead_seconds(self, cell: Cell, workload: Workload) -> float:
        """Expected seconds of a repeat without its warm-up and timed part."""
        if measured := self.cells.get(cell.digest):
            return measured.overhead_seconds
        similar = self._of(cell.framework, cell.device)
        base = OVERHEAD_SECONDS.get(cell.framework, UNKNOWN_OVERHEAD_SECONDS)
        if similar:
            base = median(times.base_seconds for times in similar)
        return base + OVERHEAD_STEPS * self._step_seconds(cell, workload)

    def repeat_seconds(self, cell: Cell, workload: Workload, timing: Timing) -> float:
        step = self._step_seconds(cell, workload)
        if timing.epochs is None:
            least = min(timing.least_seconds, timing.budget_seconds)
            timed = max(2 * step, least, self._until_settled(cell, timing.budget_seconds))
        else:
            epoch = workload.steps_per_epoch(cell.batch_size) * step
            timed = max(timing.epochs, math.ceil(timing.least_seconds / epoch)) * epoch
        warm_up = max(step, timing.warm_up_seconds)
        return self.overhead_seconds(cell, workload) + warm_up + timed

    def _step_seconds(self, cell: Cell, workload: Workload) -> float:
        if measured := self.cells.get(cell.digest):
            return measured.step_seconds
        similar = self._of(cell.framework, cell.device)
        flops = step_flops(cell, workload)
        if not similar:
            return flops / ASSUMED_FLOPS[cell.device.kind]
        return median(times.seconds_of_step(flops) for times in similar)

    def _until_settled(self, cell: Cell, budget_seconds: float) -> float:
        """Expected seconds of the timed part: of this cell, else the mean over all that tried to
        settle."""
        tried = {digest: times for digest, times in self.cells.items() if times.tried_to_settle}
        similar = [tried[cell.digest]] if cell.digest in tried else tried.values()
        ends = [min(times.settled_seconds or budget_seconds, budget_seconds) for times in similar]
        return fmean(ends) if ends else budget_seconds

    def _of(self, framework: str, device: Device) -> list[CellTimes]:
        all_times = self.cells.values()
        return [
            times for times in all_times if (times.framework, times.device) == (framework, device)
        ]


def step_flops(cell: Cell, workload: Workload) -> float:
    return cell.batch_size * workload.training_flops_per_sample


def cell_times_of(
    cell: Cell,
    workload: Workload,
    measurement: Measurement,
    timing: Timing,
    wall_seconds: float,
    python: str | None = None,
) -> CellTimes:
    """The times of a repeat, for estimates. ``wall_seconds``: from before its process started.
    ``python``: the worker's interpreter; None for the agent's own."""
    blocks = measurement.blocks
    timed_seconds = blocks.total_ns / 1e9
    enough = timing.min_blocks * timing.block_seconds <= timing.budget_seconds
    return CellTimes(
        framework=cell.framework,
        device=cell.device,
        step_flops=step_flops(cell, workload),
        step_seconds=timed_seconds / blocks.steps,
        gemm_flops=_gemm_flops(measurement.gemm, cell.device.kind),
        overhead_seconds=max(0.0, wall_seconds - timed_seconds - blocks.warm_up_ns / 1e9),
        tried_to_settle=timing.epochs is None and enough,
        settled_seconds=timed_seconds if blocks.stop_reason == "settled" else None,
        python=python,
    )


def _gemm_flops(gemm: Gemm | None, kind: DeviceKind) -> float | None:
    """FLOP/s of a matrix product; an impossible figure counts as that of an unmeasured device."""
    if gemm is None:
        return None
    flops = 2e9 * gemm.size**3 / gemm.duration_ns
    return flops if flops <= MOST_FLOPS[kind] else ASSUMED_FLOPS[kind] / BULK_EFFICIENCY


def load(path: Path) -> MeasuredTimes:
    """Read the stored times; empty if the file is absent, damaged or of another version."""
    try:
        return MeasuredTimes.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return MeasuredTimes()


def note(path: Path, cell: Cell, new: CellTimes) -> None:
    """Store a cell's times in place of its last ones.

    Raises:
        HomeProblem: it cannot be written.
    """
    measured_times = MeasuredTimes(cells={**load(path).cells, cell.digest: new})
    write_durably(path, measured_times.model_dump_json().encode())
