"""Layers of ``tuned`` on a CPU that are cut among the cores by their units: each core has its own
weights, computes the whole batch with them, and updates them.

A cut by samples must add up the chains' gradients of all weights, and one core updates them.
Therefore two dense layers at the start are cut, the first by its units and the second by its
inputs. In a model with large layers, all from the first large one on are cut by their units. The
cores then exchange a layer's output instead of its weights' gradients. Small layers after
convolutions gain nothing: their chains would wait for each other twice.

Sources: Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks" (arXiv
1404.5997); by units and then by inputs: Shoeybi et al. 2019, "Megatron-LM" (arXiv 1909.08053).
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import tensorflow as tf

from bench_protocol.catalogue.layers import Conv2D, Dense, Dropout, MaxPool2D
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import trained_tensors

from ..cpu import chains as cpu_chains
from .forward import bias_and_activation, product

# 784 x 64 took a quarter longer by units, 784 x 128 a fifth less.
LEAST_WEIGHTS = 75_000
LARGE_LAYER = 1_000_000
UNITS = -1  # the axis of a kernel's or a bias' units
INPUTS = 0

Forward = Callable[[slice, Any], Any]
"""What comes out of some of the model's layers."""


def chains(workload: Workload, batch_size: int) -> int:
    """The number of chains of a batch before the first large layer, and of parts of the layers from
    there on."""
    if not all(tensor.has_gradient for tensor in trained_tensors(workload)):
        return 1  # a normalisation takes the statistics of the whole batch
    large = large_layers(workload)
    first = large[0] if large else len(workload.layers)
    weights = sum(_weights(workload, i) for i in range(workload.frozen_layers, first))
    return cpu_chains.chains(batch_size, weights, [_units(workload.layers[i]) for i in large])


def large_layers(workload: Workload) -> list[int]:
    """Indices of the layers with weights, from the first large one on, if each has units."""
    trained = range(workload.frozen_layers, len(workload.layers))
    first = next((i for i in trained if _weights(workload, i) >= LARGE_LAYER), None)
    if first is None:
        return []
    layers = [i for i in _weighted(workload) if i >= first]
    return layers if all(map(_has_bias, (workload.layers[i] for i in layers))) else []


def dense_pair(workload: Workload, chains: int) -> tuple[int, int] | None:
    """Indices of the two layers to cut when a batch is cut into ``chains``, if there are any: the
    first one with weights, and the next, with only dropout between them."""
    layers, shapes = workload.layers, workload.shapes
    lower, upper = [*_weighted(workload), None, None][:2]
    if lower is None or upper is None or lower < workload.frozen_layers or chains == 1:
        return None
    first, between, second = layers[lower], layers[lower + 1 : upper], layers[upper]
    by_units = (
        isinstance(first, Dense)
        and isinstance(second, Dense)
        and _has_bias(first)
        and _has_bias(second)
        and all(isinstance(layer, Dropout) for layer in between)
        and first.units % chains == 0
        and shapes[lower][-1] * first.units >= LEAST_WEIGHTS
    )
    return (lower, upper) if by_units else None


def cut(workload: Workload, model: Any, count: int) -> "DensePair | LargeLayers | None":
    """The layers that are cut when a batch is cut into ``count`` chains, if there are any."""
    if pair := dense_pair(workload, count):
        return DensePair(model, *pair, count)
    large = large_layers(workload) if count > 1 else []
    return LargeLayers(workload, model, large, count) if large else None


