"""JAX's training loops."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bench_protocol.catalogue.layers import Conv2D
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import trained_tensors
from bench_protocol.training.reading import STEPS_PER_LOOP, mean_square

from ..common import FRAMEWORK_SEED, resident
from ..loop import HostBatches, SlicedLoop, TrainingLoop
from ..seam import Data
from . import model, optimizer
from .products import synchronize

BATCHES_AHEAD = 2


class JaxSession(TrainingLoop):
    """``_key``: of dropout; None where layers do not drop, and then a step is another program.
    ``_state`` holds the arrays of (trained weights, statistics of normalisations, optimiser state)
    as a plain list, so that a step does not traverse dictionaries; ``_tree`` restores the layers at
    compilation."""

    fast = False

    def __init__(self, workload: Workload, cell: Cell, data: Data, weights: Weights) -> None:
        super().__init__(workload, cell, data)
        self._forward = model.forward(workload, fast=self.fast)
        self._frozen = _on_device(weights[: workload.frozen_layers])
        self._set_state(weights, first=True)
        self._key: Any = jax.random.key(FRAMEWORK_SEED)
        self._loss = jnp.float32(float("nan"))
        self._evaluated: Any = None

    def _switch_dropout(self) -> None:
        # A step's masks follow from the key and the step's number.
        self._key = jax.random.key(FRAMEWORK_SEED) if self._drops else None

    def _set_state(self, weights: Weights, first: bool) -> None:
        self._state: list[Any] = []  # freed first
        layers = _on_device(weights[self._workload.frozen_layers :])
        trained, statistics = model.split(layers)
        moments = optimizer.initial_state(self._workload.optimizer, trained, mean_square(first))
        self._state, self._tree = jax.tree.flatten((trained, statistics, moments))

    def sync(self) -> None:
        synchronize((self._state, self._loss))

    def parameter_count(self) -> int:
        return sum(array.size for array in jax.tree.leaves(self._parameters()))

    def peak_memory_bytes(self) -> int | None:
        try:
            statistics = self._device().memory_stats() or {}
        except RuntimeError:  # a plug-in without statistics
            return None
        peak = statistics.get("peak_bytes_in_use")
        return None if peak is None else int(peak)

    def _inferred(self, x: NDArray[Any]) -> NDArray[np.float32]:
        if self._evaluated is None:
            self._evaluated = jax.jit(lambda parameters, x: self._logits(parameters, x, None)[0])
        return np.asarray(self._evaluated(self._parameters(), x))

    def placement(self) -> str:
        return str(self._device())

    def trained_parameters(self) -> Iterator[NDArray[np.float32]]:
        parameters = self._parameters()
        for tensor in trained_tensors(self._workload):
            yield np.asarray(parameters[tensor.index][tensor.name])

    def close(self) -> None:
        self._state = []  # there are no threads to end

    def _device(self) -> Any:
        return next(iter(self._state[0].devices()))

    def _parameters(self) -> model.Parameters:
        trained, statistics, _ = jax.tree.unflatten(self._tree, self._state)
        return [*self._frozen, *model.joined(trained, statistics)]

    def _logits(
        self, parameters: Any, x: Any, key: Any, number: Any = 0, training: bool = False
    ) -> tuple[Any, model.Parameters]:
        """The forward pass in the cell's precision: logits in float32, and the statistics of the
        batch in training."""
        weights, statistics = model.split(parameters)
        weights = jax.tree.map(lambda value: value.astype(self._compute), weights)
        x = x if jnp.issubdtype(x.dtype, jnp.integer) else x.astype(self._compute)
        every = model.joined(weights, statistics)
        logits, of_batch = self._forward(every, x, key, number, training)
        return logits.astype(jnp.float32), of_batch

    def _step(self, state: Any, frozen: Any, x: Any, y: Any, key: Any, number: Any) -> Any:
        """The new state and the batch's mean loss after the step of this ``number``, from 1."""
        trained, statistics, moments = jax.tree.unflatten(self._tree, state)

        def loss_of(trained: Any) -> Any:
            parameters = [*frozen, *model.joined(trained, statistics)]
            logits, of_batch = self._logits(parameters, x, key, number, training=True)
            return self._scale * model.mean_loss(logits, y), of_batch[len(frozen) :]

        (loss, of_batch), gradients = jax.value_and_grad(loss_of, has_aux=True)(trained)
        if self._scale != 1:
            loss, gradients = jax.tree.map(lambda value: value / self._scale, (loss, gradients))
        trained, moments = optimizer.update(
            self._workload.optimizer, trained, moments, gradients, number
        )
        return jax.tree.leaves((trained, model.moved(statistics, of_batch), moments)), loss


