"""Batch normalisations as MLX modules. MLX's own keeps the unbiased variance."""

from typing import Any

import mlx.core as mx
from mlx import nn

from bench_protocol.catalogue import layers


class FixedNormalisation(nn.Module):  # type: ignore[misc]
    """Batch normalisation in inference mode, also while training."""

    def __init__(self, layer: layers.BatchNorm, values: Any) -> None:
        super().__init__()
        for name, value in values.items():
            setattr(self, name, mx.array(value))
        self.freeze(keys=["mean", "variance"])
        self._epsilon = layer.epsilon

    def __call__(self, x: Any) -> Any:
        scale = self.gamma * mx.rsqrt(self.variance + self._epsilon)
        return x * scale + (self.beta - self.mean * scale)


class BatchNormalisation(nn.Module):  # type: ignore[misc]
    """By the batch in training, by running statistics in evaluation; in float32, like the
    statistics. A private name keeps those from gradients and from half precision."""

    def __init__(self, layer: layers.BatchNorm, values: Any) -> None:
        super().__init__()
        self.gamma, self.beta = mx.array(values["gamma"]), mx.array(values["beta"])
        self._mean, self._variance = mx.array(values["mean"]), mx.array(values["variance"])
        self._epsilon = layer.epsilon

    def __call__(self, x: Any) -> Any:
        mean, variance = self._mean, self._variance
        if self.training:
            wide, axes, share = x.astype(mx.float32), tuple(range(x.ndim - 1)), layers.MOMENTUM
            mean, variance = mx.mean(wide, axes), mx.var(wide, axes)
            self._mean = share * self._mean + (1 - share) * mean
            self._variance = share * self._variance + (1 - share) * variance
        scale = self.gamma * mx.rsqrt(variance + self._epsilon)
        return (x * scale + (self.beta - mean * scale)).astype(x.dtype)


def changes(module: Any, key: str, value: Any) -> bool:
    """Whether training changes a member of a module: by a gradient or by the batches."""
    trainable = nn.Module.trainable_parameter_filter(module, key, value)
    return trainable or key in ("_mean", "_variance")
