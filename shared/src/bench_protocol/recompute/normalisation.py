"""Batch normalisation by stored statistics, and by those of the batch."""

import numpy as np

from ..catalogue.layers import BatchNorm
from .arrays import Array, Passed, Values


def by_stored(layer: BatchNorm, values: Values, x: Array) -> Passed:
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


def by_batch(layer: BatchNorm, values: Values, x: Array, shares: Array) -> Passed:
    """Batch normalisation with mean and biased variance of the batch.

    A sample with the share p counts as if p of the batch were copies of it: means are weighted
    ones, and as ``dy`` is the sum over the copies, so is the gradient of the inputs,
    ``slope (dy - p (sum(dy) + n sum(dy n)))`` with the normalised inputs n and each p spread over
    the sample's places.

    Args:
        shares: of each sample, shape (samples,), sum 1.
    """
    rows = x.reshape(len(x), -1, x.shape[-1])
    each = shares / rows.shape[1]
    mean = each @ rows.sum(axis=1)
    n = rows - mean
    variance = each @ np.einsum("spc,spc->sc", n, n)
    scale = 1 / np.sqrt(variance + layer.epsilon)
    n *= scale

    def back(dy: Array, _: bool) -> tuple[Array, Values]:
        changes = dy.reshape(rows.shape)
        gamma, beta = np.einsum("spc,spc->c", changes, n), changes.sum(axis=(0, 1))
        dx = n * -gamma
        dx -= beta
        dx *= each[:, None, None]
        dx += changes
        dx *= values["gamma"] * scale
        found = {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance}
        return dx.reshape(x.shape), found

    return (n * values["gamma"] + values["beta"]).reshape(x.shape), back
