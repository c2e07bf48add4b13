"""A PyTorch model from a workload's layer list.

Layouts differ from those of the seeded weights: pictures are (batch, channels, height, width) here,
convolution kernels (out, in, height, width), other kernels (out, in).
"""

import math
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bench_protocol.catalogue import layers
from bench_protocol.catalogue.seeded import Weights, weights_of
from bench_protocol.catalogue.workloads import Workload

from .sequence import CausalAttention, Embedding, LastOutput


def as_channels_first(pictures: NDArray[Any]) -> NDArray[Any]:
    """(samples, height, width, channels) as (samples, channels, height, width), contiguous; samples
    of other shapes as they are."""
    if pictures.ndim != 4:
        return pictures
    return np.ascontiguousarray(pictures.transpose(0, 3, 1, 2))


def on_host(batch: Any) -> NDArray[Any]:
    """A batch of the device, copied to the host: as before :func:`as_channels_first`."""
    samples: NDArray[Any] = batch.cpu().numpy()
    return samples if samples.ndim != 4 else samples.transpose(0, 2, 3, 1)


def build(
    workload: Workload,
    weights: Weights,
    batch_size: int,
    *,
    channels_last: bool = False,
    fused: bool = False,
) -> Any:
    """Build the model: ``torch.nn.Sequential`` from (batch, ...) to logits (batch, ..., classes).

    ``batch_size``: in training. ``channels_last``: pictures and kernels are stored so; shapes do
    not change. ``fused``: attention is one operation.
    """
    builder = _Builder(batch_size, channels_last, fused)
    model = nn.Sequential()
    for index, (layer, shape, values) in enumerate(
        zip(workload.layers, workload.shapes[:-1], weights, strict=True)
    ):
        parts = builder.parts(layer, shape, values)
        for part in parts:
            part.requires_grad_(index >= workload.frozen_layers)
        model.extend(parts)
    return model


class FixedNormalisation(nn.BatchNorm2d):  # type: ignore[misc]
    """Batch normalisation in inference mode, also while training."""

    def forward(self, x: Any) -> Any:
        return nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


class BatchNormalisation(nn.BatchNorm2d):  # type: ignore[misc]
    """Batch normalisation by the batch in training, and by running statistics in evaluation.

    PyTorch moves the running variance to the unbiased one of the batch: ``factor``, n / (n - 1),
    times the biased one. So the stored variance is the catalogue's times this factor, always.
    """

    def __init__(self, channels: int, epsilon: float, values_a_channel: int) -> None:
        super().__init__(channels, epsilon, momentum=1 - layers.MOMENTUM)
        self.factor = values_a_channel / (values_a_channel - 1)

    def forward(self, x: Any) -> Any:
        if self.training:
            return super().forward(x)
        variance = self.running_var / self.factor
        return nn.functional.batch_norm(
            x, self.running_mean, variance, self.weight, self.bias, eps=self.eps
        )


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, main: Any, shortcut: Any, activation: layers.Activation) -> None:
        super().__init__()
        self.main, self.shortcut = main, shortcut
        self.activation = _activation(activation)

    def forward(self, x: Any) -> Any:
        return self.activation(self.main(x) + self.shortcut(x))


