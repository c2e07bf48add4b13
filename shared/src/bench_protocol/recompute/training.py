"""Training steps of one job: data, order and weights from its seed, then forward, backward, update.

A large batch is passed through the layers in parts, so that memory stays bounded. Samples are
independent (normalisations use stored statistics), so the sums over parts are those of the batch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..catalogue import nonces, seeded
from ..catalogue.layers import Shape
from ..catalogue.nonces import Purpose
from ..catalogue.workloads import Workload
from ..payload.witness import trained_tensors
from ..training import conformance
from ..training.recomputed import Recomputed
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
    """One training: workload, batch size, seed and data.

    Args:
        workload: as the catalogue has it.
        batch_size: samples of a step.
        seed: 32 hex digits: of the starting weights and the order.
        samples: size of the training set that the order permutes.
        kind: ``timed``: a timed session. ``trace``: Dropout layers are removed, so later
            layers have other numbers and weights, kernels before a ReLU are sqrt(2) larger, and
            the data is learnable (:mod:`bench_protocol.training.conformance`).
        optimizer: of a trace; other kinds have the workload's own.
        data_seed: of generated data.

    Raises:
        ValueError: ``batch_size`` is not in 1..``samples``.
    """

    workload: Workload
    batch_size: int
    seed: str
    samples: int
    kind: Literal["trace", "timed"] = "timed"
    optimizer: conformance.TracedOptimizer = "workload"
    data_seed: str = seeded.DATA_SEED

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= self.samples:
            raise ValueError(
                f"batch_size is {self.batch_size}: it must be in 1..{self.samples}, the samples"
            )
        if self.kind != "trace" and self.optimizer != "workload":
            raise ValueError(f"a job of kind {self.kind} has its workload's own optimiser")

    @cached_property
    def trained(self) -> Workload:
        """The workload with the layers and the optimiser that are trained."""
        if self.kind != "trace":
            return self.workload
        batches = self.samples // self.batch_size
        return conformance.trace_workload(self.workload, self.optimizer, batches)

    def weights(self) -> seeded.Weights:
        """Starting weights, float32."""
        start = conformance.trace_weights if self.kind == "trace" else seeded.initial_weights
        return start(self.trained, self.seed)


def nonce_job(workload: Workload, purpose: Purpose, nonce: str, batch_size: int) -> Job:
    """A job whose seed follows from a nonce.

    Args:
        batch_size: of the session; a trace has its own
            (:func:`bench_protocol.training.conformance.trace_batch_size`).
    """
    seed = nonces.seed_of(nonce, workload.digest, purpose)
    if purpose == "timed":
        return timed_job(workload, batch_size, seed)
    optimizer: conformance.TracedOptimizer = "sgd" if purpose == "long" else purpose
    samples = batch_size * conformance.trace_batches(workload, purpose)
    return Job(workload, batch_size, seed, samples, "trace", optimizer, data_seed=seed)


def timed_job(workload: Workload, batch_size: int, seed: str) -> Job:
    """The job of a session that is timed."""
    return Job(workload, batch_size, seed, workload.data_set.train_samples)


def recompute(job: Job, steps: int, split: Split | None = None) -> Recomputed:
    """Train the first steps of a job, with Dropout as the identity.

    Args:
        steps: how many; at least 1. Of a timed session at most one epoch, because later orders are
            the recipe's own; each epoch of a trace has the order of the seed.
        split: pictures (uint8) and labels of the training split where data is real; generated if
            not given, and then only the samples that the steps need.

    Raises:
        ValueError: there are too few or too many steps.
    """
    training = Training(job, steps, split)
    losses = tuple(training.step() for _ in range(steps))
    return Recomputed(losses, training.movements())


class Training:
    """A model in training. One :meth:`step` a batch."""

    def __init__(self, job: Job, steps: int, split: Split | None = None) -> None:
        per_epoch = job.samples // job.batch_size
        if steps < 1 or (job.kind == "timed" and steps > per_epoch):
            raise ValueError(f"{steps} steps: an epoch has {per_epoch}")
        self._job, self._workload = job, job.trained
        self._start = job.weights()
        orders = [
            seeded.order(job.samples, epoch, job.seed)[: per_epoch * job.batch_size]
            for epoch in range(-(-steps // per_epoch))
        ]
        rows = np.concatenate(orders)[: steps * job.batch_size]
        if split is None:
            data_set = self._workload.data_set
            self._pictures, self._labels = seeded.generated_rows(
                data_set, "train", rows, self._job.data_seed
            )
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
                self._workload.optimizer, self._weights[tensor.index][tensor.name]
            )
            for tensor in trained_tensors(self._workload)
        }

    def step(self, masks: Masks | None = None) -> float:
        """Train the next batch; its mean loss before the update."""
        batch, workload = self._job.batch_size, self._workload
        first = self._steps * batch
        factors = self._masks(masks)
        gradients: dict[tuple[int, str], Array] = {}
        loss = 0.0
        part = _part(workload, batch)
        for start in range(0, batch, part):
            rows = slice(start, min(start + part, batch))
            samples = slice(first + start, first + rows.stop)
            # Every engine divides in float32; the conversion to float64 is exact.
            x = (self._pictures[samples].astype(np.float32) / np.float32(255)).astype(np.float64)
            labels = self._labels[samples]
            loss += self._pass(x, labels, {n: mask[rows] for n, mask in factors.items()}, gradients)
        self._steps += 1
        for place, gradient in gradients.items():
            self._updates[place].apply(gradient, self._steps)
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


def _part(workload: Workload, batch: int) -> int:
    """Samples of a part of a batch."""
    outputs = workload.shapes[workload.frozen_layers :]
    stored = sum(math.prod(shape) for shape in outputs)
    passing = max(math.prod(shape) for shape in workload.shapes)
    # Adding a part's gradients takes time, so a part may have an activation per gradient.
    wanted = max(CACHED_VALUES, workload.trained_parameter_count)
    return max(1, min(batch, min(wanted, PART_VALUES) // max(stored, 2 * passing)))