class WeightShares:
    """Weights of Keras' layers in equal shares, which train in their place."""

    def __init__(self, keras_weights: Sequence[Any], axes: Sequence[int], count: int) -> None:
        """``axes``: the axis along which each weight is cut."""
        self._whole, self._axes = [weight.value for weight in keras_weights], axes
        self._parts = [
            [tf.Variable(part) for part in tf.split(value, count, axis)]
            for value, axis in zip(self._whole, axes, strict=True)
        ]

    def in_place(self, variables: Sequence[Any]) -> list[Any]:
        """Variables, with each cut one replaced by its shares."""
        others = [
            variable
            for variable in variables
            if all(variable is not whole for whole in self._whole)
        ]
        return [*(part for parts in self._parts for part in parts), *others]

    def read_back(self) -> None:
        """Copy the weights of Keras' layers into the shares."""
        for whole, parts, axis in zip(self._whole, self._parts, self._axes, strict=True):
            for part, value in zip(parts, tf.split(whole, len(parts), axis), strict=True):
                part.assign(value)

    def __iter__(self) -> Any:
        return zip(*self._parts, strict=True)

    def write_back(self) -> None:
        """Copy the trained weights into Keras' layers."""
        for whole, parts, axis in zip(self._whole, self._parts, self._axes, strict=True):
            whole.assign(tf.concat(parts, axis))


class DensePair(WeightShares):
    """See :func:`dense_pair`: the first by its units, the second by its inputs."""

    def __init__(self, model: Any, first: int, second: int, count: int) -> None:
        self.first, self._next = first, second + 1
        self._between = slice(first + 1, second)
        self._first_layer, self._second_layer = model.layers[first], model.layers[second]
        weights = (self._first_layer.kernel, self._first_layer.bias, self._second_layer.kernel)
        super().__init__(weights, (UNITS, UNITS, INPUTS), count)

    def __call__(self, x: Any, forward: Forward) -> Any:
        """The model's output of the first one's input."""
        parts = []
        for kernel, bias, onward in self:
            outputs = tf.matmul(x, tf.cast(kernel, x.dtype))
            outputs = forward(
                self._between, bias_and_activation(self._first_layer.activation, bias, outputs)
            )
            parts.append(tf.matmul(outputs, tf.cast(onward, x.dtype)))
        bias = self._second_layer.bias.value
        x = bias_and_activation(self._second_layer.activation, bias, tf.add_n(parts))
        return forward(slice(self._next, None), x)


class LargeLayers(WeightShares):
    """See :func:`large_layers`: each by its units."""

    def __init__(self, workload: Workload, model: Any, indices: Sequence[int], count: int) -> None:
        self._layers, self._model, self._indices = workload.layers, model, indices
        self.first = indices[0]
        weights = [w for i in indices for w in (model.layers[i].kernel, model.layers[i].bias)]
        super().__init__(weights, [UNITS] * len(weights), count)

    def __call__(self, x: Any, forward: Forward) -> Any:
        """The model's output of the first one's input."""
        shares = [list(share) for share in self]
        for number, (index, after) in enumerate(pairwise([*self._indices, len(self._layers)])):
            layer, activation = self._layers[index], self._model.layers[index].activation
            begin, pool = index + 1, None
            if begin < after and isinstance(self._layers[begin], MaxPool2D):
                begin, pool = begin + 1, self._model.layers[begin]
            parts = []
            for share in shares:
                kernel, bias = share[2 * number : 2 * number + 2]
                outputs = product(layer, kernel, x)
                parts.append(
                    bias_and_activation(activation, bias, pool(outputs) if pool else outputs)
                )
            x = forward(slice(begin, after), tf.concat(parts, -1))
        return x


def _weighted(workload: Workload) -> list[int]:
    return [i for i, layer in enumerate(workload.layers) if layer.weight_shapes(workload.shapes[i])]


def _weights(workload: Workload, index: int) -> int:
    shapes = workload.layers[index].weight_shapes(workload.shapes[index]).values()
    return sum(math.prod(shape) for shape in shapes)


def _has_bias(layer: Any) -> bool:
    """Whether a layer can be cut: its weights are a kernel and a bias."""
    return isinstance(layer, Conv2D | Dense) and layer.bias


def _units(layer: Any) -> int:
    return int(layer.units if isinstance(layer, Dense) else layer.filters)
