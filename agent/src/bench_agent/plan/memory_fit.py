"""Memory fit: how much memory a training needs, and whether a cell fits into this machine.

A lower limit, computed from the workload: the arrays that every framework must hold, and the memory
of a worker without training. Scratch space of kernels is not counted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from bench_protocol.base import format as people
from bench_protocol.catalogue.layers import LSTM, Layer, Residual, Shape
from bench_protocol.catalogue.matrix import Cell, Precision
from bench_protocol.catalogue.workloads import Workload

from ..machine import MachineFacts

FLOAT_BYTES = 4
HALF_BYTES = 2
# Values that an optimiser stores for each weight: RMSprop's mean of squares, Adam's two moments,
# SGD's momentum.
OPTIMIZER_SLOTS = {"rmsprop": 1, "adam": 2, "sgd": 1}
LSTM_VALUES = 6  # four gates, the cell and the output, of each unit at each step
# Memory of a worker without training on a Linux CPU: framework, NumPy, agent.
FRAMEWORK_BYTES: Mapping[str, int] = {
    "mlx": 350_000_000,
    "torch": 500_000_000,
    "jax": 550_000_000,
    "tensorflow": 1_100_000_000,
}
UNKNOWN_FRAMEWORK_BYTES = 350_000_000


@dataclass(frozen=True)
class MemoryNeed:
    """Memory that a repeat needs, in bytes. With unified memory both are the sum."""

    device_bytes: int
    host_bytes: int


@dataclass(frozen=True)
class FreeMemory:
    """Memory of a machine, in bytes; None if unknown.

    ``gpu_bytes``: of NVIDIA GPUs, by index; Apple's share the host's memory.
    """

    host_bytes: int | None = None
    gpu_bytes: Mapping[int, int | None] | None = None

    def why_not(self, cell: Cell, workload: Workload) -> str | None:
        need = need_of(cell, workload)
        on_gpu = (self.gpu_bytes or {}).get(cell.device.index)
        if cell.device.kind == "cuda" and on_gpu and need.device_bytes > on_gpu:
            return _too_little(need.device_bytes, on_gpu, "the GPU")
        if self.host_bytes and need.host_bytes > self.host_bytes:
            return _too_little(need.host_bytes, self.host_bytes, "this machine")
        return None


def free_memory_of(facts: MachineFacts) -> FreeMemory:
    return FreeMemory(
        host_bytes=facts.memory_bytes,
        gpu_bytes={gpu.index: gpu.memory_bytes for gpu in facts.gpus if gpu.kind == "cuda"},
    )


def need_of(cell: Cell, workload: Workload) -> MemoryNeed:
    """The least memory that a repeat of a cell needs."""
    training = training_memory(workload, cell.batch_size, cell.precision)
    framework = FRAMEWORK_BYTES.get(cell.framework, UNKNOWN_FRAMEWORK_BYTES)
    beside = framework + training.samples
    if cell.device.kind == "cuda":
        return MemoryNeed(device_bytes=training.on_device, host_bytes=beside)
    return MemoryNeed(
        device_bytes=beside + training.on_device, host_bytes=beside + training.on_device
    )


def _too_little(need_bytes: int, there_bytes: int, where: str) -> str:
    need, there = people.size(need_bytes), people.size(there_bytes)
    return f"needs at least {need} of memory, {where} has {there}"


@dataclass(frozen=True)
class TrainingMemory:
    """Memory of a training by purpose, in bytes. ``samples``: the whole data set on the host."""

    weights: int
    gradients: int
    optimizer_state: int
    activations: int
    samples: int

    @property
    def on_device(self) -> int:
        """Bytes that the device must hold at once."""
        return self.weights + self.gradients + self.optimizer_state + self.activations


def training_memory(
    workload: Workload, batch_size: int, precision: Precision = "float32"
) -> TrainingMemory:
    """Memory of one training step.

    Weights, their gradients and the optimiser's state are float32 in every precision. Activations
    are the values of a batch that layers store for the backward pass (half the bytes in mixed
    precision), and the gradient of the largest. Frozen layers store nothing: only two neighbours
    exist at once.
    """
    counts = [
        sum(math.prod(shape) for shape in layer.weight_shapes(inputs).values())
        for layer, inputs in zip(workload.layers, workload.shapes[:-1], strict=True)
    ]
    trained = sum(counts[workload.frozen_layers :])
    kept_bytes = HALF_BYTES if precision.startswith("mixed") else FLOAT_BYTES
    data_set = workload.data_set
    samples = data_set.train_samples + data_set.validation_samples + data_set.test_samples
    return TrainingMemory(
        weights=FLOAT_BYTES * sum(counts),
        gradients=FLOAT_BYTES * trained,
        optimizer_state=FLOAT_BYTES * trained * OPTIMIZER_SLOTS[workload.optimizer.kind],
        activations=kept_bytes * batch_size * _kept_values(workload),
        # Samples as uint8 and labels as int32.
        samples=samples * (math.prod(data_set.sample_shape) + FLOAT_BYTES),
    )


def _kept_values(workload: Workload) -> int:
    """The largest number of one sample's values that exist at once during a step."""
    sizes = [math.prod(shape) for shape in workload.shapes]
    border = workload.frozen_layers
    passing = max((sum(pair) for pair in pairwise(sizes[: border + 1])), default=0)
    activations = sum(
        _layer_values(layer, inputs)
        for layer, inputs in zip(workload.layers[border:], workload.shapes[border:-1], strict=True)
    )
    return max(passing, sizes[border] + activations + max(sizes[border:]))


def _layer_values(layer: Layer, inputs: Shape) -> int:
    """Values of one sample that a layer stores for its backward pass: outputs and inner values."""
    if isinstance(layer, Residual):
        return sum(_layer_values(part.layer, part.inputs) for part in layer.parts(inputs))
    if isinstance(layer, LSTM):
        return inputs[0] * layer.units * LSTM_VALUES
    return math.prod(layer.output_shape(inputs))
