"""Shared by all engines: legal devices, a first layer's inputs, evaluation batches, the score."""

import math
import os
import platform
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_protocol.catalogue.matrix import DeviceKind, Precision, Recipe

from ..base.precisions import ALL_PRECISIONS
from ..base.precisions import why_not as why_no_precision

EVALUATION_BATCH = 1000
# Seed of dropout and of later epochs' order, drawn by the framework; repeats draw the same.
FRAMEWORK_SEED = 0
# Large pictures use smaller batches: their activations must fit beside the training.
EVALUATION_VALUES = 2_000_000
# A token has thousands of activations and as many logits as there are tokens.
EVALUATION_TOKENS = 2_048
# Larger data sets stay uint8 on the device and become floats batch by batch.
LARGEST_FLOAT_DATA_BYTES = 2**30


class Framework:
    """What a framework can run. A framework that can do less says so in the same words."""

    device_kinds: tuple[DeviceKind, ...] = ("metal", "cuda", "cpu")
    recipes: tuple[Recipe, ...] = ("naive", "pipeline", "tuned")
    precisions: tuple[Precision, ...] = ALL_PRECISIONS
    tf32_on_metal = False

    def why_not(self, device: DeviceKind, recipe: Recipe, precision: Precision) -> str | None:
        if device not in self.device_kinds:
            return f"this framework does not run on {device}"
        if device == "metal" and not (sys.platform == "darwin" and platform.machine() == "arm64"):
            return "metal needs macOS on Apple silicon"
        if device == "cuda" and sys.platform == "darwin":
            return "cuda needs an NVIDIA GPU, and macOS drives none"
        if recipe not in self.recipes:
            return f"this framework has no recipe {recipe}"
        if precision not in self.precisions:
            return f"this framework has no {precision}"
        return why_no_precision(device, precision, tf32_on_metal=self.tf32_on_metal)


def product_scale(size: int) -> float:
    """The largest entry of a random square matrix that keeps the size of what it multiplies: the
    variance of entries between it and its negative is 1/size."""
    return math.sqrt(3 / size)


def available_cores() -> int:
    """The number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def are_tokens(samples: NDArray[Any]) -> bool:
    return samples.dtype == np.uint16


def as_inputs(samples: NDArray[Any]) -> NDArray[Any]:
    """Samples as the first layer needs them, same shape: pictures as float32 in [0, 1], tokens as
    int32."""
    if are_tokens(samples):
        return samples.astype(np.int32)
    floats = samples.astype(np.float32)
    # Divide, because multiplying by 1/255 differs in the last bit, and engines must agree.
    floats /= np.float32(255)
    return floats


def resident(samples: NDArray[Any]) -> NDArray[Any]:
    """Samples as they are stored on the device: :func:`as_inputs`, but pictures stay bytes where
    their floats are too large."""
    too_large = samples.size * 4 > LARGEST_FLOAT_DATA_BYTES and not are_tokens(samples)
    return samples if too_large else as_inputs(samples)


def evaluation_batches(
    x: NDArray[Any], y: NDArray[np.int32]
) -> Iterator[tuple[NDArray[Any], NDArray[np.int32]]]:
    """Inputs and labels in order, at most ``EVALUATION_BATCH`` samples at a time."""
    values = EVALUATION_TOKENS if are_tokens(x) else EVALUATION_VALUES
    batch = max(1, min(EVALUATION_BATCH, values // (x[:1].size or 1)))
    for start in range(0, len(y), batch):
        rows = slice(start, start + batch)
        yield as_inputs(x[rows]), y[rows]


class Score:
    """Mean loss and accuracy, accumulated over batches of logits (samples, classes), or (samples,
    steps, classes) for tokens; each label counts alike."""

    def __init__(self) -> None:
        self._loss = 0.0
        self._right = 0
        self._labels = 0

    def add(self, logits: NDArray[np.float32], labels: NDArray[np.int32]) -> None:
        labels = labels.reshape(-1)
        wide = logits.astype(np.float64).reshape(len(labels), -1)
        wide -= wide.max(axis=1, keepdims=True)
        picked = wide[np.arange(len(labels)), labels]
        self._loss += float((np.log(np.exp(wide).sum(axis=1)) - picked).sum())
        self._right += int((wide.argmax(axis=1) == labels).sum())
        self._labels += len(labels)

    def result(self) -> tuple[float, float]:
        return self._loss / self._labels, self._right / self._labels
