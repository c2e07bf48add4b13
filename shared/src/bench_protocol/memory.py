"""How much memory a training needs, from the workload's literal alone.

For deciding what cannot fit, so it counts only what every framework has to hold. What a framework
takes for itself and for its kernels' scratch space comes on top (see ``docs/results.md``).
"""

import math
from dataclasses import dataclass
from itertools import pairwise

from .layers import LSTM, Layer, Residual, Shape
from .matrix import Precision
from .workloads import Optimizer, Workload

FLOAT_BYTES = 4
HALF_BYTES = 2
# Values that an optimiser keeps for each weight: RMSprop's mean of squares, Adam's two moments,
# SGD's momentum.
OPTIMIZER_SLOTS = {"rmsprop": 1, "adam": 2, "sgd": 1}
LSTM_VALUES = 6  # four gates, the cell and the output, of each unit at each step


@dataclass(frozen=True)
class TrainingMemory:
    """What has to be held, in bytes. ``samples``: the whole data set as it lies on the host."""

    weights: int
    gradients: int
    optimizer_state: int
    activations: int
    samples: int

    @property
    def on_device(self) -> int:
        """All that the device needs at once."""
        return self.weights + self.gradients + self.optimizer_state + self.activations


def training_memory(
    workload: Workload, batch_size: int, precision: Precision = "float32"
) -> TrainingMemory:
    """Memory of one training step.

    Weights, their gradients and the optimiser's state are float32 in every precision. Activations
    are what the layers keep of a batch for the backward pass, in half the bytes with mixed
    precision, and the gradient of the largest of them beside. Frozen layers keep nothing: two
    neighbours are there at once.
    """
    frozen, trained = _weights(workload)
    kept_bytes = HALF_BYTES if precision.startswith("mixed") else FLOAT_BYTES
    return TrainingMemory(
        weights=FLOAT_BYTES * (frozen + trained),
        gradients=FLOAT_BYTES * trained,
        optimizer_state=FLOAT_BYTES * trained * _slots(workload.optimizer),
        activations=kept_bytes * batch_size * _kept_values(workload),
        samples=_samples_bytes(workload),
    )


def _weights(workload: Workload) -> tuple[int, int]:
    """Numbers of frozen and of trained weights."""
    counts = [
        sum(math.prod(shape) for shape in layer.weight_shapes(inputs).values())
        for layer, inputs in zip(workload.layers, workload.shapes[:-1], strict=True)
    ]
    border = workload.frozen_layers
    return sum(counts[:border]), sum(counts[border:])


def _slots(optimizer: Optimizer) -> int:
    return OPTIMIZER_SLOTS[optimizer.kind]


def _kept_values(workload: Workload) -> int:
    """Values of one sample that are there at once in the worst moment of a step."""
    sizes = [math.prod(shape) for shape in workload.shapes]
    border = workload.frozen_layers
    passing = max((sum(pair) for pair in pairwise(sizes[: border + 1])), default=0)
    kept = sum(
        _layer_values(layer, inputs)
        for layer, inputs in zip(workload.layers[border:], workload.shapes[border:-1], strict=True)
    )
    return max(passing, sizes[border] + kept + max(sizes[border:]))


def _layer_values(layer: Layer, inputs: Shape) -> int:
    """Values of one sample that a layer keeps for its backward pass: its outputs, and within."""
    if isinstance(layer, Residual):
        return sum(_layer_values(part.layer, part.inputs) for part in layer.parts(inputs))
    if isinstance(layer, LSTM):
        return inputs[0] * layer.units * LSTM_VALUES
    return math.prod(layer.output_shape(inputs))


def _samples_bytes(workload: Workload) -> int:
    """Samples as uint8 and labels as int32 of all splits."""
    data_set = workload.data_set
    count = data_set.train_samples + data_set.validation_samples + data_set.test_samples
    return count * (math.prod(data_set.sample_shape) + FLOAT_BYTES)
