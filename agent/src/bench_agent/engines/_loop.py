"""Which samples come next: batches fed from the host, or slices of an order kept on the device.

The first epoch has the job's order, in every loop; later ones are shuffled anew.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ._common import FRAMEWORK_SEED, as_floats
from .seam import Data


def host_batches(
    data: Data, batch_size: int
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int32]]]:
    """Full batches of floats and labels, gathered by NumPy, epoch after epoch without end."""
    inputs = as_floats(data.train_x)
    order = data.order
    shuffle = np.random.default_rng(FRAMEWORK_SEED)
    while True:
        for end in range(batch_size, len(order) + 1, batch_size):
            rows = order[end - batch_size : end]
            yield inputs[rows], data.train_y[rows]
        order = shuffle.permutation(order)


class SlicedLoop(ABC):
    """``train_block`` of a loop whose data, and whose order, are on the device.

    ``_position`` counts the steps trained in the running epoch, ``_trained`` those ever trained.
    """

    _steps_per_epoch: int
    _position: int = 0
    _trained: int = 0

    def train_block(self, steps: int) -> None:
        """See :class:`.seam.Session`."""
        while steps:
            if self._position == self._steps_per_epoch:
                self._position = 0
                self._shuffle()
            count = min(steps, self._steps_per_epoch - self._position)
            self._train(self._position, count)
            self._position += count
            self._trained += count
            steps -= count

    @abstractmethod
    def _shuffle(self) -> None:
        """Bring the order kept on the device into a new one."""

    @abstractmethod
    def _train(self, first: int, count: int) -> None:
        """Train ``count`` steps of the running epoch, from step ``first`` on."""
