"""How long a repeat may take and be silent, and why a first one may be silent for long."""

from bench_protocol.matrix import Cell

from ..plan.estimates import MeasuredTimes
from .worker_process import Limits

LEAST_TOTAL_SECONDS = 600.0
ESTIMATE_FACTOR = 10
# TensorFlow warns of "30 minutes or longer" (tensorflow/core/common_runtime/gpu/gpu_device.cc).
PTX_SECONDS = 3600.0


def may_compile_kernels(cell: Cell, measured_times: MeasuredTimes) -> bool:
    """Whether the driver may first have to compile the framework's GPU kernels.

    TensorFlow's wheels contain machine code up to compute capability 8.9, and PTX for newer GPUs.
    The driver compiles PTX in the first process and keeps the result in its cache.
    """
    place = (cell.framework, cell.device)
    first = all((times.framework, times.device) != place for times in measured_times.cells.values())
    return cell.framework == "tensorflow" and cell.device.kind == "cuda" and first


def why_silent(cell: Cell, measured_times: MeasuredTimes) -> str | None:
    """What to tell the user before a repeat that may be silent for long, or None."""
    if not may_compile_kernels(cell, measured_times):
        return None
    return (
        f"{cell.framework} on {cell.device}: the driver may compile its GPU kernels in the first "
        f"process of this machine (PTX); up to {PTX_SECONDS / 60:.0f} minutes without a sign are "
        "normal"
    )


def limits_for(
    cell: Cell, estimate_seconds: float, measured_times: MeasuredTimes = MeasuredTimes()
) -> Limits:
    """The limits of one repeat.

    Args:
        estimate_seconds: expected length of the repeat; 0 if unknown.
        measured_times: without them a repeat may be the machine's first.
    """
    total_seconds = max(LEAST_TOTAL_SECONDS, ESTIMATE_FACTOR * estimate_seconds)
    if may_compile_kernels(cell, measured_times):
        return Limits(silence_seconds=PTX_SECONDS, total_seconds=total_seconds + PTX_SECONDS)
    return Limits(total_seconds=total_seconds)
