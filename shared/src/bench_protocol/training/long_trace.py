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

# Largest relative deviations on a CPU in float32 (tests/engines/test_long_trace.py, every loop of
# four frameworks). Seen without a convolution: 3.6e-7; 7.3e-6 in losses and 2.5e-5 in movements on
# a processor where rounding decides one ReLU. With a convolution it decides a maximum or a ReLU now
# and then: 5.1e-4 and 3.6e-3. A learning rate 1 % too high: above 8e-4.
SMOOTH_LOSS, SMOOTH_MOVEMENT = 1e-4, 2e-4
KINKED_LOSS, KINKED_MOVEMENT = 2e-3, 1e-2


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
        architecture: of the machine's processor; see :mod:`.architectures`.
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
        return KINKED_LOSS, KINKED_MOVEMENT, ""
    return SMOOTH_LOSS, SMOOTH_MOVEMENT, ""
