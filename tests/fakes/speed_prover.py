"""A prover of a witnessed run in NumPy float32: honest, without some steps, or less precise."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench_agent.worker.speed_run import States
from bench_protocol.catalogue import seeded
from bench_protocol.recompute.segments import job_of, state_of
from bench_protocol.training import speed_run

Matrix = NDArray[np.float32]
Rounding = Callable[[Matrix], Matrix]
RATE = np.float32(0.05)


def exact(values: Matrix) -> Matrix:
    return values


def _to_bits(values: Matrix, kept: int) -> Matrix:
    """Rounded to nearest with ``kept`` bits of the mantissa."""
    drop = 23 - kept
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(1 << (drop - 1))) >> np.uint32(drop) << np.uint32(drop)).view(
        np.float32
    )


def tf32(values: Matrix) -> Matrix:
    """Inputs of products with 10 bits of mantissa."""
    return _to_bits(values, 10)


def bfloat16(values: Matrix) -> Matrix:
    """Inputs of products with 7 bits of mantissa."""
    return _to_bits(values, 7)


class Prover:
    """Trains segments of the witnessed run of a seed; the data is generated once."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self._job = job_of(seed)
        pictures, self._labels = seeded.generated_data(
            speed_run.workload().data_set, "train", seed=seed
        )
        self._x = (pictures.astype(np.float32) / np.float32(255)).reshape(len(pictures), -1)

    def segment(
        self, start_seed: str, steps: int = speed_run.STEPS, cut: Rounding = exact
    ) -> bytes:
        """The state at a segment's end."""
        layers = [v for v in job_of(start_seed).weights() if v]
        kernels = [v["kernel"].copy() for v in layers]
        biases = [v["bias"].copy() for v in layers]
        batch = speed_run.BATCH_SIZE
        per_epoch = self._job.samples // batch
        for step in range(steps):
            epoch, place = divmod(step, per_epoch)
            if place == 0:
                order = seeded.order(self._job.samples, epoch, self.seed)
            rows = order[place * batch : (place + 1) * batch]
            values = [self._x[rows]]
            for number, (kernel, bias) in enumerate(zip(kernels, biases, strict=True)):
                z = cut(values[-1]) @ cut(kernel) + bias
                values.append(np.maximum(z, 0) if number < 2 else z)
            logits = values.pop()
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            dz = shares / shares.sum(axis=1, keepdims=True)
            dz[np.arange(batch), self._labels[rows]] -= 1
            dz /= np.float32(batch)
            for number in (2, 1, 0):
                dx = cut(dz) @ cut(kernels[number]).T if number else None
                kernels[number] -= RATE * (cut(values[number]).T @ cut(dz))
                biases[number] -= RATE * dz.sum(axis=0)
                if dx is not None:
                    dz = dx * (values[number] > 0)
        tensors = (t for pair in zip(kernels, biases, strict=True) for t in pair)
        return state_of(tensors)

    def states(self, segments: int, steps: int = speed_run.STEPS, cut: Rounding = exact) -> States:
        """The states of a whole run."""
        made, leaf = States(), b""
        for number in range(segments):
            start = speed_run.start_seed(self.seed, number, leaf)
            leaf = made.add(self.segment(start, steps, cut))
        return made
