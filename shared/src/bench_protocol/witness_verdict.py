"""Verdict on the witness: the timed session's losses and movements against a recomputation.

Limits are finite for every device and precision. Where nothing was measured they are derived from
the precision's unit roundoff, and the verdict's sentence says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .layers import Conv2D
from .matrix import Cell, DeviceKind, Precision
from .recompute import Band, trained_tensors
from .workloads import Workload

# A loss is compared relatively, below this absolutely: a loss of 0.002 has no digits to lose.
LOSS_FLOOR = 0.1
# Steps that rounding has little time to grow in.
FEW_STEPS = 4


@dataclass(frozen=True)
class Limits:
    """Largest deviations of a loss after one step, after few and after many, and of a movement.

    ``source``: how they came about, as the end of a sentence.
    """

    first: float
    few: float
    many: float
    movement: float
    source: str


# Measured with TensorFlow, MLX, JAX and PyTorch, naive and tuned, two seeds, steps 1, 24 and 64 (8
# and 24), each about three times the largest deviation. Without convolutions (32 sessions):
# 1.2e-7, 1.3e-5, movements 8.9e-7 (8 sessions). With convolutions and pooling (32 sessions) a ReLU
# or a maximum that rounding decides turns a gradient: 3.4e-7, 4.7e-2, movements 5.2e-2
# (4 sessions). With Dropout all of 32 sessions lay in the band.
MEASURED: dict[tuple[DeviceKind, Precision, bool], Limits] = {
    ("cpu", "float32", False): Limits(1e-6, 1e-5, 5e-5, 1e-5, "measured, n = 32"),
    ("cpu", "float32", True): Limits(1e-6, 1e-3, 1.5e-1, 1.5e-1, "measured, n = 32"),
}
# Half the distance between 1 and the next number.
UNIT_ROUNDOFF: dict[Precision, float] = {
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "mixed_float16": 2.0**-11,
    "mixed_bfloat16": 2.0**-8,
}
# A GPU sums in another order and may use Winograd's products, which lose about two bits.
OTHER_DEVICE = 4
# Deviations in units of roundoff: of one forward pass, and after few steps.
FIRST_ROUNDOFFS, FEW_ROUNDOFFS = 4, 16
DERIVED_MANY, DERIVED_MOVEMENT = 0.5, 0.5


@dataclass(frozen=True)
class WitnessVerdict:
    """``sentence`` is for people; ``deviation`` and ``limit`` are those of the value that decides.

    The value that decides is the first one beyond its limit, else the one nearest to it.
    """

    kind: Literal["conformant", "wrong_result", "unverified"]
    sentence: str
    deviation: float | None = None
    limit: float | None = None


def limits(workload: Workload, device: DeviceKind, precision: Precision) -> Limits:
    """Measured limits, or derived ones."""
    convolves = any(isinstance(layer, Conv2D) for layer in workload.layers)
    if found := MEASURED.get((device, precision, convolves)):
        return found
    if precision == "float32":
        base = MEASURED["cpu", "float32", convolves]
        return Limits(
            OTHER_DEVICE * base.first,
            OTHER_DEVICE * base.few,
            OTHER_DEVICE * base.many,
            OTHER_DEVICE * base.movement,
            f"not measured on {device}: {OTHER_DEVICE} times the limit of a CPU",
        )
    unit = UNIT_ROUNDOFF[precision]
    return Limits(
        FIRST_ROUNDOFFS * unit,
        FEW_ROUNDOFFS * unit,
        DERIVED_MANY,
        DERIVED_MOVEMENT,
        f"not measured in {precision} on {device}: derived from its unit roundoff of {unit:.1e}",
    )


def judge(
    cell: Cell,
    workload: Workload,
    steps: Sequence[int],
    losses: Sequence[float | None],
    step_count: int,
    reference: Band | None,
    *,
    movements: Sequence[float | None] = (),
    moved_steps: int | None = None,
    expected_step_count: int | None = None,
) -> WitnessVerdict:
    """Compare a witness with the recomputation of its job.

    Args:
        steps: after which each loss was read, counted from 1, rising.
        losses: None where a loss was not finite.
        step_count: steps that the session counted.
        reference: of at least ``steps[-1]`` steps; None if it was not recomputed.
        movements: of each trained tensor, in the catalogue's order; None where not finite.
        moved_steps: after how many steps ``movements`` were read. They are compared where the
            reference's are of the same step; else every tensor must have moved.
        expected_step_count: warm-up and timed steps, as the result says them; None: not compared.
    """
    tensors = [f"{index}/{name}" for index, name in trained_tensors(workload)]
    if wrong := _wrong_at_once(steps, losses, step_count, expected_step_count, movements, tensors):
        return WitnessVerdict("wrong_result", wrong, math.inf)
    if reference is None:
        return WitnessVerdict("unverified", "the witness was not recomputed")
    known = len(reference.low.losses)
    if not steps or steps[-1] > known:
        return WitnessVerdict(
            "unverified", f"{known} steps were recomputed, not {list(steps)[-1:]}"
        )
    allowed = limits(workload, cell.device.kind, cell.precision)
    compared = [
        (f"the loss of step {step}", _deviation(loss, low, high, LOSS_FLOOR), limit)
        for step, loss, low, high, limit in (
            (
                step,
                loss or 0.0,
                reference.low.losses[step - 1],
                reference.high.losses[step - 1],
                _limit(allowed, step),
            )
            for step, loss in zip(steps, losses, strict=True)
        )
    ]
    if movements and moved_steps == known:
        compared += [
            (f"the movement of {name}", _deviation(moved or 0.0, low, high, 0.0), allowed.movement)
            for name, moved, low, high in zip(
                tensors, movements, reference.low.movements, reference.high.movements, strict=True
            )
        ]
    return _verdict(compared, allowed)


def _verdict(compared: list[tuple[str, float, float]], allowed: Limits) -> WitnessVerdict:
    for name, deviation, limit in compared:
        if not deviation <= limit:
            return WitnessVerdict(
                "wrong_result",
                f"{name} is off by {deviation:.1e}, {limit:.1e} is allowed ({allowed.source})",
                deviation,
                limit,
            )
    name, deviation, limit = max(compared, key=lambda value: value[1] / value[2])
    return WitnessVerdict(
        "conformant",
        f"the witness is what was recomputed: {name} is off by {deviation:.1e}, "
        f"{limit:.1e} is allowed ({allowed.source})",
        deviation,
        limit,
    )


def _wrong_at_once(
    steps: Sequence[int],
    losses: Sequence[float | None],
    step_count: int,
    expected_step_count: int | None,
    movements: Sequence[float | None],
    tensors: Sequence[str],
) -> str | None:
    """What is wrong whatever was recomputed."""
    for step, loss in zip(steps, losses, strict=True):
        if loss is None or not math.isfinite(loss):
            return f"the loss of step {step} is not finite"
    if expected_step_count is not None and step_count != expected_step_count:
        return f"the session counted {step_count} steps, it was told to train {expected_step_count}"
    if movements and len(movements) != len(tensors):
        return f"{len(movements)} movements were sent, {len(tensors)} tensors are trained"
    for name, moved in zip(tensors, movements, strict=False):
        if moved is None or not math.isfinite(moved):
            return f"the movement of {name} is not finite"
        if moved <= 0:
            return f"{name} has not moved"
    return None


def _limit(allowed: Limits, step: int) -> float:
    if step == 1:
        return allowed.first
    return allowed.few if step <= FEW_STEPS else allowed.many


def _deviation(value: float, low: float, high: float, floor: float) -> float:
    """How far a value lies outside its range, relatively; 0 inside."""
    if low <= value <= high:
        return 0.0
    nearest = low if value < low else high
    return abs(value - nearest) / max(nearest, floor)