@dataclass
class _Builder:
    """Builds the layers in order and remembers the shape of the last flattened picture."""

    batch_size: int
    channels_last: bool
    fused: bool
    _flattened: layers.Shape | None = None

    def parts(self, layer: layers.Layer, shape: layers.Shape, values: Any) -> Any:
        """Modules of one layer; ``shape`` is its input's, channels-last and without the batch."""
        match layer:
            case layers.Conv2D():
                parts = self._convolution(layer, shape, values)
            case layers.MaxPool2D():
                return [nn.MaxPool2d(layer.size, layer.stride)]
            case layers.Flatten():
                self._flattened = shape if len(shape) == 3 else None
                return [nn.Flatten()]
            case layers.Dropout():
                return [nn.Dropout(layer.rate)]
            case layers.Dense():
                parts = [self._dense(shape, values)]
            case layers.LSTM():
                return [_lstm(layer, shape, values)]
            case layers.ZeroPad2D():
                return [nn.ZeroPad2d(layer.size)]
            case layers.GlobalAveragePool2D():
                return [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
            case layers.BatchNorm():
                count = self.batch_size * math.prod(shape[:-1])
                parts = [_normalisation(layer, values, count)]
            case layers.Residual():
                return [self._block(layer, shape, values)]
            case layers.Embedding():
                return [_embedding(layer, shape, values)]
            case layers.LayerNorm():
                return [_layer_norm(layer, shape, values)]
            case layers.CausalAttention():
                return [self._attention(layer, shape, values)]
            case _:
                assert_never(layer)
        return parts if layer.activation == "linear" else [*parts, _activation(layer.activation)]

    def _convolution(self, layer: layers.Conv2D, shape: layers.Shape, values: Any) -> list[Any]:
        (top, bottom), (left, right) = layer.padding_zeros(shape)
        even = (top, left) == (bottom, right)
        convolution = nn.Conv2d(
            shape[2],
            layer.filters,
            layer.kernel,
            layer.stride,
            padding=(top, left) if even else 0,
            bias=layer.bias,
        )
        _set(convolution.weight, values["kernel"].transpose(3, 2, 0, 1))
        if layer.bias:
            _set(convolution.bias, values["bias"])
        if self.channels_last:
            convolution.to(memory_format=torch.channels_last)
        if even:
            return [convolution]
        return [nn.ZeroPad2d((left, right, top, bottom)), convolution]

    def _block(self, block: layers.Residual, shape: layers.Shape, values: Any) -> Any:
        def branch(name: layers.Branch) -> Any:
            modules = nn.Sequential()
            for part in block.branch(name, shape):
                modules.extend(self.parts(part.layer, part.inputs, weights_of(part, values)))
            return modules

        return Block(branch("main"), branch("shortcut"), block.activation)

    def _attention(
        self, layer: layers.CausalAttention, shape: layers.Shape, values: Any
    ) -> CausalAttention:
        steps, units = shape
        attention = CausalAttention(steps, units, layer.heads, fused=self.fused)
        _set(attention.input.weight, values["kernel"].T)
        _set(attention.output.weight, values["output_kernel"].T)
        return attention

    def _dense(self, shape: layers.Shape, values: Any) -> Any:
        kernel = values["kernel"]
        if self._flattened is not None:
            # Flatten puts the channels first here, so reorder the kernel's rows instead of each
            # picture.
            rows = kernel.reshape(*self._flattened, -1).transpose(2, 0, 1, 3)
            kernel = rows.reshape(kernel.shape)
            self._flattened = None
        dense = nn.Linear(shape[-1], kernel.shape[1], bias="bias" in values)
        _set(dense.weight, kernel.T)
        if "bias" in values:
            _set(dense.bias, values["bias"])
        return dense


def _activation(name: layers.Activation) -> Any:
    match name:
        case "linear":
            return nn.Identity()
        case "relu":
            return nn.ReLU()
        case "gelu":
            return nn.GELU(approximate="tanh")
        case _:
            assert_never(name)


def _normalisation(layer: layers.BatchNorm, values: Any, values_a_channel: int) -> Any:
    channels, variance = len(values["gamma"]), values["variance"]
    if layer.statistics == "batch":
        module = BatchNormalisation(channels, layer.epsilon, values_a_channel)
        variance = variance * np.float32(module.factor)
    else:
        module = FixedNormalisation(channels, layer.epsilon)
    # Keras and the catalogue do not count num_batches_tracked.
    module.num_batches_tracked = None
    for name, into in (("gamma", module.weight), ("beta", module.bias)):
        _set(into, values[name])
    _set(module.running_mean, values["mean"])
    _set(module.running_var, variance)
    return module


def _embedding(layer: layers.Embedding, shape: layers.Shape, values: Any) -> Embedding:
    embedding = Embedding(layer.vocabulary, shape[0], layer.units)
    _set(embedding.tokens, values["tokens"])
    _set(embedding.positions, values["positions"])
    return embedding


def _layer_norm(layer: layers.LayerNorm, shape: layers.Shape, values: Any) -> Any:
    norm = nn.LayerNorm(shape[-1], layer.epsilon, bias=False)
    _set(norm.weight, values["gamma"])
    return norm


def _lstm(layer: layers.LSTM, shape: layers.Shape, values: Any) -> LastOutput:
    lstm = LastOutput(shape[1], layer.units)
    _set(lstm.weight_ih_l0, values["kernel"].T)
    _set(lstm.weight_hh_l0, values["recurrent_kernel"].T)
    _set(lstm.bias_ih_l0, values["bias"])
    return lstm


def _set(parameter: Any, values: NDArray[np.float32]) -> None:
    with torch.no_grad():
        parameter.copy_(torch.from_numpy(np.ascontiguousarray(values)))
