"""Verdict on the long trace: many steps in one call, over an epoch's end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..base import format as people
from ..catalogue import architectures
from ..catalogue.layers import Conv2D, Residual
from ..catalogue.matrix import Cell
from ..catalogue.workloads import Workload
from ..payload.result import Trace
from . import witness_limits
from .conformance import LONG_STEPS, Reference, deviations
from .trace_limits import has_kinks

# Largest relative deviations of losses and movements on a CPU in float32. Without a trained ReLU or
# maximum every loop of four frameworks was within 3.6e-7 (tests/engines/test_long_trace.py). With
# one, rounding decides it under some nonces: 1.0e-4 and 3.5e-4 were the largest of 150 nonces of
# fashion-mlp and of mnist-dense (PyTorch, benchmarks.limits --only traces). With a convolution
# it does so more often: 2.0e-3 and 2.5e-2 were the largest of 60 nonces each of mnist-cnn and of
# fashion-convnet. A learning rate 1 % too high moves every tensor by 1e-2, which short traces show.
SMOOTH = (1e-4, 2e-4)
KINKED = (1e-3, 5e-3)
CONVOLVED = (1e-2, 1e-1)


@dataclass(frozen=True)
class LongVerdict:
    """``deviation``: the largest relative one; infinite if a value is missing or not finite."""

    kind: Literal["conformant", "wrong_result", "unverified"]
    sentence: str
    deviation: float | None = None


def judge(
    cell: Cell,
    workload: Workload,
    traces: Sequence[Trace],
    reference: Reference,
    architecture: str = architectures.MEASURED,
) -> LongVerdict:
    """Compare a cell's long trace with its recomputation.

    Args:
        traces: all of the cell's, in any order; the long one has ``steps``.
        architecture: of the machine's processor; see :mod:`..catalogue.architectures`.
    """
    trace = next((trace for trace in traces if trace.steps), None)
    if trace is None:
        return LongVerdict("unverified", "there is no long trace")
    job = (trace.optimizer, trace.batch_size, trace.seed, trace.steps)
    if job != ("sgd", reference.batch_size, reference.seed, LONG_STEPS):
        return LongVerdict("unverified", "the long trace belongs to another job")
    right = reference.figures
    if len(trace.movements) != len(right.movements):
        return LongVerdict("unverified", "the long trace has not every tensor's movement")
    off_losses = max(deviations(trace.losses, [right.losses[step - 1] for step in LONG_STEPS]))
    off_movements = max(deviations(trace.movements, right.movements))
    loss_limit, movement_limit, source = limits(cell, workload)
    factor = architectures.wrong_beyond(cell.device.kind, architecture)
    for what, off, limit in (
        ("losses", off_losses, loss_limit),
        ("movements", off_movements, movement_limit),
    ):
        if not off <= factor * limit or off == math.inf:
            return LongVerdict(
                "wrong_result",
                f"the {what} of the long trace are off by {people.deviation(off)}, "
                f"{people.deviation(factor * limit)} is allowed{source}",
                off,
            )
    if off_losses == off_movements == 0:
        return LongVerdict("conformant", "the long trace equals its recomputation", 0.0)
    within = off_losses <= loss_limit and off_movements <= movement_limit
    measured_on = "" if within else f" on {architectures.MEASURED}, not measured on {architecture}"
    return LongVerdict(
        "conformant" if within else "unverified",
        f"the long trace is off by {people.deviation(off_losses)} in losses, "
        f"{people.deviation(loss_limit)} is allowed, and by {people.deviation(off_movements)} in "
        f"movements, {people.deviation(movement_limit)} is allowed{source}{measured_on}",
        max(off_losses, off_movements),
    )


def limits(cell: Cell, workload: Workload) -> tuple[float, float, str]:
    """Largest deviation of losses and of movements, and how they came about.

    Where nothing was measured they are the witness's limits of many steps.
    """
    if (cell.device.kind, cell.precision) != ("cpu", "float32"):
        derived = witness_limits.limits(workload, cell.device.kind, cell.precision)
        return derived.many, derived.many_moved, " (not measured: the limits of the witness)"
    trained = workload.layers[workload.frozen_layers :]
    if any(isinstance(layer, Conv2D | Residual) for layer in trained):
        return *CONVOLVED, ""
    return *(KINKED if has_kinks(workload) else SMOOTH), ""
