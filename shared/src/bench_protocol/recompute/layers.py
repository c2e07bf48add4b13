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
from .normalisation import by_batch, by_stored
from .pictures import average_pool, convolution, max_pool, zero_pad
from .sequences import causal_attention, embedding, layer_norm

# sqrt(2 / pi) and the factor of the cube in the tanh form of GELU.
GELU_SCALE, GELU_CUBE = (2 / np.pi) ** 0.5, 0.044715


def forward(
    layer: Layer,
    values: Values,
    x: Array,
    mask: Array | None = None,
    shares: Array | None = None,
) -> Passed:
    """Compute a layer's outputs, and the function of its gradients.

    Args:
        values: the layer's weights under the names of ``layer.weight_shapes``.
        x: inputs of shape (samples, *input shape).
        mask: factors of a Dropout layer, in the shape of ``x``; None leaves ``x`` as it is.
        shares: of each sample in the batch, shape (samples,), sum 1, where normalisations take
            the statistics of the batch; None as in evaluation, by the stored ones.

    Returns:
        Outputs of shape (samples, *output shape), and the backward pass. Of a normalisation by the
        batch it tells the batch's ``mean`` and ``variance`` in place of their gradients.
    """
    match layer:
        case Conv2D():
            return _activated(layer.activation, convolution(layer, values, x))
        case Dense():
            return _activated(layer.activation, _dense(values, x))
        case BatchNorm():
            if layer.statistics == "batch" and shares is not None:
                return _activated(layer.activation, by_batch(layer, values, x, shares))
            return _activated(layer.activation, by_stored(layer, values, x))
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
            return _residual(layer, values, x, shares)
        case Embedding():
            return embedding(values, x)
        case LayerNorm():
            return layer_norm(layer, values, x)
        case CausalAttention():
            return causal_attention(layer, values, x)


def softmax_cross_entropy(logits: Array, labels: NDArray[np.int32]) -> tuple[Array, Array]:
    """``log(sum(exp(z))) - z[label]`` of each sample, over its tokens their mean, and its gradient
    ``softmax(z) - one_hot``, over the number of tokens.

    The maximum of z is subtracted first, so that nothing overflows.

    Returns:
        Losses of shape (samples,) and gradients in the shape of ``logits``.
    """
    shares = logits - logits.max(axis=-1, keepdims=True)
    rights = labels[..., None]
    right = np.take_along_axis(shares, rights, axis=-1)
    np.exp(shares, out=shares)
    totals = shares.sum(axis=-1, keepdims=True)
    losses = (np.log(totals) - right).reshape(len(labels), -1).mean(axis=1)
    shares /= totals
    np.put_along_axis(shares, rights, np.take_along_axis(shares, rights, axis=-1) - 1, axis=-1)
    shares /= labels[0].size
    return losses, shares


def _unchanged(dy: Array, _: bool) -> tuple[Array, Values]:
    return dy, {}


def _activated(activation: str, passed: Passed) -> Passed:
    """ReLU: ``max(0, y)``, derivative 0 at 0. GELU: ``y / 2 (1 + tanh(u))`` with
    ``u = sqrt(2 / pi) (y + 0.044715 y^3)``."""
    y, back = passed
    if activation == "linear":
        return passed
    if activation == "gelu":
        bent = y**2
        bent *= GELU_CUBE
        bent += 1
        bent *= y
        bent *= GELU_SCALE
        np.tanh(bent, out=bent)

        def gelu_back(dy: Array, inputs: bool) -> tuple[Array, Values]:
            slope = 1 + 3 * GELU_CUBE * y**2
            slope *= GELU_SCALE / 2 * y
            slope *= 1 - bent**2
            slope += (1 + bent) / 2
            slope *= dy
            return back(slope, inputs)

        return y / 2 * (1 + bent), gelu_back
    np.maximum(y, 0, out=y)
    return y, lambda dy, inputs: back(dy * (y > 0), inputs)


def _dense(values: Values, x: Array) -> Passed:
    kernel = values["kernel"]

    def back(dy: Array, inputs: bool) -> tuple[Array, Values]:
        rows, changes = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
        gradients = {"kernel": rows.T @ changes}
        if "bias" in values:
            gradients["bias"] = changes.sum(axis=0)
        return dy @ kernel.T if inputs else NOTHING, gradients

    y = x @ kernel
    if "bias" in values:
        y += values["bias"]
    return y, back


def _residual(layer: Residual, values: Values, x: Array, shares: Array | None) -> Passed:
    shape = x.shape[1:]
    main, main_back = _branch(layer.branch("main", shape), values, x, shares)
    shortcut, shortcut_back = _branch(layer.branch("shortcut", shape), values, x, shares)

    def back(dy: Array, _: bool) -> tuple[Array, Values]:
        dx, gradients = main_back(dy, True)
        also_dx, also = shortcut_back(dy, True)
        return dx + also_dx, gradients | also

    return _activated(layer.activation, (main + shortcut, back))


def _branch(parts: list[Part], values: Values, x: Array, shares: Array | None) -> Passed:
    """Apply the layers of a branch in order. Without layers the outputs are ``x``."""
    backs: list[tuple[str, Backward]] = []
    for part in parts:
        names = part.layer.weight_shapes(part.inputs)
        own = {name: values[part.prefix + name] for name in names}
        x, back = forward(part.layer, own, x, shares=shares)
        backs.append((part.prefix, back))

    def back_through(dy: Array, _: bool) -> tuple[Array, Values]:
        gradients: Values = {}
        for prefix, back in reversed(backs):
            dy, found = back(dy, True)
            gradients |= {prefix + name: gradient for name, gradient in found.items()}
        return dy, gradients

    return x, back_through
