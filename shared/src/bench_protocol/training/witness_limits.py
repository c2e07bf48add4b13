"""Limits of the witness: how far losses and movements may be from their recomputation.

They are finite for every device and precision. Where nothing was measured they follow from the
precision's unit roundoff, and ``source`` says so.
"""

import math
from dataclasses import dataclass
from typing import Literal

from ..catalogue.layers import LSTM
from ..catalogue.matrix import Cell, DeviceKind, Precision
from ..catalogue.workloads import Workload
from ..payload.witness import TrainedTensor
from .reading import SHORT_STEPS, Kind, Part, convolves, is_steady

# Half the distance between 1 and the next number.
UNIT_ROUNDOFF: dict[Precision, float] = {
    "float32": 2.0**-24,
    "tf32": 2.0**-11,
    "mixed_float16": 2.0**-11,
    "mixed_bfloat16": 2.0**-8,
}
# A sum of n products is off by at most LAMBDA sqrt(n) u, relative to its terms, with a probability
# of nearly one (Higham & Mary 2019, A new approach to probabilistic rounding error analysis).
LAMBDA = 4.0
# A deviation is wrong beyond this many times a derived limit; between the two it is unverified.
WRONG_BEYOND = 10.0
# Largest deviations allowed of a loss and of a movement, measured with TensorFlow, MLX, JAX and
# PyTorch on x86-64, with JAX and PyTorch on one GPU (docs/results.md, "Readings"). Those of short
# readings come on top of the range that rounding explains; those of readings with dropout on top of
# the range over masks. From the empty state of a first reading rounding decides the direction of
# small gradients. ``steady``: all readings of such a workload (:func:`.reading.is_steady`); with
# CUDA beyond float32 none was measured, and they are a CPU's of bfloat16. Of each kind: without
# convolutions, with them.
Row = Kind | Literal["steady"]
_Pair = tuple[float, float]
_Table = dict[Row, tuple[_Pair, _Pair]]
_STEADY_COARSE: tuple[_Pair, _Pair] = ((5e-3, 2e-1), (1e-2, 6e-1))
_FLOAT32: _Table = {
    "short": ((1e-6, 2e-4), (1e-5, 2e-3)),
    "first": ((1e-6, 2e-4), (1e-5, 2e-3)),
    "deep": ((2e-3, 2e-2), (2e-3, 2e-1)),
    "masks": ((1e-3, 2e-3), (1e-3, 2e-3)),
    "steady": ((1e-5, 5e-5), (1e-4, 2e-2)),
}
_CUDA_TEN_BITS: _Table = {
    "short": ((5e-5, 1e-2), (1.5e-4, 1e-1)),
    "first": ((3e-4, 1e-2), (5e-4, 1.5e-1)),
    "deep": ((1e-2, 5e-2), (2e-3, 4e-1)),
    "masks": ((5e-3, 5e-2), (5e-3, 5e-2)),
    "steady": _STEADY_COARSE,
}
MEASURED: dict[tuple[DeviceKind, Precision], _Table] = {
    ("cpu", "float32"): _FLOAT32,
    ("cpu", "mixed_bfloat16"): {
        "short": ((5e-4, 2e-2), (2e-3, 3e-1)),
        "first": ((5e-4, 1.5e-1), (2e-3, 3e-1)),
        "deep": ((1e-2, 5e-2), (2e-2, 5e-1)),
        "masks": ((2e-2, 1e-1), (2e-2, 3e-1)),
        "steady": _STEADY_COARSE,
    },
    ("cuda", "float32"): _FLOAT32,
    ("cuda", "tf32"): _CUDA_TEN_BITS,
    ("cuda", "mixed_float16"): _CUDA_TEN_BITS,
    ("cuda", "mixed_bfloat16"): {
        "short": ((5e-4, 3e-2), (2e-4, 2e-1)),
        "first": ((1e-3, 4e-2), (1e-3, 3e-1)),
        "deep": ((5e-3, 1e-1), (2e-3, 4e-1)),
        "masks": ((5e-3, 5e-2), (5e-3, 5e-2)),
        "steady": _STEADY_COARSE,
    },
}
START: dict[tuple[DeviceKind, Precision], float] = {
    ("cpu", "float32"): 1e-6,
    ("cpu", "mixed_bfloat16"): 1.5e-3,
    ("cuda", "float32"): 1e-6,
    ("cuda", "tf32"): 2e-5,
    ("cuda", "mixed_float16"): 5e-5,
    ("cuda", "mixed_bfloat16"): 5e-4,
}
# Largest median of the deviations of a deep reading's movements, with convolutions. Rounding
# changes single tensors far, steps that are left out change all of them (docs/results.md,
# "Readings"). In half precision honest medians come as near as 4e-2, so it has no such limit.
MEDIAN, MEDIAN_PRECISIONS = 5e-2, ("float32", "tf32")
# Of steady readings in float32: a ReLU that rounding decides moves one gamma by 2e-3, and the
# median by 8e-7.
STEADY_MEDIAN = 5e-5


