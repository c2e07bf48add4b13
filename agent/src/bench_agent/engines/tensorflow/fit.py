"""TensorFlow, recipes ``naive`` and ``pipeline``: ``model.fit``, with one-hot labels of pictures.

``fit`` runs in its own thread for the whole session, so that no block contains its start-up. A
callback stops it before a batch until more batches are requested. The callback does no work per
batch, so Keras stays asynchronous, as in a ``fit`` without callbacks.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from threading import Semaphore, Thread
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bench_protocol.catalogue.seeded import Weights

from ..common import FRAMEWORK_SEED, as_inputs
from ..seam import Start
from . import keras_model, shared

ENDLESS_EPOCHS = 1_000_000_000
SHUFFLE_BUFFER = 10_000
Arguments = Mapping[str, Any]
"""What one call of ``fit`` is given."""


class _Closed(BaseException):
    """Ends ``fit`` from inside its callback."""


class FitSession(shared.KerasSession):
    """A session whose steps are the batches of ``model.fit``."""

    def __init__(self, built: shared.Built) -> None:
        super().__init__(built)
        model = built.model
        data_set = built.workload.data_set
        # A row of as many numbers as there are tokens would be far larger than its label.
        self._one_hot = None if data_set.tokens else np.eye(data_set.classes, dtype=np.float32)
        loss = keras.losses.CategoricalCrossentropy
        if self._one_hot is None:
            loss = keras.losses.SparseCategoricalCrossentropy
        self._arguments = self._on_dataset if self._pipeline else self._on_arrays
        model.compile(
            optimizer=keras_model.optimizer(built.workload.optimizer, model.trainable_variables),
            loss=loss(from_logits=True),
            # Keras' "auto" sees the machine's GPUs even if they are hidden, and would use XLA in a
            # CPU cell.
            jit_compile=False if self._on_cpu else "auto",
        )
        self.settings = {
            "loop": "model.fit",
            "input": f"tf.data, shuffle({SHUFFLE_BUFFER})" if self._pipeline else "NumPy arrays",
            "jit_compile": str(model.jit_compile).lower(),
            **_mixed_settings(keras.config.dtype_policy()),
        }
        # A restart sets its state, also before the first step.
        model.optimizer.build(model.trainable_variables)
        self._begin((built.data.order,))

    def _begin(self, orders: Sequence[NDArray[np.int32]], first: int = 0) -> None:
        """Start ``fit``; it waits before its first batch."""
        self._gate = _Gate(self._model)
        arguments = self._arguments(orders, first)
        self._thread = Thread(target=self._fit, args=(arguments,), name="fit", daemon=True)
        self._thread.start()
        self._gate.wait()

    def restart(self, start: Start) -> None:
        self.close()
        super().restart(start)

    def _switch_dropout(self) -> None:
        keras_model.switch_dropout(self._workload, self._model, self._drops)
        # The function contains the rates; its first call compiles it.
        self._model.make_train_function(force=True)

    def _set_state(self, weights: Weights, first: bool) -> None:
        with tf.device(self._place):
            keras_model.set_trained(self._workload, self._model, weights)
            keras_model.restart(self._model.optimizer, first)

    def train_block(self, steps: int) -> None:
        self._gate.run(steps)

    def loss(self) -> float:
        return self._gate.loss()

    @property
    def counted_by(self) -> Literal["optimizer", "loop"]:
        return "optimizer"

    def step_count(self) -> int:
        return int(self._model.optimizer.iterations.numpy())

    def copied_batches(self, count: int) -> list[NDArray[Any]]:
        first = next(self._arguments((self._data.order,), 0))
        batches = first["x"]
        if not isinstance(batches, tf.data.Dataset):
            # Keras' adapter of arrays batches and prefetches in this way.
            slices = tf.data.Dataset.from_tensor_slices((batches, first["y"]))
            batches = slices.batch(first["batch_size"]).prefetch(tf.data.AUTOTUNE)
        with tf.device(self._place):
            copies = [tf.identity(x) for x, _ in batches.take(count)]
        return [copy.numpy() for copy in copies]

    def close(self) -> None:
        self._gate.close()
        self._thread.join()
        # The error that ended fit references its iterator in a cycle. Freeing it waits for a thread
        # that sleeps up to a minute: collect it now, not during a later block.
        gc.collect()

    def _on_arrays(self, orders: Sequence[NDArray[np.int32]], first: int) -> Iterator[Arguments]:
        """Epochs in the given orders, each a call of its own, then as ``fit`` shuffles."""
        whole = self._steps_per_epoch * self._batch_size
        for order in orders:
            x, y = self._samples(order[first * self._batch_size : whole])
            yield {"x": x, "y": y, "batch_size": self._batch_size, "shuffle": False, "epochs": 1}
            first = 0
        if len(x) < whole:
            x, y = self._samples(order[:whole])
        # Under a seed for all of TensorFlow, fit would shuffle each epoch into the same order.
        tf.random.set_seed(None)
        yield {"x": x, "y": y, "batch_size": self._batch_size, "epochs": ENDLESS_EPOCHS}

    def _on_dataset(self, orders: Sequence[NDArray[np.int32]], first: int) -> Iterator[Arguments]:
        """Epochs that tf.data shuffles into the given orders, each a call of its own but the last
        one, which later epochs follow."""
        for number, order in enumerate(orders):
            part = order[first * self._batch_size :]
            goes_on = number == len(orders) - 1 and not first
            yield self._shuffled_batches(_before_shuffling(part), endless=goes_on)
            first = 0
        if not goes_on:
            yield self._shuffled_batches(order, endless=True)

    def _shuffled_batches(self, rows: NDArray[np.int32], *, endless: bool) -> Arguments:
        samples = _shuffled(self._samples(rows)).batch(self._batch_size, drop_remainder=True)
        # fit's own shuffle is for arrays.
        return {
            "x": samples.prefetch(tf.data.AUTOTUNE),
            "shuffle": False,
            "epochs": ENDLESS_EPOCHS if endless else 1,
        }

    def _samples(self, rows: Any) -> tuple[Any, Any]:
        labels = self._data.train_y[rows]
        x = as_inputs(self._data.train_x[rows])
        return x, labels if self._one_hot is None else self._one_hot[labels]

    def _fit(self, every: Iterator[Arguments]) -> None:
        gate = self._gate

        class Hold(keras.callbacks.Callback):  # type: ignore[misc]
            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                gate.before_batch()

            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                gate.after_epoch()

        try:
            with tf.device(self._place):  # a thread has its own current device
                for arguments in every:
                    self._model.fit(**arguments, verbose=0, callbacks=[Hold()])
        except _Closed:
            pass
        except BaseException as error:
            gate.fail(error)


def _shuffled(samples: Any) -> Any:
    slices = tf.data.Dataset.from_tensor_slices(samples)
    return slices.shuffle(SHUFFLE_BUFFER, seed=FRAMEWORK_SEED)


def _before_shuffling(order: NDArray[np.int32]) -> NDArray[np.int32]:
    """The samples as tf.data must get them so that its first epoch has an order: a trial with
    numbers finds the result of the seeded shuffle, which depends on their count."""
    count = len(order)
    places = _shuffled(np.arange(count)).batch(count).get_single_element().numpy()
    laid_out = np.empty_like(order)
    laid_out[places] = order
    return laid_out


def _mixed_settings(policy: Any) -> dict[str, str]:
    """The settings of the other loops, but with Keras' own loss scale."""
    if not policy.name.startswith("mixed_"):
        return {}
    scale = {"loss_scale": "dynamic"} if policy.compute_dtype == "float16" else {}
    return {"compute": policy.compute_dtype} | scale


