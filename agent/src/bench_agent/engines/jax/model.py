"""A workload's forward pass as JAX functions.

Layouts are those of the seeded weights: pictures (batch, height, width, channels), convolution
kernels (height, width, in, out), dense and LSTM kernels (in, out).
"""

from collections.abc import Callable
from typing import Any, assert_never

import jax
import jax.numpy as jnp

from bench_protocol.catalogue import layers
from bench_protocol.catalogue.seeded import weights_of
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import STATISTICS

from . import sequence

Parameters = list[dict[str, Any]]
"""One dictionary a layer, as the seeds have them."""

# Below this size, XLA's convolutions on a CPU are faster; above it, they make a step of
# VGG16 take five times as long (JAX 0.10).
MANY_CHANNELS = 256

Forward = Callable[[Parameters, Any, Any, Any, bool], tuple[Any, Parameters]]


def forward(workload: Workload, *, fast: bool) -> Forward:
    """A function (parameters, inputs, key, number of the step, training) to logits (batch, classes)
    or (batch, steps, classes), and the batch's statistics, a dictionary a layer. ``key`` None: no
    dropout. ``fast``: attention is fused; pooling and, on a CPU, large convolutions have cheap
    gradients."""

    def apply(
        parameters: Parameters, x: Any, key: Any, number: Any, training: bool
    ) -> tuple[Any, Parameters]:
        first = number * len(workload.layers)  # a separate number for each layer of each step
        of_batch: Parameters = [{} for _ in workload.layers]
        for index, (layer, values) in enumerate(zip(workload.layers, parameters, strict=True)):
            own_key = None if key is None else jax.random.fold_in(key, first + index)
            x = _layer(layer, values, x, own_key, fast, of_batch[index] if training else None)
        return x, of_batch

    return apply


def split(parameters: Parameters) -> tuple[Parameters, Parameters]:
    """The weights that have a gradient, and the statistics of normalisations."""
    weights: Parameters = []
    statistics: Parameters = []
    for values in parameters:
        kept = {name: value for name, value in values.items() if is_statistic(name)}
        weights.append({name: value for name, value in values.items() if name not in kept})
        statistics.append(kept)
    return weights, statistics


def joined(weights: Parameters, statistics: Parameters) -> Parameters:
    return [own | kept for own, kept in zip(weights, statistics, strict=True)]


def is_statistic(name: str) -> bool:
    return name.rpartition(".")[2] in STATISTICS


def moved(statistics: Parameters, of_batch: Parameters) -> Parameters:
    """Running statistics after a batch with the given ones."""
    share = layers.MOMENTUM
    return [
        old | {name: share * old[name] + (1 - share) * value for name, value in new.items()}
        for old, new in zip(statistics, of_batch, strict=True)
    ]


def mean_loss(logits: Any, labels: Any) -> Any:
    """Softmax cross-entropy of whole-number labels, averaged over the batch and its tokens."""
    logarithms = jax.nn.log_softmax(logits)
    picked = jnp.take_along_axis(logarithms, labels[..., None], axis=-1)
    return -jnp.mean(picked)


def _layer(
    layer: layers.Layer,
    values: dict[str, Any],
    x: Any,
    key: Any,
    fast: bool,
    of_batch: dict[str, Any] | None,
) -> Any:
    """A layer's output. ``of_batch``: receives the batch's statistics; None in evaluation."""
    match layer:
        case layers.Conv2D():
            x = _convolution(layer, x, values["kernel"], fast)
        case layers.BatchNorm():
            return _normalised(layer, values, x, of_batch)
        case layers.Residual():
            main = _branch(layer, "main", values, x, key, fast, of_batch)
            x = main + _branch(layer, "shortcut", values, x, key, fast, of_batch)
        case layers.MaxPool2D():
            return _max_pool(x, layer, fast)
        case layers.ZeroPad2D():
            width = (layer.size, layer.size)
            return jnp.pad(x, ((0, 0), width, width, (0, 0)))
        case layers.GlobalAveragePool2D():
            return jnp.mean(x, axis=(1, 2))
        case layers.Dropout():
            return x if key is None else dropout(x, layer.rate, key)
        case layers.Flatten():
            return x.reshape(x.shape[0], -1)
        case layers.Dense():
            x = x @ values["kernel"]
        case layers.LSTM():
            return sequence.lstm(x, values["kernel"], values["recurrent_kernel"], values["bias"])
        case layers.Embedding():
            return values["tokens"][x] + values["positions"]
        case layers.LayerNorm():
            return sequence.layer_norm(x, values["gamma"], layer.epsilon)
        case layers.CausalAttention():
            product = x @ values["kernel"]
            return sequence.attention(product, layer.heads, fast) @ values["output_kernel"]
        case _:
            assert_never(layer)
    return _activated(layer.activation, x + values["bias"] if "bias" in values else x)


