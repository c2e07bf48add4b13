"""The FLOPs of every workload against a second count: PyTorch's counter over a model written here
from its own layers, forward and backward."""

from collections.abc import Callable
from typing import Any

import pytest

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.layers import (
    LSTM,
    BatchNorm,
    CausalAttention,
    Conv2D,
    Dense,
    Embedding,
    Flatten,
    GlobalAveragePool2D,
    Layer,
    LayerNorm,
    MaxPool2D,
    Residual,
    Shape,
    ZeroPad2D,
)
from bench_protocol.catalogue.workloads import Workload

torch = pytest.importorskip("torch", reason="torch is not installed: make frameworks")
functional = torch.nn.functional
flop_counter = pytest.importorskip("torch.utils.flop_counter")
Tensor = Any
SAMPLES = 2
Weights = Callable[..., Tensor]


def convolution(layer: Conv2D, x: Tensor, shape: Shape, weights: Weights) -> Tensor:
    (top, bottom), (left, right) = layer.padding_zeros(shape)
    kernel = weights(layer.filters, x.shape[1], layer.kernel, layer.kernel)
    padded = functional.pad(x, (left, right, top, bottom))
    return functional.conv2d(padded, kernel, stride=layer.stride)


def lstm(layer: LSTM, x: Tensor, shape: Shape, weights: Weights) -> Tensor:
    """Its gates are the four quarters; what they do is no product of matrices."""
    steps, features = shape
    kernel, recurrent = weights(features, 4 * layer.units), weights(layer.units, 4 * layer.units)
    state = torch.zeros(SAMPLES, layer.units, device=x.device, requires_grad=True)
    for step in range(steps):
        i, f, g, o = (x[:, step] @ kernel + state @ recurrent).chunk(4, -1)
        state = i * f * g * o
    return state


def attention(layer: CausalAttention, x: Tensor, shape: Shape, weights: Weights) -> Tensor:
    units = shape[-1]
    q, k, v = (
        part.unflatten(-1, (layer.heads, -1)).transpose(1, 2)
        for part in (x @ weights(units, 3 * units)).chunk(3, -1)
    )
    seen = (q @ k.transpose(-1, -2)).softmax(-1) @ v
    return seen.transpose(1, 2).flatten(2) @ weights(units, units)


def forward(layer: Layer, x: Tensor, shape: Shape, weights: Weights) -> Tensor:
    match layer:
        case Dense():
            return x @ weights(shape[-1], layer.units)
        case Conv2D():
            return convolution(layer, x, shape, weights)
        case LSTM():
            return lstm(layer, x, shape, weights)
        case CausalAttention():
            return attention(layer, x, shape, weights)
        case Embedding():
            return weights(layer.vocabulary, layer.units)[x]
        case MaxPool2D():
            return functional.max_pool2d(x, layer.size, layer.stride)
        case ZeroPad2D():
            return functional.pad(x, (layer.size,) * 4)
        case GlobalAveragePool2D():
            return x.mean((2, 3))
        case Flatten():
            return x.flatten(1)
        case LayerNorm() | BatchNorm():
            return x * weights(1)
        case Residual():
            main = shortcut = x
            for part in layer.branch("main", shape):
                main = forward(part.layer, main, part.inputs, weights)
            for part in layer.branch("shortcut", shape):
                shortcut = forward(part.layer, shortcut, part.inputs, weights)
            return main + shortcut
    return x


def counted(workload: Workload) -> int:
    """FLOPs of a training step; on PyTorch's device without data nothing is computed."""
    data, frozen = workload.data_set, True

    def weights(*shape: int) -> Tensor:
        return torch.empty(shape, device="meta", requires_grad=not frozen)

    kind = torch.long if data.tokens else torch.float32
    x = torch.empty((SAMPLES, *data.sample_shape), dtype=kind, device="meta")
    if len(data.sample_shape) == 3:
        x = x.permute(0, 3, 1, 2)
    with flop_counter.FlopCounterMode(display=False) as counter:
        for index, layer in enumerate(workload.layers):
            frozen = index < workload.frozen_layers
            x = forward(layer, x, workload.shapes[index], weights)
        x.sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda one: one.name)
def test_the_flops_of_a_workload_are_those_of_pytorchs_counter(workload: Workload) -> None:
    assert counted(workload) == SAMPLES * workload.training_flops_per_sample
