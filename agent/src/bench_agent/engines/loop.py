"""The part of a session that no framework changes, and the order of its samples: batches fed from
the host, or slices of an order stored on the device.

In every loop the first epoch has the job's order; later ones are shuffled.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.training.reading import drops, restarted

from ..base.precisions import COMPUTE_TYPES, loss_scale, mixed_settings
from .common import FRAMEWORK_SEED, Score, as_inputs, evaluation_batches
from .seam import Data, Start


def endless(orders: Iterable[NDArray[np.int32]]) -> Iterator[NDArray[np.int32]]:
    """The given orders of the samples, then endless ones that the host shuffles: on the device this
    costs some frameworks a twentieth of a short epoch."""
    shuffle = np.random.default_rng(FRAMEWORK_SEED)
    for order in orders:
        yield order
    while True:
        order = shuffle.permutation(order)
        yield order


class HostBatches:
    """Full batches of inputs and labels over endless epochs. Floats are computed once, which
    takes as long as hundreds of small steps for 60,000 pictures."""

    def __init__(self, data: Data, batch_size: int) -> None:
        self._inputs, self._labels = as_inputs(data.train_x), data.train_y
        self._batch_size = batch_size
        self.repeated_epochs = 0

    def of(
        self, orders: Iterable[NDArray[np.int32]], first: int
    ) -> Iterator[tuple[NDArray[Any], NDArray[np.int32]]]:
        """The batches in these orders, then shuffled; ``first``: number of the first batch in its
        epoch, from 0."""
        size, before = self._batch_size, None
        for order in endless(orders):
            self.repeated_epochs += before is not None and np.array_equal(before, order)
            before = order
            for end in range((first + 1) * size, len(order) + 1, size):
                rows = order[end - size : end]
                yield self._inputs[rows], self._labels[rows]
            first = 0


class TrainingLoop(ABC):
    """See :class:`.seam.Session`. ``_trained`` counts the steps as :meth:`.seam.Session.step_count`
    does. ``_drops``: whether dropout layers drop."""

    layers: Literal["stock", "safe"] = "stock"
    settings: Mapping[str, str]
    _loss: Any
    _repeated_epochs: int = 0
    _trained: int = 0
    _drops: bool = True

    def __init__(self, workload: Workload, cell: Cell, data: Data) -> None:
        self._workload = workload
        self._data = data
        self._batch_size = cell.batch_size
        self._steps_per_epoch = len(data.order) // cell.batch_size
        self._pipeline = cell.recipe == "pipeline"
        self._on_cpu = cell.device.kind == "cpu"
        self._compute: Any = COMPUTE_TYPES[cell.precision]
        self._scale = loss_scale(cell.precision)
        self._mixed_settings = mixed_settings(cell.precision)

    @property
    def counted_by(self) -> Literal["optimizer", "loop"]:
        return "loop"

    @property
    def repeated_epochs(self) -> int:
        return self._repeated_epochs

    def restart(self, start: Start) -> None:
        self._trained = restarted(self._trained, start.first_steps)
        if drops(self._workload) and start.dropout != self._drops:
            self._drops = start.dropout
            self._switch_dropout()
        self._set_state(start.weights, start.first_steps)
        self._begin(start.orders, start.first)

    @abstractmethod
    def _switch_dropout(self) -> None:
        """Have dropout layers drop, or not, as ``_drops`` says."""

    @abstractmethod
    def _set_state(self, weights: Weights, first: bool) -> None:
        """Set the trained weights and the optimiser's state for a restart; ``first``: to that of a
        first step."""

    @abstractmethod
    def _begin(self, orders: Sequence[NDArray[np.int32]], first: int = 0) -> None:
        """Go on with step ``first`` of an epoch in the first of these orders."""

    @abstractmethod
    def _inferred(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Logits (samples, classes) of some inputs, or (samples, steps, classes) of tokens, with
        dropout off and running statistics, copied to the host."""

    def loss(self) -> float:
        return float(self._loss)

    def step_count(self) -> int:
        return self._trained

    def evaluate(self, x: NDArray[Any], y: NDArray[np.int32]) -> tuple[float, float]:
        score = Score()
        for inputs, labels in evaluation_batches(x, y):
            score.add(self._inferred(inputs), labels)
        return score.result()


class SlicedLoop(TrainingLoop):
    """``train_block`` of a loop whose data and order are on the device. ``_orders`` yields each
    epoch's order, ``_drawn`` is that of the current one, and ``_position`` counts its steps."""

    _orders: Iterator[NDArray[np.int32]]
    _drawn: NDArray[np.int32]
    _position: int = 0

    def _begin(self, orders: Sequence[NDArray[np.int32]], first: int = 0) -> None:
        self._position = first
        self._orders = endless(orders)
        self._drawn = next(self._orders)
        self._reorder(self._drawn)

    def train_block(self, steps: int) -> None:
        while steps:
            if self._position == self._steps_per_epoch:
                self._position = 0
                before, self._drawn = self._drawn, next(self._orders)
                self._repeated_epochs += np.array_equal(before, self._drawn)
                self._reorder(self._drawn)
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
