"""An MLX model from a workload's layer list, and Keras' optimisers in MLX.

Layouts differ from those of the seeded weights: convolution kernels are (out, height, width, in)
here, dense and LSTM kernels (out, in).
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, assert_never

import mlx.core as mx
import numpy as np
from mlx import nn, optimizers
from mlx.utils import tree_flatten, tree_map_with_path
from numpy.typing import NDArray

from bench_protocol.catalogue import layers
from bench_protocol.catalogue.seeded import Weights, weights_of
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload
from bench_protocol.payload.witness import trained_tensors
from bench_protocol.training.reading import mean_square, restarted


def build(workload: Workload, weights: Weights) -> Any:
    """Build the model: ``mlx.nn.Module`` from (batch, *sample_shape) to logits (batch, classes)."""
    parts: list[Any] = []
    for number, (layer, shape, values) in enumerate(
        zip(workload.layers, workload.shapes[:-1], weights, strict=True)
    ):
        layer_parts = _parts(layer, shape, values)
        for part in layer_parts:
            if number < workload.frozen_layers and isinstance(part, nn.Module):
                part.freeze()
        parts += layer_parts
    return nn.Sequential(*parts)


def trained_parameters(workload: Workload, model: Any) -> Iterator[NDArray[np.float32]]:
    """The trained weights of a built model, in the catalogue's order and layouts."""
    trained = [array for _, array in tree_flatten(model.trainable_parameters())]
    for tensor, parameter in zip(trained_tensors(workload), trained, strict=True):
        array = np.array(parameter)
        if tensor.own_name in ("kernel", "recurrent_kernel"):
            convolves = isinstance(tensor.layer, layers.Conv2D)
            array = array.transpose(1, 2, 3, 0) if convolves else array.T
        yield np.ascontiguousarray(array)


def set_trained(workload: Workload, model: Any, weights: Weights) -> None:
    """Give a built model other weights, in place; frozen layers keep theirs."""
    model.update(build(workload, weights).trainable_parameters())


def switch_dropout(workload: Workload, model: Any, drops: bool) -> None:
    """Give a model's dropout layers their rates, or the rate 0, which passes on the values."""
    for layer, part in zip(
        (layer for layer in workload.layers if isinstance(layer, layers.Dropout)),
        (part for part in model.layers if isinstance(part, nn.Dropout)),
        strict=True,
    ):
        part._p_1 = 1 - layer.rate if drops else 1


def _parts(layer: layers.Layer, shape: tuple[int, ...], values: Any) -> list[Any]:
    """Functions and modules of one layer, flat, because nested modules make every step traverse the
    nesting; ``shape`` is its input's, without the batch."""
    match layer:
        case layers.Conv2D():
            convolution = nn.Conv2d(shape[2], layer.filters, layer.kernel, stride=layer.stride)
            convolution.weight = mx.array(values["kernel"].transpose(3, 0, 1, 2))
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
            parts = [FixedNormalisation(layer, values)]
        case layers.Residual():
            return [Block(layer, shape, values)]
        case layers.Flatten():
            return [lambda x: mx.flatten(x, start_axis=1)]
        case layers.Dropout():
            return [nn.Dropout(layer.rate)]
        case layers.Dense():
            dense = nn.Linear(shape[-1], layer.units)
            dense.weight = mx.array(values["kernel"].T)
            dense.bias = mx.array(values["bias"])
            parts = [dense]
        case layers.LSTM():
            lstm = nn.LSTM(shape[1], layer.units)
            lstm.Wx = mx.array(values["kernel"].T)
            lstm.Wh = mx.array(values["recurrent_kernel"].T)
            lstm.bias = mx.array(values["bias"])
            parts = [lstm, lambda outputs: outputs[0][..., -1, :]]
        case layers.Embedding() | layers.LayerNorm() | layers.CausalAttention():
            raise LookupError(f"the engine has no layer {layer.kind}")
        case _:
            assert_never(layer)
    if getattr(layer, "activation", "linear") == "relu":
        parts.append(nn.relu)
    return parts


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


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, block: layers.Residual, shape: layers.Shape, values: Any) -> None:
        super().__init__()

        def branch(name: layers.Branch) -> Any:
            parts = block.branch(name, shape)
            built = [_parts(part.layer, part.inputs, weights_of(part, values)) for part in parts]
            return nn.Sequential(*chain(*built))

        self.main, self.shortcut = branch("main"), branch("shortcut")

    def __call__(self, x: Any) -> Any:
        return nn.relu(self.main(x) + self.shortcut(x))


def _padding(layer: layers.Conv2D, shape: tuple[int, ...]) -> list[Any]:
    rows, columns = layer.padding_zeros(shape)
    if not any((*rows, *columns)):
        return []
    return [lambda x: mx.pad(x, [(0, 0), rows, columns, (0, 0)])]


class KerasRMSprop(optimizers.RMSprop):  # type: ignore[misc]
    def apply_single(self, gradient: Any, parameter: Any, state: Any) -> Any:
        mean = self.alpha * state["v"] + (1 - self.alpha) * mx.square(gradient)
        state["v"] = mean
        return parameter - self.learning_rate * gradient * mx.rsqrt(mean + self.eps)


class KerasAdam(optimizers.Adam):  # type: ignore[misc]
    def apply_single(self, gradient: Any, parameter: Any, state: Any) -> Any:
        beta_1, beta_2 = self.betas
        number = self.step.astype(mx.float32)
        correction = mx.sqrt(1 - mx.power(beta_2, number)) / (1 - mx.power(beta_1, number))
        mean = beta_1 * state["m"] + (1 - beta_1) * gradient
        square = beta_2 * state["v"] + (1 - beta_2) * mx.square(gradient)
        state["m"], state["v"] = mean, square
        return parameter - self.learning_rate * correction * mean / (mx.sqrt(square) + self.eps)


class KerasSGD(optimizers.SGD):  # type: ignore[misc]
    def apply_single(self, gradient: Any, parameter: Any, state: Any) -> Any:
        velocity = self.momentum * state["v"] - self.learning_rate * gradient
        state["v"] = velocity
        return parameter + velocity


def optimizer(settings: Optimizer) -> Any:
    """Keras' optimiser. MLX's own place epsilon and the bias correction differently."""
    rate = settings.learning_rate
    match settings:
        case RMSprop():
            return KerasRMSprop(rate, alpha=settings.rho, eps=settings.epsilon)
        case Adam():
            return KerasAdam(rate, betas=[settings.beta_1, settings.beta_2], eps=settings.epsilon)
        case SGD():
            return KerasSGD(rate, momentum=settings.momentum)


def restart(settings: Optimizer, optimizer: Any, first: bool) -> None:
    """Set an optimiser's state for a restart, in its dictionary, because a compiled step holds
    it."""
    squares = not isinstance(settings, SGD)

    def filled(path: str, value: Any) -> Any:
        kind = path.rpartition(".")[2]
        if kind not in ("m", "v"):
            return (
                mx.array(restarted(int(value.item()), first), value.dtype)
                if path == "step"
                else value
            )
        return mx.full(
            value.shape, mean_square(first) if squares and kind == "v" else 0.0, value.dtype
        )

    optimizer.state.update(tree_map_with_path(filled, optimizer.state))
