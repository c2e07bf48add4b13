"""Embedding, layer normalisation and causal attention of sequences, (samples, steps, features)."""

import numpy as np

from ..catalogue.layers import CausalAttention, LayerNorm
from .arrays import NOTHING, Array, Passed, Values


def embedding(values: Values, x: Array) -> Passed:
    """``tokens[x] + positions``; x are whole numbers of shape (samples, steps)."""
    places = x.astype(np.intp)

    def back(dy: Array, _: bool) -> tuple[Array, Values]:
        tokens = np.zeros(values["tokens"].shape)
        np.add.at(tokens, places, dy)
        return NOTHING, {"tokens": tokens, "positions": dy.sum(axis=0)}

    return values["tokens"][places] + values["positions"], back


def layer_norm(layer: LayerNorm, values: Values, x: Array) -> Passed:
    """``gamma n`` with ``n = (x - mean) / sqrt(variance + epsilon)`` over the features.

    With ``d = gamma dy`` the inputs have the gradient ``(d - mean(d) - n mean(d n)) / sqrt(...)``.
    """
    n = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((n**2).mean(axis=-1, keepdims=True) + layer.epsilon)
    n *= scale

    def back(dy: Array, _: bool) -> tuple[Array, Values]:
        gradients = {"gamma": np.einsum("stf,stf->f", dy, n)}
        d = dy * values["gamma"]
        along = (d * n).mean(axis=-1, keepdims=True)
        d -= d.mean(axis=-1, keepdims=True) + n * along
        d *= scale
        return d, gradients

    return n * values["gamma"], back


def causal_attention(layer: CausalAttention, values: Values, x: Array) -> Passed:
    """Attention of one head after another: ``softmax(q k^T / sqrt(size)) v``, a position sees
    itself and those before it. A softmax has the gradient ``a (da - sum(a da))``.
    """
    samples, steps, units = x.shape
    size = units // layer.heads
    scale = size**-0.5
    # q, k and v: each (samples, heads, steps, size).
    split = (x @ values["kernel"]).reshape(samples, steps, 3, layer.heads, size)
    q, k, v = np.ascontiguousarray(split.transpose(2, 0, 3, 1, 4))
    hidden = np.triu(np.ones((steps, steps), bool), 1)
    shares = q @ k.swapaxes(-1, -2)
    shares *= scale
    shares[..., hidden] = -np.inf
    shares -= shares.max(axis=-1, keepdims=True)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=-1, keepdims=True)
    heads = (shares @ v).swapaxes(1, 2).reshape(x.shape)

    def back(dy: Array, inputs: bool) -> tuple[Array, Values]:
        rows = dy.reshape(-1, units)
        of_heads = (dy @ values["output_kernel"].T).reshape(samples, steps, layer.heads, size)
        of_heads = np.ascontiguousarray(of_heads.swapaxes(1, 2))
        changes = np.empty(split.shape)
        dq, dk, dv = changes.transpose(2, 0, 3, 1, 4)
        dv[:] = shares.swapaxes(-1, -2) @ of_heads
        bent = of_heads @ v.swapaxes(-1, -2)
        bent -= np.einsum("...j,...j->...", bent, shares)[..., None]
        bent *= shares
        bent *= scale
        dq[:] = bent @ k
        dk[:] = bent.swapaxes(-1, -2) @ q
        of_split = changes.reshape(-1, 3 * units)
        gradients = {
            "kernel": x.reshape(-1, units).T @ of_split,
            "output_kernel": heads.reshape(-1, units).T @ rows,
        }
        dx = (of_split @ values["kernel"].T).reshape(x.shape) if inputs else NOTHING
        return dx, gradients

    return heads @ values["output_kernel"], back
