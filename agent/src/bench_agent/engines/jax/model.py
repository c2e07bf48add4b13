"""A workload's forward pass and Keras' optimisers as JAX functions.

Layouts are those of the seeded weights: pictures (batch, height, width, channels), convolution
kernels (height, width, in, out), dense and LSTM kernels (in, out).
"""

from collections.abc import Callable
from typing import Any, assert_never

import jax
import jax.numpy as jnp

from bench_protocol.catalogue import layers
from bench_protocol.catalogue.seeded import weights_of
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload

Parameters = list[dict[str, Any]]
"""One dictionary a layer, as the seeds have them."""

# Below this size, XLA's convolutions on a CPU are faster; above it, they make a step of
# VGG16 take five times as long (JAX 0.10).
MANY_CHANNELS = 256

Forward = Callable[[Parameters, Any, Any, Any], Any]


def forward(workload: Workload, *, fast: bool) -> Forward:
    """A function (parameters, inputs, key, number of the step) to logits (batch, classes); ``key``
    None: no dropout. ``fast``: pooling and, on a CPU, large convolutions have cheap gradients."""

    def apply(parameters: Parameters, x: Any, key: Any, number: Any) -> Any:
        first = number * len(workload.layers)  # a separate number for each layer of each step
        for index, (layer, values) in enumerate(zip(workload.layers, parameters, strict=True)):
            own_key = None if key is None else jax.random.fold_in(key, first + index)
            x = _layer(layer, values, x, own_key, fast)
        return x

    return apply


def mean_loss(logits: Any, labels: Any) -> Any:
    """Softmax cross-entropy of whole-number labels, averaged over the batch."""
    logarithms = jax.nn.log_softmax(logits)
    picked = jnp.take_along_axis(logarithms, labels[:, None], axis=1)
    return -jnp.mean(picked)


def _layer(layer: layers.Layer, values: dict[str, Any], x: Any, key: Any, fast: bool) -> Any:
    match layer:
        case layers.Conv2D():
            x = _convolution(layer, x, values["kernel"], fast) + values["bias"]
        case layers.BatchNorm():
            mean, variance = (jax.lax.stop_gradient(values[name]) for name in ("mean", "variance"))
            scale = values["gamma"] * jax.lax.rsqrt(variance + layer.epsilon)
            x = x * scale + (values["beta"] - mean * scale)
        case layers.Residual():
            main = _branch(layer.branch("main", x.shape[1:]), values, x, key, fast)
            shortcut = _branch(layer.branch("shortcut", x.shape[1:]), values, x, key, fast)
            return jax.nn.relu(main + shortcut)
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
            x = x @ values["kernel"] + values["bias"]
        case layers.LSTM():
            return _lstm(x, values["kernel"], values["recurrent_kernel"], values["bias"])
        case layers.Embedding() | layers.LayerNorm() | layers.CausalAttention():
            raise LookupError(f"the engine has no layer {layer.kind}")
        case _:
            assert_never(layer)
    return jax.nn.relu(x) if layer.activation == "relu" else x


def _branch(parts: list[layers.Part], values: dict[str, Any], x: Any, key: Any, fast: bool) -> Any:
    for index, part in enumerate(parts):
        own_key = None if key is None else jax.random.fold_in(key, index)
        x = _layer(part.layer, weights_of(part, values), x, own_key, fast)
    return x


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


def _lstm(x: Any, kernel: Any, recurrent_kernel: Any, bias: Any) -> Any:
    """Last output of an LSTM, (batch, steps, features) to (batch, units)."""
    # Compute the products of the inputs for all time steps at once; the rest is sequential.
    inputs = jnp.swapaxes(x @ kernel + bias, 0, 1)
    zeros = jnp.zeros((x.shape[0], recurrent_kernel.shape[0]), x.dtype)

    def one_step(carry: Any, gates: Any) -> Any:
        output, cell = carry
        i, f, g, o = jnp.split(gates + output @ recurrent_kernel, 4, axis=1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        output = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (output, cell), None

    (output, _), _ = jax.lax.scan(one_step, (zeros, zeros), inputs)
    return output


def initial_state(optimizer: Optimizer, parameters: Parameters, mean_square: float) -> Any:
    """The optimiser's state: velocities and means of 0, and mean squares of ``mean_square``."""
    match optimizer:
        case RMSprop():
            fills: tuple[float, ...] = (mean_square,)
        case Adam():
            fills = (0.0, mean_square)
        case SGD():
            fills = (0.0,)
    return tuple(
        jax.tree.map(lambda values, fill=fill: jnp.full_like(values, fill), parameters)
        for fill in fills
    )


def update(settings: Optimizer, parameters: Any, state: Any, gradients: Any, number: Any) -> Any:
    """New parameters and state after step ``number``, from 1, by Keras' optimiser (formulas:
    ``bench_protocol.catalogue.workloads``)."""
    match settings:
        case RMSprop():
            rate, rho, epsilon = settings.learning_rate, settings.rho, settings.epsilon
            squares = jax.tree.map(lambda v, g: rho * v + (1 - rho) * g * g, state[0], gradients)
            parameters = jax.tree.map(
                lambda w, v, g: w - rate * g / jnp.sqrt(v + epsilon), parameters, squares, gradients
            )
            return parameters, (squares,)
        case Adam():
            beta_1, beta_2, epsilon = settings.beta_1, settings.beta_2, settings.epsilon
            t = jnp.asarray(number, jnp.float32)
            power_1, power_2 = jnp.float32(beta_1) ** t, jnp.float32(beta_2) ** t
            alpha = settings.learning_rate * jnp.sqrt(1 - power_2) / (1 - power_1)
            means = jax.tree.map(lambda m, g: m + (g - m) * (1 - beta_1), state[0], gradients)
            squares = jax.tree.map(lambda v, g: v + (g * g - v) * (1 - beta_2), state[1], gradients)
            parameters = jax.tree.map(
                lambda w, m, v: w - alpha * m / (jnp.sqrt(v) + epsilon), parameters, means, squares
            )
            return parameters, (means, squares)
        case SGD():
            rate, momentum = settings.learning_rate, settings.momentum
            velocities = jax.tree.map(lambda u, g: momentum * u - rate * g, state[0], gradients)
            return jax.tree.map(lambda w, u: w + u, parameters, velocities), (velocities,)
