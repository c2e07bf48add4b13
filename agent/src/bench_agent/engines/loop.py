"""Which samples come next: batches fed from the host, or slices of an order kept on the device.

The first epoch has the job's order, in every loop; later ones are shuffled anew.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .common import FRAMEWORK_SEED, as_floats
from .seam import Data


def orders(data: Data) -> Iterator[NDArray[np.int32]]:
    """The job's order of the samples, then others without end.

    Shuffled on the host: on the device it costs some frameworks a twentieth of a short epoch.
    """
    shuffle = np.random.default_rng(FRAMEWORK_SEED)
    order = data.order
    while True:
        yield order
        order = shuffle.permutation(order)


def host_batches(
    data: Data, batch_size: int
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int32]]]:
    """Full batches of floats and labels, gathered by NumPy, epoch after epoch without end."""
    inputs = as_floats(data.train_x)
    for order in orders(data):
        for end in range(batch_size, len(order) + 1, batch_size):
            rows = order[end - batch_size : end]
            yield inputs[rows], data.train_y[rows]


class SlicedLoop(ABC):
    """``train_block`` of a loop whose data, and whose order, are on the device.

    ``_orders`` gives an epoch's order after the other; its first is the session's to take.
    ``_position`` counts the steps trained in the running epoch, ``_trained`` those ever trained.
    """

    _orders: Iterator[NDArray[np.int32]]
    _steps_per_epoch: int
    _position: int = 0
    _trained: int = 0

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
        """Put the order of another epoch on the device."""

    @abstractmethod
    def _train(self, first: int, count: int) -> None:
        """Train ``count`` steps of the running epoch, from step ``first`` on."""
