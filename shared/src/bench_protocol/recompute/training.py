"""Training steps of one job: data, order and weights from its seed, then forward, backward, update.

A large batch is passed through the layers in parts, so that memory stays bounded. Samples are
independent (normalisations use stored statistics), so the sums over parts are those of the batch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..catalogue import seeded
from ..catalogue.layers import Shape
from ..catalogue.workloads import Workload
from ..payload.witness import trained_tensors
from ..training.reading import Part
from .arrays import Array, Backward, Values
from .layers import forward, softmax_cross_entropy
from .optimizers import Update

# Activations of one part of a batch: a target and a cap (0.5 GiB in float64). Arrays of the target
# fit the cache, and the C library reuses their memory from pass to pass.
CACHED_VALUES, PART_VALUES = 1 << 19, 1 << 26
Split = tuple[NDArray[np.uint8], NDArray[np.int32]]
# The factors of a Dropout layer for one batch: from its index and its shape, batch first.
Masks = Callable[[int, Shape], Array]


@dataclass(frozen=True)
class Job:
    """What a session trains: ``workload`` as the catalogue has it, ``batch_size`` samples a step,
    ``seed`` (32 hex digits) of starting weights and orders.

    Raises:
        ValueError: ``batch_size`` is not in 1..the number of training samples.
    """

    workload: Workload
    batch_size: int
    seed: str

    def __post_init__(self) -> None:
        samples = self.workload.data_set.train_samples
        if not 1 <= self.batch_size <= samples:
            raise ValueError(
                f"batch_size is {self.batch_size}: it must be in 1..{samples}, the samples"
            )


class Training:
    """A model that trains one part of its job, a batch in each :meth:`step`."""

    def __init__(self, job: Job, part: Part, split: Split | None = None) -> None:
        """
        Args:
            split: pictures (uint8) and labels of the training split where data is real; generated
                if not given, and then only the samples that the steps need.
        """
        self._job, self._workload, self._part = job, job.workload, part
        self._start = seeded.initial_weights(job.workload, job.seed)
        whole, batch = part.per_epoch * job.batch_size, job.batch_size
        samples = self._workload.data_set.train_samples
        orders = [seeded.order(samples, epoch, job.seed)[:whole] for epoch in range(part.epochs)]
        rows = np.concatenate(orders)[part.first * batch : (part.first + part.steps) * batch]
        if split is None:
            data_set = self._workload.data_set
            self._pictures, self._labels = seeded.generated_rows(data_set, "train", rows)
        else:
            self._pictures, self._labels = split[0][rows], split[1][rows]
        self.restart()

    def restart(self) -> None:
        """Begin again from the starting weights, with the same data in the same order."""
        self._steps = 0
        self._weights: list[Values] = [
            {name: value.astype(np.float64) for name, value in values.items()}
            for values in self._start
        ]
        self._updates = {
            (tensor.index, tensor.name): Update(
                self._workload.optimizer,
                self._weights[tensor.index][tensor.name],
                first=self._part.kind == "first",
            )
            for tensor in trained_tensors(self._workload)
        }

    def train(self, masks: Callable[[int], Masks] | None = None) -> float:
        """Train the whole part; the mean loss of its last batch, before its update.

        Args:
            masks: of each step, counted from 0; without, Dropout is the identity.
        """
        losses = [self.step(masks(step) if masks else None) for step in range(self._part.steps)]
        return losses[-1]

    def loss(self) -> float:
        """The mean loss of the next batch, dropout off; trains nothing."""
        return self._batch({}, {})

    def step(self, masks: Masks | None = None) -> float:
        """Train the next batch; its mean loss before the update."""
        gradients: dict[tuple[int, str], Array] = {}
        loss = self._batch(self._masks(masks), gradients)
        self._steps += 1
        for place, gradient in gradients.items():
            self._updates[place].apply(gradient)
        return loss

    def _batch(self, factors: dict[int, Array], gradients: dict[tuple[int, str], Array]) -> float:
        """The mean loss of the next batch; adds its gradients."""
        batch = self._job.batch_size
        first, loss, part = self._steps * batch, 0.0, _part(self._workload, batch)
        for start in range(0, batch, part):
            rows = slice(start, min(start + part, batch))
            samples = slice(first + start, first + rows.stop)
            # Every engine divides in float32; the conversion to float64 is exact.
            x = (self._pictures[samples].astype(np.float32) / np.float32(255)).astype(np.float64)
            labels = self._labels[samples]
            loss += self._pass(x, labels, {n: mask[rows] for n, mask in factors.items()}, gradients)
        return loss

    def _masks(self, masks: Masks | None) -> dict[int, Array]:
        if masks is None:
            return {}
        return {
            index: masks(index, (self._job.batch_size, *self._workload.shapes[index]))
            for index, layer in enumerate(self._workload.layers)
            if layer.kind == "dropout"
        }

    def _pass(
        self,
        x: Array,
        labels: NDArray[np.int32],
        masks: dict[int, Array],
        gradients: dict[tuple[int, str], Array],
    ) -> float:
        """Forward and backward through all layers; adds to ``gradients``, returns its loss part."""
        first = min(index for index, _ in self._updates)
        backs: list[tuple[int, Backward]] = []
        for index, layer in enumerate(self._workload.layers):
            x, back = forward(layer, self._weights[index], x, masks.get(index))
            if index >= first:
                backs.append((index, back))
            del back
        losses, dy = softmax_cross_entropy(x, labels)
        dy /= self._job.batch_size
        while backs:
            index, back = backs.pop()
            dy, layer_gradients = back(dy, index > first)
            for name, gradient in layer_gradients.items():
                if (index, name) in gradients:
                    gradients[index, name] += gradient
                else:
                    gradients[index, name] = gradient
        return float(losses.sum()) / self._job.batch_size

    @property
    def weights(self) -> list[Values]:
        """The weights now, float64; a further step changes them in place."""
        return self._weights

    def movements(self) -> tuple[float, ...]:
        """The norm of each trained tensor's change since the start."""
        return tuple(
            float(np.linalg.norm(self._weights[index][name] - self._start[index][name]))
            for index, name in self._updates
        )

    def roundings(self) -> tuple[float, ...]:
        """The most that rounding changes each movement: an engine keeps weights in float32, so each
        step's sum of a weight and its change is off by up to ``2^-24 |w|``."""
        return tuple(
            2.0**-24 * self._steps * float(np.linalg.norm(self._start[index][name].astype(float)))
            for index, name in self._updates
        )


def _part(workload: Workload, batch: int) -> int:
    outputs = workload.shapes[workload.frozen_layers :]
    stored = sum(math.prod(shape) for shape in outputs)
    passing = max(math.prod(shape) for shape in workload.shapes)
    # Adding a part's gradients takes time, so a part may have an activation per gradient.
    wanted = max(CACHED_VALUES, workload.trained_parameter_count)
    return max(1, min(batch, min(wanted, PART_VALUES) // max(stored, 2 * passing)))