class FedSession(JaxSession):
    """A compiled step. ``naive`` passes NumPy arrays and reads the loss every step; ``pipeline``
    puts batches on the device before the step that needs them, and reads the loss on request."""

    def __init__(self, workload: Workload, cell: Cell, data: Data, weights: Weights) -> None:
        super().__init__(workload, cell, data, weights)
        self._host = HostBatches(data, cell.batch_size)
        self._begin((data.order,))
        self._read = (lambda loss: loss) if self._pipeline else float
        self._compiled = jax.jit(self._step)
        self.settings = {
            "loop": "jit of a step",
            "input": f"device_put, {BATCHES_AHEAD} ahead" if self._pipeline else "NumPy batches",
            **self._mixed_settings,
        }

    @property
    def repeated_epochs(self) -> int:
        return self._host.repeated_epochs

    def _begin(self, orders: Sequence[NDArray[np.int32]], first: int = 0) -> None:
        batches = self._host.of(orders, first)
        self._batches = _put_ahead(batches) if self._pipeline else batches

    def _switch_dropout(self) -> None:
        super()._switch_dropout()
        x, y = next(self._host.of((self._data.order,), 0))
        # The calls of the step take what is compiled here.
        self._compiled.lower(self._state, self._frozen, x, y, self._key, self._trained).compile()

    def train_block(self, steps: int) -> None:
        for batch in islice(self._batches, steps):
            self._trained += 1
            self._state, loss = self._compiled(
                self._state, self._frozen, *batch, self._key, self._trained
            )
            self._loss = self._read(loss)
            del batch  # freed, so that the next batch reuses its memory, which is in the caches

    def copied_batches(self, count: int) -> list[NDArray[Any]]:
        # A compiled step copies its NumPy arguments as any compiled function does.
        received = jax.jit(lambda x: x)
        batches = [received(x) for x, _ in islice(self._batches, count)]
        return [np.asarray(batch) for batch in batches]


def _on_device(weights: Weights) -> model.Parameters:
    return [{name: jnp.asarray(value) for name, value in v.items()} for v in weights]


def _put_ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """Batches on the device, the next ones in transfer (like flax's ``prefetch_to_device``)."""
    ahead = deque(jax.device_put(batch) for batch in islice(batches, BATCHES_AHEAD))
    while True:
        yield ahead.popleft()
        ahead.append(jax.device_put(next(batches)))