def _activated(activation: layers.Activation, x: Any) -> Any:
    match activation:
        case "relu":
            return jax.nn.relu(x)
        case "gelu":
            return jax.nn.gelu(x, approximate=True)
        case "linear":
            return x


def _branch(
    block: layers.Residual,
    name: layers.Branch,
    values: dict[str, Any],
    x: Any,
    key: Any,
    fast: bool,
    of_batch: dict[str, Any] | None,
) -> Any:
    for index, part in enumerate(block.branch(name, x.shape[1:])):
        own_key = None if key is None else jax.random.fold_in(key, index)
        own: dict[str, Any] | None = None if of_batch is None else {}
        x = _layer(part.layer, weights_of(part, values), x, own_key, fast, own)
        if own and of_batch is not None:
            of_batch |= {part.prefix + name: value for name, value in own.items()}
    return x


def _normalised(
    layer: layers.BatchNorm, values: dict[str, Any], x: Any, of_batch: dict[str, Any] | None
) -> Any:
    """Batch normalisation in float32, like the statistics."""
    statistics = {name: values[name] for name in STATISTICS}
    if layer.statistics == "batch" and of_batch is not None:
        wide, axes = x.astype(jnp.float32), tuple(range(x.ndim - 1))
        statistics = {"mean": jnp.mean(wide, axes), "variance": jnp.var(wide, axes)}
        of_batch |= statistics
    scale = values["gamma"] * jax.lax.rsqrt(statistics["variance"] + layer.epsilon)
    shift = values["beta"] - statistics["mean"] * scale
    return _activated(layer.activation, (x * scale + shift).astype(x.dtype))


def _convolution(layer: layers.Conv2D, x: Any, kernel: Any, fast: bool) -> Any:
    zeros = layer.padding_zeros(x.shape[1:])
    if fast and x.shape[-1] >= MANY_CHANNELS and jax.default_backend() == "cpu":
        return convolution_as_product(x, kernel, layer.stride, zeros)
    strides = (layer.stride, layer.stride)
    return jax.lax.conv_general_dilated(
        x, kernel, strides, zeros, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def convolution_as_product(x: Any, kernel: Any, stride: int, zeros: Any) -> Any:
    """A convolution whose gradients are matrix products too.

    The inputs of each output are laid side by side (Chellapilla et al. 2006, "High performance
    convolutional neural networks for document processing").

    Args:
        x: (batch, height, width, channels).
        kernel: (size, size, channels, filters).
        zeros: padding before and after rows and columns.
    """
    size = kernel.shape[0]
    x = jnp.pad(x, ((0, 0), *zeros, (0, 0)))
    last_row, last_column = (length - size for length in x.shape[1:3])
    inputs = [
        x[:, row : row + last_row + 1 : stride, column : column + last_column + 1 : stride]
        for row in range(size)
        for column in range(size)
    ]
    return jnp.concatenate(inputs, axis=-1) @ kernel.reshape(-1, kernel.shape[-1])


def _max_pool(x: Any, layer: layers.MaxPool2D, fast: bool) -> Any:
    size = layer.size
    if not (fast and size == layer.stride):
        window, strides = (1, size, size, 1), (1, layer.stride, layer.stride, 1)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, "VALID")
    # The gradient of a window's maximum is slow. Pairwise comparisons have a cheap gradient, and
    # they also give the whole gradient of a tie to the first of the equal values.
    batch, height, width, channels = x.shape
    rows, columns = height // size, width // size
    x = x[:, : rows * size, : columns * size]
    x = x.reshape(batch, rows, size, columns, size, channels)
    largest = x[:, :, 0, :, 0]
    for number in range(1, size * size):
        other = x[:, :, number // size, :, number % size]
        largest = jnp.where(largest >= other, largest, other)
    return largest


def dropout(x: Any, rate: float, key: Any) -> Any:
    mask = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(mask, x / (1 - rate), 0.0)
