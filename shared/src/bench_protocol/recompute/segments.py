"""Segments of a witnessed run, trained again in float64."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..catalogue import seeded
from ..catalogue.seeded import Weights
from ..payload.witness import trained_tensors
from ..training import speed_run
from ..training.speed_run import OpenedState
from .training import Job, Split, Training

# Beyond any limit: the segment's figures are not finite.
ENDLESS = 1e300


class Segments:
    """The segments of one witnessed run. The data is generated once.

    Args:
        seed: :func:`bench_protocol.training.speed_run.seed_of`.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed
        data_set = speed_run.workload().data_set
        self._split: Split = seeded.generated_data(data_set, "train", seed=seed)

    def distance(self, segment: int, opened: OpenedState) -> float:
        """|end - recomputed| / |recomputed - start|, both norms over all weights.

        Raises:
            ValueError: the state has the wrong length.
        """
        job = job_of(self._seed, speed_run.start_seed(self._seed, segment, opened.before))
        training = Training(job, speed_run.STEPS, self._split)
        for _ in range(speed_run.STEPS):
            training.step()
        right = flat(training.weights)
        with np.errstate(over="ignore", invalid="ignore"):
            off = np.linalg.norm(flat(weights_of(opened.state)) - right)
            ratio = float(off / np.linalg.norm(right - flat(job.weights())))
        return ratio if np.isfinite(ratio) else ENDLESS


def job_of(seed: str, weights_seed: str | None = None) -> Job:
    """A segment's job.

    Args:
        seed: the run's: of order and data.
        weights_seed: of the starting weights; the run's in the first segment.
    """
    workload = speed_run.workload()
    samples = workload.data_set.train_samples
    return Job(
        workload,
        speed_run.BATCH_SIZE,
        seed,
        samples,
        "segment",
        data_seed=seed,
        weights_seed=weights_seed,
    )


def state_of(tensors: Iterable[NDArray[np.float32]]) -> bytes:
    """The bytes of a state (:func:`bench_protocol.training.speed_run.state_bytes`)."""
    return b"".join(np.ascontiguousarray(value, "<f4").tobytes() for value in tensors)


def weights_of(state: bytes) -> Weights:
    """The weights of all layers in a state, float32.

    Raises:
        ValueError: the state has the wrong length.
    """
    workload = speed_run.workload()
    flat = np.frombuffer(state, "<f4").astype(np.float32)
    weights: Weights = [{} for _ in workload.layers]
    start = 0
    for tensor in trained_tensors(workload):
        size = int(np.prod(tensor.shape))
        weights[tensor.index][tensor.name] = flat[start : start + size].reshape(tensor.shape)
        start += size
    if start != flat.size:
        raise ValueError(f"the state has {flat.size} values, not {start}")
    return weights


def flat(weights: Iterable[dict[str, NDArray[Any]]]) -> NDArray[np.float64]:
    """All weights as one vector, float64."""
    values = (tensor for layer in weights for tensor in layer.values())
    return np.concatenate([tensor.astype(np.float64).reshape(-1) for tensor in values])
