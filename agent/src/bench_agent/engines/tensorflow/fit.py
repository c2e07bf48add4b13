"""TensorFlow, recipes ``naive`` and ``pipeline``: ``model.fit`` with one-hot labels.

``fit`` runs in its own thread for the whole session, so that no block contains its start-up. A
callback stops it before a batch until more batches are requested. The callback does no work per
batch, so Keras stays asynchronous, as in a ``fit`` without callbacks.
"""

import gc
from collections.abc import Iterator, Mapping
from threading import Semaphore, Thread
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ..common import FRAMEWORK_SEED, as_floats
from ..seam import Data, Dropped
from . import keras_model, shared

ENDLESS_EPOCHS = 1_000_000_000
SHUFFLE_BUFFER = 10_000
Arguments = Mapping[str, Any]
"""What one call of ``fit`` is given."""


class _Closed(BaseException):
    """Ends ``fit`` from inside its callback."""


class FitSession(shared.KerasSession):
    """A session whose steps are the batches of ``model.fit``."""

    def __init__(
        self,
        workload: Workload,
        cell: Cell,
        data: Data,
        model: Any,
        layers: Literal["stock", "safe"],
        place: str,
    ) -> None:
        super().__init__(workload, cell, data, model, layers, place)
        self._classes = workload.data_set.classes
        self._arguments = self._on_dataset if self._pipeline else self._on_arrays
        model.compile(
            optimizer=keras_model.optimizer(workload.optimizer),
            loss=keras.losses.CategoricalCrossentropy(from_logits=True),
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
        self._begin()

    def _begin(self) -> None:
        """Start ``fit``; it waits before its first batch."""
        self._gate = _Gate(self._model)
        self._thread = Thread(target=self._fit, name="fit", daemon=True)
        self._thread.start()
        self._gate.wait()

    def rewind(self, weights: Weights) -> None:
        self.close()
        with tf.device(self._place):
            keras_model.set_trained(self._workload, self._model, weights)
            keras_model.reset(self._model.optimizer)
        self._begin()

    def train_block(self, steps: int) -> None:
        self._gate.run(steps)

    def loss(self) -> float:
        return self._gate.loss()

    @property
    def counted_by(self) -> Literal["optimizer", "loop"]:
        return "optimizer"

    def step_count(self) -> int:
        return int(self._model.optimizer.iterations.numpy())

    def through_dropout(self, x: NDArray[np.float32], ahead: int) -> list[Dropped]:
        passes: list[Dropped] = []
        with tf.device(self._place):
            values = tf.constant(x)
            for layer in self._model.layers:
                if not isinstance(layer, keras.layers.Dropout):
                    values = layer(values)
                    continue
                before, values = values, layer(values, training=True)
                passes.append(shared.as_host(before, values))
        return passes

    def copied_batches(self, count: int) -> list[NDArray[np.float32]]:
        first = next(iter(self._arguments()))
        batches = first["x"]
        if not isinstance(batches, tf.data.Dataset):
            # As Keras' adapter of arrays.
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

    def _on_arrays(self) -> Iterator[Arguments]:
        """The first epoch in the job's order, later ones as ``fit`` shuffles, unless their orders
        are given."""
        batch_size = self._batch_size
        for order in self._data.given_orders:
            x, y = self._samples(order[: len(order) // batch_size * batch_size])
            yield {"x": x, "y": y, "batch_size": batch_size, "shuffle": False, "epochs": 1}
        # Under a seed for all of TensorFlow, fit would shuffle each epoch into the same order.
        tf.random.set_seed(None)
        yield {"x": x, "y": y, "batch_size": batch_size, "epochs": ENDLESS_EPOCHS}

    def _on_dataset(self) -> Iterator[Arguments]:
        """Shuffled by tf.data in every epoch.

        A trial with numbers finds the result of its seeded shuffle. The samples are arranged so
        that the first epoch has the job's order. Where later orders are given, each epoch is a call
        of its own.
        """

        def shuffled(samples: Any) -> Any:
            slices = tf.data.Dataset.from_tensor_slices(samples)
            return slices.shuffle(SHUFFLE_BUFFER, seed=FRAMEWORK_SEED)

        count = len(self._data.order)
        places = shuffled(np.arange(count)).batch(count).get_single_element().numpy()
        for number, order in enumerate(self._data.given_orders):
            laid_out = np.empty_like(order)
            laid_out[places] = order
            samples = shuffled(self._samples(laid_out))
            batches = samples.batch(self._batch_size, drop_remainder=True)
            is_last = number == len(self._data.later_orders)
            epochs = ENDLESS_EPOCHS if is_last else 1
            # fit's own shuffle is for arrays.
            yield {"x": batches.prefetch(tf.data.AUTOTUNE), "shuffle": False, "epochs": epochs}

    def _samples(self, rows: Any) -> tuple[Any, Any]:
        """Pictures as floats and one-hot labels."""
        labels = np.eye(self._classes, dtype=np.float32)[self._data.train_y[rows]]
        return as_floats(self._data.train_x[rows]), labels

    def _fit(self) -> None:
        gate = self._gate

        class Hold(keras.callbacks.Callback):  # type: ignore[misc]
            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                gate.before_batch()

            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                gate.after_epoch()

        try:
            with tf.device(self._place):  # a thread has its own current device
                for arguments in self._arguments():
                    self._model.fit(**arguments, verbose=0, callbacks=[Hold()])
        except _Closed:
            pass
        except BaseException as error:
            gate.fail(error)


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
        """Wait until ``fit`` stops before a batch; raise the error that ended it, if any."""
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
