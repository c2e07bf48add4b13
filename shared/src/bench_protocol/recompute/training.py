"""Training steps of one job: data, order and weights from its seed, then forward, backward, update.

A large batch is passed through the layers in parts, so that memory stays bounded. Samples are
independent, so the sums over parts are those of the batch; but a normalisation by the batch needs
all of it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..catalogue import seeded
from ..catalogue.layers import MOMENTUM, Shape
from ..catalogue.workloads import Workload
from ..payload.witness import trained_tensors
from ..training.reading import Part, distinct, normalises_by_batch
from .arrays import Array, Backward, Values
from .layers import forward, softmax_cross_entropy
from .optimizers import Update

# Activations of one part of a batch: a target and a cap (0.5 GiB in float64). Arrays of the target
# fit the cache, and the C library reuses their memory from pass to pass.
CACHED_VALUES, PART_VALUES = 1 << 19, 1 << 26
Split = tuple[NDArray[Any], NDArray[np.int32]]
Gradients = dict[tuple[int, str], Array]
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

    def __init__(
        self, job: Job, part: Part, split: Split | None = None, *, repeats: bool = True
    ) -> None:
        """
        Args:
            repeats: batches repeat few samples where whole ones cannot be recomputed.
            split: pictures (uint8) and labels of the training split where data is real; generated
                if not given, and then only the samples that the steps need.
        """
        self._job, self._workload, self._part = job, job.workload, part
        self._start = seeded.initial_weights(job.workload, job.seed)
        few = distinct(job.workload, job.batch_size) if repeats else job.batch_size
        self._batches = _batches(job, part, few)
        rows = np.concatenate([places for places, _ in self._batches])
        if split is None:
            data_set = self._workload.data_set
            self._inputs, self._labels = seeded.generated_rows(data_set, "train", rows)
        else:
            self._inputs, self._labels = split[0][rows], split[1][rows]
        self.restart()

    def restart(self) -> None:
        """Begin again from the starting weights, with the same data in the same order."""
        self._steps = 0
        self._weights: list[Values] = [
            {name: value.astype(np.float64) for name, value in values.items()}
            for values in self._start
        ]
        self._tensors = [(tensor.index, tensor.name) for tensor in trained_tensors(self._workload)]
        self._updates = {
            (tensor.index, tensor.name): Update(
                self._workload.optimizer,
                self._weights[tensor.index][tensor.name],
                first=self._part.kind == "first",
            )
            for tensor in trained_tensors(self._workload)
            if tensor.has_gradient
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
        return self._batch({}, None)

    def step(self, masks: Masks | None = None) -> float:
        """Train the next batch; its mean loss before the update."""
        gradients: Gradients = {}
        loss = self._batch(self._masks(masks), gradients)
        self._steps += 1
        for (index, name), gradient in gradients.items():
            if update := self._updates.get((index, name)):
                update.apply(gradient)
            else:
                _move(self._weights[index][name], gradient)
        return loss

    def _batch(self, factors: dict[int, Array], gradients: Gradients | None) -> float:
        """The mean loss of the next batch; adds its gradients, and statistics that it has."""
        done = sum(len(places) for places, _ in self._batches[: self._steps])
        shares = self._batches[self._steps][1]
        batch = len(shares)
        loss, part = 0.0, _part(self._workload, batch)
        for start in range(0, batch, part):
            rows = slice(start, min(start + part, batch))
            samples = slice(done + start, done + rows.stop)
            masks = {number: mask[rows] for number, mask in factors.items()}
            x = _as_floats(self._inputs[samples])
            loss += self._pass(x, self._labels[samples], shares[rows], masks, gradients)
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
        shares: Array,
        masks: dict[int, Array],
        gradients: Gradients | None,
    ) -> float:
        """Forward, and backward through all layers where there are ``gradients``, to which it adds;
        returns its part of the loss."""
        first = self._tensors[0][0]
        backs: list[tuple[int, Backward]] = []
        for index, layer in enumerate(self._workload.layers):
            x, back = forward(layer, self._weights[index], x, masks.get(index), shares)
            if index >= first and gradients is not None:
                backs.append((index, back))
            del back
        losses, dy = softmax_cross_entropy(x, labels)
        dy *= shares.reshape(-1, *(1,) * (dy.ndim - 1))
        while backs and gradients is not None:
            index, back = backs.pop()
            dy, layer_gradients = back(dy, index > first)
            for name, gradient in layer_gradients.items():
                if (index, name) in gradients:
                    gradients[index, name] += gradient
                else:
                    gradients[index, name] = gradient
        return float(losses @ shares)

    @property
    def weights(self) -> list[Values]:
        """The weights now, float64; a further step changes them in place."""
        return self._weights

    def movements(self) -> tuple[float, ...]:
        """The norm of each trained tensor's change since the start."""
        return tuple(
            float(np.linalg.norm(self._weights[index][name] - self._start[index][name]))
            for index, name in self._tensors
        )

    def roundings(self) -> tuple[float, ...]:
        """The most that rounding changes each movement: an engine keeps weights in float32, so each
        step's sum of a weight and its change is off by up to ``2^-24 |w|``."""
        return tuple(
            2.0**-24 * self._steps * float(np.linalg.norm(self._start[index][name].astype(float)))
            for index, name in self._tensors
        )


def _batches(job: Job, part: Part, few: int) -> list[tuple[NDArray[np.integer[Any]], Array]]:
    """Of each step the rows of its samples, each once, and their shares of the batch."""
    batch, samples = job.batch_size, job.workload.data_set.train_samples
    whole = part.per_epoch * batch
    orders = [
        seeded.reading_order(samples, epoch, job.seed, batch, few)[:whole]
        for epoch in range(part.epochs)
    ]
    rows = np.concatenate(orders)[part.first * batch : (part.first + part.steps) * batch]
    batches: list[tuple[NDArray[np.integer[Any]], Array]] = []
    for places in rows.reshape(-1, batch):
        if few < batch:
            each, counts = np.unique(places, return_counts=True)
            batches.append((each, counts / batch))
        else:
            batches.append((places, np.full(batch, 1 / batch)))
    return batches


def _as_floats(inputs: NDArray[Any]) -> Array:
    """Whole numbers of tokens; pictures in [0, 1]: every engine divides in float32, and the
    conversion to float64 is exact."""
    if inputs.dtype != np.uint8:
        return inputs.astype(np.float64)
    return (inputs.astype(np.float32) / np.float32(255)).astype(np.float64)


def _move(running: Array, of_batch: Array) -> None:
    """Move running statistics by a batch, in place."""
    running *= MOMENTUM
    running += (1 - MOMENTUM) * of_batch


def _part(workload: Workload, batch: int) -> int:
    """How many samples of a batch pass the layers at a time."""
    if normalises_by_batch(workload):
        return batch
    outputs = workload.shapes[workload.frozen_layers :]
    stored = sum(math.prod(shape) for shape in outputs)
    passing = max(math.prod(shape) for shape in workload.shapes)
    # Adding a part's gradients takes time, so a part may have an activation per gradient.
    wanted = max(CACHED_VALUES, workload.trained_parameter_count)
    return max(1, min(batch, min(wanted, PART_VALUES) // max(stored, 2 * passing)))