# Of the movements of running statistics in float32: an unbiased variance of 2,048 values is 5e-4
# above the biased one.
STATISTICS = 1e-4


@dataclass(frozen=True)
class Limits:
    """Largest relative deviations of a loss, of a movement, and of one of running statistics.

    ``median``: of the median of a reading's movements; None where it has no limit of its own.
    ``wrong_beyond``: how many times a limit is certainly wrong. ``source``: their origin, formatted
    to end a sentence.
    """

    loss: float
    movement: float
    source: str
    statistics: float
    wrong_beyond: float = 1.0
    median: float | None = None


def start_limit(workload: Workload, cell: Cell) -> float:
    """The largest relative deviation allowed of the loss before the first step."""
    measured = START.get((cell.device.kind, cell.precision))
    return derived_limit(workload, cell.precision, 1) if measured is None else measured


def limits(workload: Workload, cell: Cell, part: Part) -> Limits:
    """The limits of a reading that is recomputed: measured or derived ones. A deep reading that is
    no longer than a short one has its limits where no convolution is trained."""
    device, precision, convolved = cell.device.kind, cell.precision, convolves(workload)
    is_short = part.kind == "deep" and part.steps <= SHORT_STEPS and not convolved
    kind: Row = "steady" if is_steady(workload) else "short" if is_short else part.kind
    has_median = kind == "deep" and convolved and precision in MEDIAN_PRECISIONS
    median = MEDIAN if has_median else None
    if kind == "steady" and precision == "float32":
        median = STEADY_MEDIAN
    table, source, wrong_beyond = MEASURED.get((device, precision), _FLOAT32), "measured", 1.0
    loss, movement = table[kind][convolved]
    if not is_measured(device, precision):
        derived = derived_limit(workload, precision, part.steps)
        loss, movement = max(derived, loss), max(derived, movement)
        median = max(derived, STEADY_MEDIAN) if kind == "steady" and median else median
        source = f"derived from a unit roundoff of {UNIT_ROUNDOFF[precision]:.1e}"
        wrong_beyond = WRONG_BEYOND
    elif kind == "steady" and device != "cpu":
        source = "measured on a CPU"
    statistics = min(STATISTICS, movement) if precision == "float32" else movement
    return Limits(loss, movement, source, statistics, wrong_beyond, median)


def still_limit(tensor: TrainedTensor, steps: int) -> float:
    """The movement beyond which a tensor moved in float32: each of its weights, of at most 1, by
    more than ten times the rounding of each step."""
    return WRONG_BEYOND * UNIT_ROUNDOFF["float32"] * steps * math.sqrt(math.prod(tensor.shape))


def can_conform(device: DeviceKind, precision: Precision) -> bool:
    """Whether limits are tight enough for a session within them to be conformant: they were
    measured, or derived from float32. Derived limits of coarser precisions hide what a reading is
    there to show."""
    return is_measured(device, precision) or precision == "float32"


def is_measured(device: DeviceKind, precision: Precision) -> bool:
    return (device, precision) in MEASURED


def derived_limit(workload: Workload, precision: Precision, steps: int) -> float:
    """The relative deviation that rounding explains after some steps.

    Each product of a step, one forward and two backward for each kernel and time step, is off by
    ``LAMBDA sqrt(n) u``, n being the longest sum of the network. These errors are independent, so
    their sum grows as the root of their number.
    """
    sums, products = [1], 0
    for layer, inputs in zip(workload.layers, workload.shapes[:-1], strict=True):
        kernels = [shape for shape in layer.weight_shapes(inputs).values() if len(shape) > 1]
        sums += [math.prod(shape[:-1]) for shape in kernels]
        products += 3 * len(kernels) * (inputs[0] if isinstance(layer, LSTM) else 1)
    unit = UNIT_ROUNDOFF[precision]
    return LAMBDA * math.sqrt(max(sums)) * unit * math.sqrt(products * steps)
