"""Limits of the short traces: how far losses and movements may be from their recomputation.

They follow from the definition of a workload and need no figure of its own.
"""

from collections.abc import Iterable, Iterator

from ..catalogue.layers import LSTM, Conv2D, Dense, Layer, MaxPool2D, Residual
from ..catalogue.matrix import DeviceKind, Precision
from ..catalogue.workloads import Workload

# Under random seeds nearly all traces of the small workloads stay within 1e-5 for this many steps
# (docs/results.md).
MOST_STEPS = 3
# Largest relative deviation allowed at each step. A missing entry: not measured for this kind of
# device and precision. Then no trace conforms, and one beyond ``UNMEASURED`` is wrong.
#
# CPU, float32, measured with four frameworks on x86-64 (docs/results.md). Where rounding decides no
# ReLU and no maximum, it is below 1e-5 at every step, and every planted fault of
# tests/engines/test_faults.py is above 1e-4. RMSprop and Adam divide by the root of a mean square:
# a weight whose gradient is nearly zero moves a full step in a direction that rounding decides. So
# a tolerance is at least ``ROUNDINGS`` times the recomputed effect of rounding (:func:`widened`).
Tolerances = tuple[float, ...]
TOLERANCES: dict[tuple[DeviceKind, Precision, str], Tolerances] = {
    ("cpu", "float32", "sgd"): (1e-5,) * MOST_STEPS,
    ("cpu", "float32", "workload"): (1e-5,) * MOST_STEPS,
    # About three times the largest seen over all workloads (docs/results.md). Coarse: rounding to
    # eight bits hides faults that float32 shows.
    ("cpu", "mixed_bfloat16", "sgd"): (4e-3,) * MOST_STEPS,
    ("cpu", "mixed_bfloat16", "workload"): (2e-3, 4e-3, 1.5e-2),
}
ROUNDINGS = 4
# Limits where nothing was measured: beyond them the computation is a different one. Derived, not
# measured: at least three times those of a CPU in bfloat16, the coarsest precision there is.
CERTAINLY_WRONG = 1e-2
UNMEASURED: dict[str, Tolerances] = {
    "sgd": (CERTAINLY_WRONG,) * MOST_STEPS,
    "workload": (1e-2, 5e-2, 5e-2),
}
# Relative deviations of movements. On a CPU in float32 the largest seen (docs/results.md, "Seeded
# traces") were 1.7e-6 without a trained ReLU or maximum, and 1.8e-3 with one under all but five of
# 2,918 nonces; in a deep network 1.8e-2, in an earlier trial 2e-2. A learning rate 1 % off is
# 1e-2. In mixed_bfloat16 the largest was 8.4e-2.
SMOOTH_MOVED, KINKED_MOVED, DEEP_MOVED = 1e-4, 5e-3, 6e-2
# Trained layers with weights from which on a network is deep: cifar100-vgg16 trains 16, the other
# workloads at most 5.
DEEP_LAYERS = 8
# Losses of a deep network after the first step, under its own optimiser; seen under 28 nonces:
# 6.4e-6 (PyTorch).
DEEP_LOSS = 1e-4
ROUNDED_MOVED = 0.3
# Limit on other devices: a tensor that moved twice as far or not at all is wrong.
UNMEASURED_MOVED = 0.99
LEAST_MOVEMENT = 1e-12


def movement_limit(workload: Workload, device: DeviceKind, precision: Precision) -> float:
    """The largest relative deviation allowed of a movement."""
    if (device, precision) == ("cpu", "mixed_bfloat16"):
        return ROUNDED_MOVED
    if (device, precision) != ("cpu", "float32"):
        return UNMEASURED_MOVED
    if is_deep(workload):
        return DEEP_MOVED
    return KINKED_MOVED if has_kinks(workload) else SMOOTH_MOVED


def is_deep(workload: Workload) -> bool:
    """True if the workload is deep enough for rounding errors to grow in each step."""
    trained = workload.layers[workload.frozen_layers :]
    return sum(isinstance(part, Conv2D | Dense | LSTM) for part in _parts(trained)) >= DEEP_LAYERS


def has_kinks(workload: Workload) -> bool:
    """Whether the workload trains a layer where rounding can decide which way the gradient
    goes: at a ReLU's zero, at equal inputs of a maximum."""
    return any(map(_is_kinked, workload.layers[workload.frozen_layers :]))


def _parts(layers: Iterable[Layer]) -> Iterator[Layer]:
    """The layers, and those of residual blocks one by one."""
    for layer in layers:
        if isinstance(layer, Residual):
            yield from (*layer.main, *layer.shortcut)
        else:
            yield layer


def _is_kinked(layer: Layer) -> bool:
    kinked = isinstance(layer, MaxPool2D | Residual)
    return kinked or getattr(layer, "activation", None) == "relu"


def loss_limits(
    workload: Workload, table: Tolerances | None, optimizer: str, steps: int
) -> Tolerances:
    """The largest relative deviation allowed of the loss at each step, whatever rounding decides.

    Args:
        table: of :data:`TOLERANCES`; None where nothing was measured.
    """
    limits = (UNMEASURED[optimizer] if table is None else table)[:steps]
    if optimizer == "workload" and is_deep(workload):
        limits = (limits[0], *(max(DEEP_LOSS, limit) for limit in limits[1:]))
    return limits


def widened(limits: Tolerances, rounding: Tolerances) -> Tolerances:
    """The limits, or ``ROUNDINGS`` times what rounding may change where that is more.

    Args:
        rounding: as long as ``limits``, or empty where it is not known.
    """
    return tuple(
        max(limit, ROUNDINGS * rounded)
        for limit, rounded in zip(limits, rounding or len(limits) * (0.0,), strict=True)
    )
