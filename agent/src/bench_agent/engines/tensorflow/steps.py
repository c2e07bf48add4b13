"""TensorFlow, recipe ``tuned``: many steps in one compiled program, data on the device.

The program's arguments are the first step and the number of steps, so one step and a hundred run
the same code. Compared with ``fit`` it saves, in each step, the call into TensorFlow, the input
pipeline, the copy of the batch, Keras' bookkeeping, and an optimiser of many small operations.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bench_protocol.catalogue.layers import LSTM
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.training.reading import STEPS_PER_LOOP

from ..common import are_tokens, resident
from ..cpu import malloc
from ..loop import SlicedLoop
from . import dropout, keras_model, shared, units, update
from . import forward as tf_forward

# A loop iteration costs TensorFlow about 0.1 ms of bookkeeping: unroll where a step is short.
UNROLL_BELOW_FLOPS = ((0.5e9, 16), (5e9, 4))


class StepsSession(SlicedLoop, shared.KerasSession):
    def __init__(
        self,
        built: shared.Built,
        *,
        fused_updates: bool,
        xla: bool = False,
        indices: Literal["int32", "int64"] = "int32",
    ) -> None:
        """``xla``: compile the program. ``indices``: type of order and labels; TensorFlow keeps
        int32 on a GPU's host."""
        super().__init__(built)
        workload, data, batch_size = built.workload, built.data, built.cell.batch_size
        self._loss = tf.constant(0.0)
        x = resident(data.train_x)
        self._x = tf.constant(x.astype(indices) if are_tokens(data.train_x) else x)
        self._indices, self._xla = indices, xla
        self._y = tf.constant(data.train_y.astype(indices))
        self._order = tf.Variable(data.order.astype(indices), trainable=False)
        self._begin((data.order,))
        # Under XLA the masks follow from the step's number, and not from a state of XLA's own.
        self._own_masks = self._on_cpu or xla
        self._chains = units.chains(workload, batch_size) if self._on_cpu else 1
        self._variables = [variable.value for variable in built.model.trainable_variables]
        stock = built.layers == "stock"
        self._cut = units.cut(workload, built.model, self._chains) if stock else None
        if self._cut is not None:
            self._variables = self._cut.in_place(self._variables)
        self._state = update.state_of(self._variables)
        self._fused = fused_updates
        self._update = update.update(workload.optimizer, self._state, fused=fused_updates)
        memory_kept = self._on_cpu and malloc.keep()
        # Under XLA a loop of known length: a GPU need not read back after each step whether it goes
        # on. Steps that are unrolled would be compiled one by one.
        self._unroll = STEPS_PER_LOOP if xla else _unroll(workload, batch_size)
        self._program = self._compile(self._unroll)
        self.settings = {
            "loop": "tf.while_loop",
            "steps_unrolled": "1" if xla else str(self._unroll),
            "steps_per_loop": str(STEPS_PER_LOOP) if xla else "any",
            "jit_compile": str(xla).lower(),
            "indices": indices,
            "data_on_device": self._x.dtype.name,
            "updates": "fused" if fused_updates else "composed",
            "chains": str(self._chains),
            "first_dense_layer": _how(isinstance(self._cut, units.DensePair)),
            "large_layers": _how(isinstance(self._cut, units.LargeLayers)),
            "dropout": "16 bits a value" if self._own_masks else "tf.nn.dropout",
            "memory_kept": str(memory_kept).lower(),
            **self._mixed_settings,
        }

    def _reorder(self, order: NDArray[np.int32]) -> None:
        with tf.device(self._place):
            self._order.assign(order.astype(self._indices))

    def copied_batches(self, count: int) -> list[NDArray[Any]]:
        with tf.device(self._place):
            rows = tf.split(self._order[: count * self._batch_size], count)
            batches = [self._inputs(some) for some in rows]
        return [batch.numpy() for batch in batches]

    def _train(self, first: int, count: int) -> None:
        with tf.device(self._place):
            scalars = (tf.constant(value) for value in (first, count, self._trained))
            self._loss = self._program(*scalars)

    def _inferred_logits(self, x: Any) -> Any:
        (logits,) = self._logits([self._typed(x)], dropout.none, training=False)
        return tf.cast(logits, tf.float32)

    def _switch_dropout(self) -> None:
        self._program = self._compile(self._unroll)
        with tf.device(self._place):
            self._program(*(tf.constant(0) for _ in range(3)))  # no step: compiles it

    def _set_state(self, weights: Weights, first: bool) -> None:
        with tf.device(self._place):
            keras_model.set_trained(self._workload, self._model, weights)
            if self._cut is not None:
                self._cut.read_back()
            update.restart(self._workload.optimizer, self._state, fused=self._fused, first=first)

    def trained_parameters(self) -> Iterator[NDArray[np.float32]]:
        self._write_back()
        return super().trained_parameters()

    def _write_back(self) -> None:
        if self._cut is not None:
            self._cut.write_back()

    def _drop(self, number: Any) -> tf_forward.Drop:
        if not self._drops:
            return dropout.none
        stateful: tf_forward.Drop = tf.nn.dropout
        return dropout.Dropout(number) if self._own_masks else stateful

    def close(self) -> None:
        self._loss = self.loss()

    def _compile(self, unroll: int) -> Any:
        """The program: (first step in the epoch, steps, steps trained before) -> last loss."""

        def program(first: Any, steps: Any, trained: Any) -> Any:
            end = first + steps

            def trained_one(step: Any, loss: Any) -> Any:
                return step + 1, self._step(step, trained + (step - first) + 1)

            def body(step: Any, loss: Any, how_many: int) -> Any:
                if self._xla:
                    return _counted(trained_one, how_many, step, loss)
                for offset in range(how_many):
                    loss = self._step(step + offset, trained + (step - first) + (offset + 1))
                return step + how_many, loss

            step, loss = first, tf.constant(0.0)
            for how_many in (unroll, 1) if unroll > 1 else (1,):
                step, loss = tf.while_loop(
                    lambda step, loss, many=how_many: step + many <= end,
                    partial(body, how_many=how_many),
                    (step, loss),
                    # Steps are sequential, so the loop needs no bookkeeping for parallel
                    # iterations.
                    parallel_iterations=1,
                )
            return loss

        return tf.function(program, autograph=False, jit_compile=self._xla)

    def _step(self, step: Any, number: Any) -> Any:
        """One training step in the graph; returns the batch's mean loss, a float32 scalar. int32
        scalars: ``step`` of the epoch, and ``number`` of all steps, from 1."""
        batch = self._batch_size
        rows = tf.slice(self._order, (step * batch,), (batch,))
        drop = self._drop(number)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self._variables)
            loss = tf.add_n(self._losses(rows, drop))
            scaled = loss if self._scale == 1 else loss * self._scale
        gradients = tape.gradient(scaled, self._variables)
        if self._scale != 1:
            gradients = [gradient / self._scale for gradient in gradients]
        self._update(gradients, tf.cast(number, tf.float32))
        return loss

    def _losses(self, rows: Any, drop: tf_forward.Drop) -> list[Any]:
        """The share of each chain in the batch's mean loss."""
        # A first dense layer has no layers before it that chains could share.
        whole = isinstance(self._cut, units.DensePair)
        parts = [rows] if whole or self._chains == 1 else tf.split(rows, self._chains)
        inputs = [self._typed(self._inputs(part)) for part in parts]
        outputs = self._logits(inputs, drop, training=True)
        labelled = [rows] if self._cut else parts
        return [self._loss_of(x, part) for x, part in zip(outputs, labelled, strict=True)]

    def _logits(self, parts: list[Any], drop: tf_forward.Drop, *, training: bool) -> list[Any]:
        """Logits of the parts of a batch; where layers are cut by units, of the whole batch."""
        # XLA has no cuDNN LSTM.
        unrolled = self._on_cpu or self._xla
        mode = tf_forward.Mode(training, self.layers == "stock", unrolled)

        def forward(some: slice, x: Any) -> Any:
            layers, keras_layers = self._workload.layers[some], self._model.layers[some]
            return tf_forward.forward(layers, keras_layers, x, drop, mode)

        outputs = [forward(slice(self._cut.first if self._cut else None), part) for part in parts]
        return outputs if self._cut is None else [self._cut(tf.concat(outputs, 0), forward)]

    def _typed(self, inputs: Any) -> Any:
        """Floats in the layers' compute type; tokens stay integers."""
        return tf.cast(inputs, self._compute) if inputs.dtype.is_floating else inputs

    def _inputs(self, rows: Any) -> Any:
        x = tf.gather(self._x, rows)
        return tf.cast(x, tf.float32) / np.float32(255) if x.dtype == tf.uint8 else x

    def _loss_of(self, logits: Any, rows: Any) -> Any:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.gather(self._y, rows), logits=tf.cast(logits, tf.float32)
        )
        return tf.reduce_sum(losses) / (self._batch_size * self._workload.data_set.units_per_sample)


def _counted(body: Any, count: int, *values: Any) -> Any:
    """``values`` after a loop of known length, in which XLA sees it."""
    _, *after = tf.while_loop(
        lambda number, *values: number < count,
        lambda number, *values: (number + 1, *body(*values)),
        (tf.constant(0), *values),
        parallel_iterations=1,
    )
    return after


def _how(by_units: bool) -> str:
    return "by units" if by_units else "whole"


def _unroll(workload: Workload, batch_size: int) -> int:
    if any(isinstance(layer, LSTM) for layer in workload.layers):
        return 1  # an LSTM's time steps are unrolled already
    flops = workload.training_flops_per_sample * batch_size
    return next((unroll for limit, unroll in UNROLL_BELOW_FLOPS if flops < limit), 1)