class TunedSession(SlicedLoop, JaxSession):
    """Data on the device, batches gathered there.

    One program trains ``STEPS_PER_LOOP`` steps, and is compiled when the session is built. Another
    one trains any number of steps: the rest of a block. Where the length is a traced value, XLA on
    a GPU reads back after each step whether the loop goes on. A program for each length would be
    compiled in timed blocks.

    A convolution inside an XLA loop is twenty times slower on a CPU (JAX 0.10). On a CPU each step
    is therefore a separate program, and Python runs ahead of it.
    """

    fast = True

    def __init__(self, workload: Workload, cell: Cell, data: Data, weights: Weights) -> None:
        super().__init__(workload, cell, data, weights)
        self._x = jnp.asarray(resident(data.train_x))
        self._y = jnp.asarray(data.train_y)
        self._begin((data.order,))
        convolves = any(isinstance(layer, Conv2D) for layer in workload.layers)
        self._looped = not (convolves and self._on_cpu)
        program = self._steps if self._looped else self._single
        self._program = jax.jit(program, donate_argnums=0)
        many = self._looped and self._steps_per_epoch >= STEPS_PER_LOOP
        self._many_steps = self._ready_many() if many else None
        self.settings = {
            "loop": "lax.fori_loop" if self._looped else "jit of a step",
            "steps_per_call": str(STEPS_PER_LOOP) if many else "1",
            "input": "gather on the device",
            "data_on_device": str(self._x.dtype),
            "large_convolutions": "matrix products" if self._on_cpu else "XLA's",
            **self._mixed_settings,
        }

    def copied_batches(self, count: int) -> list[NDArray[Any]]:
        gather = jax.jit(self._batch)
        batches = [gather((self._x, self._y, self._order), step) for step in range(count)]
        return [np.asarray(x) for x, _ in batches]

    def _reorder(self, order: NDArray[np.int32]) -> None:
        self._order = jnp.asarray(order)

    def _train(self, first: int, count: int) -> None:
        rest = count % STEPS_PER_LOOP if self._many_steps else count
        for offset in range(0, count - rest, STEPS_PER_LOOP):
            self._run(self._many_steps, first + offset, self._trained + offset)
        done = count - rest
        if not self._looped:
            for offset in range(count):
                self._run(self._program, first + offset, self._trained + offset)
        elif rest:
            self._run(self._program, first + done, self._trained + done, rest)

    def _run(self, program: Any, *numbers: int) -> None:
        self._state, self._loss = program(*self._arguments(*numbers))

    def _arguments(self, *numbers: int) -> tuple[Any, ...]:
        data = self._x, self._y, self._order
        return self._state, self._frozen, data, self._key, np.array(numbers, np.int32)

    def _ready_many(self) -> Any:
        """The program, compiled now: its first call may come in a timed block."""
        return jax.jit(self._many, donate_argnums=0).lower(*self._arguments(0, 0)).compile()

    def _switch_dropout(self) -> None:
        super()._switch_dropout()
        if self._many_steps:
            self._many_steps = self._ready_many()
        numbers = (0, 0, 1) if self._looped else (0, 0)
        # The calls of the program take what is compiled here.
        self._program.lower(*self._arguments(*numbers)).compile()

    def _single(self, state: Any, frozen: Any, data: Any, key: Any, numbers: Any) -> Any:
        """Train step ``numbers[0]`` of the epoch; ``numbers[1]``: all steps trained before."""
        step, trained = numbers
        x, y = self._batch(data, step)
        return self._step(state, frozen, x, y, key, trained + 1)

    def _batch(self, data: Any, step: Any) -> Any:
        """Inputs and labels of a step of the epoch, gathered on the device."""
        data_x, data_y, order = data
        batch = self._batch_size
        rows = jax.lax.dynamic_slice(order, (step * batch,), (batch,))
        x, y = data_x[rows], data_y[rows]
        if x.dtype == jnp.uint8:
            x = x.astype(jnp.float32) / 255
        return x, y

    def _many(self, state: Any, frozen: Any, data: Any, key: Any, numbers: Any) -> Any:
        """Train ``STEPS_PER_LOOP`` steps as :meth:`_steps` does."""
        first, trained = numbers
        return self._steps(state, frozen, data, key, (first, trained, STEPS_PER_LOOP))

    def _steps(self, state: Any, frozen: Any, data: Any, key: Any, numbers: Any) -> Any:
        """Train ``numbers[2]`` steps, the first as :meth:`_single` does."""
        first, trained, count = numbers

        def body(offset: Any, carry: Any) -> Any:
            return self._single(carry[0], frozen, data, key, (first + offset, trained + offset))

        return jax.lax.fori_loop(0, count, body, (state, jnp.float32(0)))