class _Gate:
    """Lets the thread of ``fit`` run a number of batches at a time."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._left = 0
        self._go = Semaphore(0)
        self._idle = Semaphore(0)
        self._closing = False
        self._error: BaseException | None = None
        self._epoch_loss: float | None = None

    # Called in the session's thread.

    def wait(self) -> None:
        self._idle.acquire()
        if self._error:
            # Stay released: a second call must raise the error too, not wait forever.
            self._idle.release()
            raise self._error

    def run(self, batches: int) -> None:
        if self._closing:
            raise RuntimeError("the session is closed")
        self._left = batches
        self._go.release()
        self.wait()

    def loss(self) -> float:
        if self._epoch_loss is not None:
            return self._epoch_loss
        return self._running_loss()

    def close(self) -> None:
        self._closing = True
        self._go.release()

    # Called in the thread of fit.

    def before_batch(self) -> None:
        if self._left == 0:
            self._idle.release()
            self._go.acquire()
            if self._closing:
                raise _Closed
            self._epoch_loss = None
        self._left -= 1
        if self._left == 0:
            # fit's loss is a mean since the last reset; after a reset it is the last batch's loss.
            self._model.reset_metrics()

    def after_epoch(self) -> None:
        # The next epoch resets the metrics before its first batch.
        if self._left == 0:
            self._epoch_loss = self._running_loss()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._idle.release()

    def _running_loss(self) -> float:
        return float(self._model.metrics[0].result())
