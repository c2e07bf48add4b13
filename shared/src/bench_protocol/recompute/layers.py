"""Forward pass and derivative of each layer, NumPy float64.

Arrays are channels-last with the batch first. Formulas are those of :mod:`.layers`
and docs/protocol.md, section "Recomputation"; nothing comes from a framework. A forward pass
returns its outputs and a function from the gradient of the outputs to the gradients of inputs and
weights (reverse-mode differentiation, Griewank & Walther 2008, chapter 3).
"""

import numpy as np
from numpy.typing import NDArray

from ..catalogue.layers import (
    LSTM,
    BatchNorm,
    CausalAttention,
    Conv2D,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    GlobalAveragePool2D,
    Layer,
    LayerNorm,
    MaxPool2D,
    Part,
    Residual,
    ZeroPad2D,
)
from .arrays import NOTHING, Array, Backward, Passed, Values
from .lstm import lstm
from .pictures import average_pool, convolution, max_pool, zero_pad


def forward(layer: Layer, values: Values, x: Array, mask: Array | None = None) -> Passed:
    """Compute a layer's outputs, and the function of its gradients.

    Args:
        values: the layer's weights under the names of ``layer.weight_shapes``.
        x: inputs of shape (samples, *input shape).
        mask: factors of a Dropout layer, in the shape of ``x``; None leaves ``x`` as it is.

    Returns:
        Outputs of shape (samples, *output shape), and the backward pass.
    """
    match layer:
        case Conv2D():
            return _activated(layer.activation, convolution(layer, values, x))
        case Dense():
            return _activated(layer.activation, _dense(values, x))
        case BatchNorm():
            return _activated(layer.activation, _batch_norm(layer, values, x))
        case MaxPool2D():
            return max_pool(layer, x)
        case ZeroPad2D():
            return zero_pad(layer, x)
        case GlobalAveragePool2D():
            return average_pool(x)
        case Flatten():
            return x.reshape(len(x), -1), lambda dy, _: (dy.reshape(x.shape), {})
        case Dropout():
            return (x, _unchanged) if mask is None else (x * mask, lambda dy, _: (dy * mask, {}))
        case LSTM():
            return lstm(values, x)
        case Residual():
            return _residual(layer, values, x)
        case Embedding() | LayerNorm() | CausalAttention():
            raise LookupError(f"the recomputation has no layer {layer.kind}")


def softmax_cross_entropy(logits: Array, labels: NDArray[np.int32]) -> tuple[Array, Array]:
    """``log(sum(exp(z))) - z[label]`` of each sample, and its gradient ``softmax(z) - one_hot``.

    The maximum of z is subtracted first, so that nothing overflows.

    Returns:
        Losses of shape (samples,) and gradients of shape (samples, classes).
    """
    shifted = logits - logits.max(axis=1, keepdims=True)
    shares = np.exp(shifted)
    totals = shares.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    losses = np.log(totals[:, 0]) - shifted[rows, labels]
    shares /= totals
    shares[rows, labels] -= 1
    return losses, shares


def _unchanged(dy: Array, _: bool) -> tuple[Array, Values]:
    return dy, {}


def _activated(activation: str, passed: Passed) -> Passed:
    """ReLU: ``max(0, y)``, derivative 0 at 0."""
    y, back = passed
    if activation == "linear":
        return passed
    np.maximum(y, 0, out=y)
    return y, lambda dy, inputs: back(dy * (y > 0), inputs)


def _dense(values: Values, x: Array) -> Passed:
    kernel = values["kernel"]

    def back(dy: Array, inputs: bool) -> tuple[Array, Values]:
        rows, changes = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
        gradients = {"kernel": rows.T @ changes, "bias": changes.sum(axis=0)}
        return dy @ kernel.T if inputs else NOTHING, gradients

    return x @ kernel + values["bias"], back


def _batch_norm(layer: BatchNorm, values: Values, x: Array) -> Passed:
    """Batch normalisation with stored statistics, which have no gradient."""
    scale = 1 / np.sqrt(values["variance"] + layer.epsilon)
    slope = values["gamma"] * scale
    y = x * slope
    y += values["beta"] - values["mean"] * slope

    def back(dy: Array, _: bool) -> tuple[Array, Values]:
        places = tuple(range(dy.ndim - 1))
        gradients = {
            "gamma": (dy * (x - values["mean"]) * scale).sum(axis=places),
            "beta": dy.sum(axis=places),
        }
        return dy * slope, gradients

    return y, back


def _residual(layer: Residual, values: Values, x: Array) -> Passed:
    shape = x.shape[1:]
    main, main_back = _branch(layer.branch("main", shape), values, x)
    shortcut, shortcut_back = _branch(layer.branch("shortcut", shape), values, x)

    def back(dy: Array, _: bool) -> tuple[Array, Values]:
        dx, gradients = main_back(dy, True)
        also_dx, also = shortcut_back(dy, True)
        return dx + also_dx, gradients | also

    return _activated("relu", (main + shortcut, back))


def _branch(parts: list[Part], values: Values, x: Array) -> Passed:
    """Apply the layers of a branch in order. Without layers the outputs are ``x``."""
    backs: list[tuple[str, Backward]] = []
    for part in parts:
        names = part.layer.weight_shapes(part.inputs)
        x, back = forward(part.layer, {name: values[part.prefix + name] for name in names}, x)
        backs.append((part.prefix, back))

    def back_through(dy: Array, _: bool) -> tuple[Array, Values]:
        gradients: Values = {}
        for prefix, back in reversed(backs):
            dy, found = back(dy, True)
            gradients |= {prefix + name: gradient for name, gradient in found.items()}
        return dy, gradients

    return x, back_through
