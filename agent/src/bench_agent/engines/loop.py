"""The order of samples: batches fed from the host, or slices of an order stored on the device.

In every loop the first epoch has the job's order; later ones are shuffled.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .common import FRAMEWORK_SEED, as_floats
from .seam import Data


def orders(data: Data) -> Iterator[NDArray[np.int32]]:
    """The given orders of the samples, then an endless series of shuffled ones.

    The host shuffles: on the device this costs some frameworks a twentieth of a short epoch.
    """
    shuffle = np.random.default_rng(FRAMEWORK_SEED)
    yield from data.given_orders
    order = data.order
    while True:
        order = shuffle.permutation(order)
        yield order


def host_batches(
    data: Data, batch_size: int
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int32]]]:
    """Full batches of floats and labels, gathered by NumPy, over endless epochs."""
    inputs = as_floats(data.train_x)
    for order in orders(data):
        for end in range(batch_size, len(order) + 1, batch_size):
            rows = order[end - batch_size : end]
            yield inputs[rows], data.train_y[rows]


class SlicedLoop(ABC):
    """``train_block`` of a loop whose data and order are on the device.

    ``_orders`` yields the order of each epoch. ``_position`` counts the steps of the current epoch,
    ``_trained`` all steps.
    """

    _data: Data
    _orders: Iterator[NDArray[np.int32]]
    _steps_per_epoch: int
    _position: int = 0
    _trained: int = 0

    def _begin(self) -> None:
        """Start the first epoch."""
        self._position = self._trained = 0
        self._orders = orders(self._data)
        self._reorder(next(self._orders))

    def train_block(self, steps: int) -> None:
        """See :class:`.seam.Session`."""
        while steps:
            if self._position == self._steps_per_epoch:
                self._position = 0
                self._reorder(next(self._orders))
            count = min(steps, self._steps_per_epoch - self._position)
            self._train(self._position, count)
            self._position += count
            self._trained += count
            steps -= count

    @abstractmethod
    def _reorder(self, order: NDArray[np.int32]) -> None:
        """Put the order of the next epoch on the device."""

    @abstractmethod
    def _train(self, first: int, count: int) -> None:
        """Train ``count`` steps of the current epoch, starting with step ``first``."""
