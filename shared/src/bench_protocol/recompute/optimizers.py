"""The optimisers' update rules, float64; formulas in :mod:`bench_protocol.catalogue.workloads`."""

from collections.abc import Iterator

import numpy as np

from ..catalogue.workloads import SGD, Adam, Optimizer, RMSprop
from ..training.reading import mean_square, restarted
from .arrays import Array

# Values updated at a time, so that temporaries stay in the cache, and below the size (128 KiB) from
# which the C library maps and clears new pages for each of them.
PIECE = 1 << 13


class Update:
    """One tensor's optimiser state and the update of its weights.

    State: SGD the velocity, RMSprop the mean square, Adam the mean and the mean square. Mean
    squares start at ``MEAN_SQUARE``, the others at 0. Of tensors with one dimension Adam lets
    nothing decay.
    """

    def __init__(self, settings: Optimizer, weights: Array, *, first: bool = False) -> None:
        """
        Args:
            weights: C-contiguous; :meth:`apply` changes them in place.
            first: start from an empty state at step 1; otherwise Adam's bias corrections are 1,
                because its counter is beyond ``COUNTED_ON``.
        """
        self._settings = settings
        self._weights, self._decays = weights.reshape(-1), weights.ndim > 1
        self._step = restarted(0, first)
        squares = np.full(weights.size, mean_square(first))
        match settings:
            case SGD():
                self._state = [np.zeros(weights.size)]
            case RMSprop():
                self._state = [squares]
            case Adam():
                self._state = [np.zeros(weights.size), squares]

    def apply(self, gradient: Array) -> None:
        """Update the weights by one step."""
        flat = gradient.reshape(-1)
        self._step += 1
        for piece in _pieces(flat.size):
            state = [tensor[piece] for tensor in self._state]
            weights, of_piece = self._weights[piece], flat[piece]
            if isinstance(self._settings, SGD) and self._settings.weight_decay:
                of_piece = of_piece + self._settings.weight_decay * weights
            if isinstance(self._settings, Adam) and self._decays:
                weights *= 1 - self._settings.learning_rate * self._settings.weight_decay
            weights += change(self._settings, of_piece, state, self._step)


def change(settings: Optimizer, gradient: Array, state: list[Array], step: int) -> Array:
    """Return the change of the weights in one step, counted from 1; ``state`` is updated in place.

    Adam's bias corrections ``1 - beta^t`` take the betas rounded to float32 (0.999 becomes
    0.9990000128746033), as every framework does; the moments take the decimal ones.
    """
    match settings:
        case SGD():
            state[0] *= settings.momentum
            state[0] -= settings.learning_rate * gradient
            return state[0]
        case RMSprop():
            _average(state[0], settings.rho, gradient**2)
            changes: Array = -settings.learning_rate * gradient
            changes /= np.sqrt(state[0] + settings.epsilon)
            return changes
        case Adam():
            _average(state[0], settings.beta_1, gradient)
            _average(state[1], settings.beta_2, gradient**2)
            beta_1, beta_2 = (float(np.float32(b)) for b in (settings.beta_1, settings.beta_2))
            alpha = settings.learning_rate * (1 - beta_2**step) ** 0.5 / (1 - beta_1**step)
            changes = -alpha * state[0]
            changes /= np.sqrt(state[1]) + settings.epsilon
            return changes


def _average(mean: Array, keep: float, values: Array) -> None:
    """``mean <- keep mean + (1 - keep) values``, in place."""
    mean *= keep
    mean += (1 - keep) * values


def _pieces(size: int) -> Iterator[slice]:
    for start in range(0, size, PIECE):
        yield slice(start, start + PIECE)
