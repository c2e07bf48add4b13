"""An MLX model from a workload's layer list.

Layouts differ from those of the seeded weights: convolution kernels are (out, height, width, in)
here, dense and LSTM kernels (out, in).
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, assert_never

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx.utils import tree_flatten
from numpy.typing import NDArray

from bench_protocol.catalogue import layers
from bench_protocol.catalogue.seeded import Weights, weights_of
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import trained_tensors

from . import sequence
from .normalisation import BatchNormalisation, FixedNormalisation, changes


def build(workload: Workload, weights: Weights, *, fast: bool = False) -> Any:
    """Build the model: ``mlx.nn.Module`` from (batch, *sample_shape) to logits (batch, classes) or
    (batch, steps, classes). ``fast``: attention and GELU are the device's fastest."""
    parts: list[Any] = []
    for number, (layer, shape, values) in enumerate(
        zip(workload.layers, workload.shapes[:-1], weights, strict=True)
    ):
        layer_parts = _parts(layer, shape, values, fast)
        for part in layer_parts:
            if number < workload.frozen_layers and isinstance(part, nn.Module):
                part.freeze()
        parts += layer_parts
    return nn.Sequential(*parts)


def trained_parameters(workload: Workload, model: Any) -> Iterator[NDArray[np.float32]]:
    """The trained weights of a built model, in the catalogue's order and layouts."""
    trained = [array for _, array in tree_flatten(model.filter_and_map(changes))]
    for tensor, parameter in zip(trained_tensors(workload), trained, strict=True):
        array = np.array(parameter)
        if tensor.own_name.endswith("kernel"):
            convolves = isinstance(tensor.layer, layers.Conv2D)
            array = array.transpose(1, 2, 3, 0) if convolves else array.T
        yield np.ascontiguousarray(array)


def set_trained(workload: Workload, model: Any, weights: Weights) -> None:
    """Give a built model other weights and running statistics, in place; frozen layers keep
    theirs."""
    model.update(build(workload, weights).filter_and_map(changes))


def switch_dropout(workload: Workload, model: Any, drops: bool) -> None:
    """Give a model's dropout layers their rates, or the rate 0, which passes on the values."""
    for layer, part in zip(
        (layer for layer in workload.layers if isinstance(layer, layers.Dropout)),
        (part for part in model.layers if isinstance(part, nn.Dropout)),
        strict=True,
    ):
        part._p_1 = 1 - layer.rate if drops else 1


def _parts(layer: layers.Layer, shape: layers.Shape, values: Any, fast: bool) -> list[Any]:
    """Functions and modules of one layer, flat, because nested modules make every step traverse the
    nesting; ``shape`` is its input's, without the batch."""
    match layer:
        case layers.Conv2D():
            convolution = nn.Conv2d(
                *(shape[2], layer.filters, layer.kernel), stride=layer.stride, bias=layer.bias
            )
            convolution.weight = mx.array(values["kernel"].transpose(3, 0, 1, 2))
            if layer.bias:
                convolution.bias = mx.array(values["bias"])
            parts = [*_padding(layer, shape), convolution]
        case layers.MaxPool2D():
            return [nn.MaxPool2d(layer.size, layer.stride)]
        case layers.ZeroPad2D():
            width = (layer.size, layer.size)
            return [lambda x: mx.pad(x, [(0, 0), width, width, (0, 0)])]
        case layers.GlobalAveragePool2D():
            return [lambda x: mx.mean(x, axis=(1, 2))]
        case layers.BatchNorm():
            kind = BatchNormalisation if layer.statistics == "batch" else FixedNormalisation
            parts = [kind(layer, values)]
        case layers.Residual():
            parts = [Block(layer, shape, values, fast)]
        case layers.Flatten():
            return [lambda x: mx.flatten(x, start_axis=1)]
        case layers.Dropout():
            return [nn.Dropout(layer.rate)]
        case layers.Dense():
            parts = [_linear(values["kernel"], values.get("bias"))]
        case layers.LSTM():
            lstm = nn.LSTM(shape[1], layer.units)
            lstm.Wx = mx.array(values["kernel"].T)
            lstm.Wh = mx.array(values["recurrent_kernel"].T)
            lstm.bias = mx.array(values["bias"])
            parts = [lstm, lambda outputs: outputs[0][..., -1, :]]
        case layers.Embedding():
            return [sequence.Embedding(values)]
        case layers.LayerNorm():
            normalisation = nn.LayerNorm(shape[-1], eps=layer.epsilon, bias=False)
            normalisation.weight = mx.array(values["gamma"])
            return [normalisation]
        case layers.CausalAttention():
            return [
                _linear(values["kernel"]),
                sequence.heads(layer.heads, fast),
                _linear(values["output_kernel"]),
            ]
        case _:
            assert_never(layer)
    match getattr(layer, "activation", "linear"):
        case "relu":
            parts.append(nn.relu)
        case "gelu":
            parts.append(sequence.gelu if fast else nn.gelu_approx)
    return parts


def _linear(kernel: Any, bias: Any = None) -> Any:
    linear = nn.Linear(*kernel.shape, bias=bias is not None)
    linear.weight = mx.array(kernel.T)
    if bias is not None:
        linear.bias = mx.array(bias)
    return linear


class Block(nn.Module):  # type: ignore[misc]
    def __init__(
        self, block: layers.Residual, shape: layers.Shape, values: Any, fast: bool
    ) -> None:
        super().__init__()

        def branch(name: layers.Branch) -> Any:
            parts = block.branch(name, shape)
            built = (
                _parts(part.layer, part.inputs, weights_of(part, values), fast) for part in parts
            )
            return nn.Sequential(*chain(*built))

        self.main, self.shortcut = branch("main"), branch("shortcut")

    def __call__(self, x: Any) -> Any:
        return self.main(x) + self.shortcut(x)


def _padding(layer: layers.Conv2D, shape: tuple[int, ...]) -> list[Any]:
    rows, columns = layer.padding_zeros(shape)
    if not any((*rows, *columns)):
        return []
    return [lambda x: mx.pad(x, [(0, 0), rows, columns, (0, 0)])]
