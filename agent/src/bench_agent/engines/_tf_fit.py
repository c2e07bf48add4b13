"""TensorFlow, recipe ``naive``: ``model.fit`` on NumPy arrays with one-hot labels.

One ``fit`` call lives as long as the session, in a thread of its own, so that a block does not pay
for ``fit``'s start-up. A callback holds it before a batch until more batches are asked for. It
has no per-batch work, so Keras keeps its asynchronous path, as in a ``fit`` without callbacks.
"""

from threading import Semaphore, Thread
from typing import Any, Literal

import numpy as np

from bench_protocol.workloads import Workload

from . import _keras_model, _tf_shared
from ._common import as_floats
from .seam import Data

ENDLESS_EPOCHS = 1_000_000_000


class _Closed(BaseException):
    """Ends ``fit`` from inside its callback."""


class FitSession(_tf_shared.KerasSession):
    """See :class:`.seam.Session`."""

    def __init__(
        self,
        workload: Workload,
        model: Any,
        batch_size: int,
        data: Data,
        layers: Literal["stock", "safe"],
        place: str,
    ) -> None:
        super().__init__(model, data, layers, place)
        import keras

        steps = len(data.order) // batch_size
        rows = data.order[: steps * batch_size]
        self._inputs = as_floats(data.train_x[rows])
        classes = workload.data_set.classes
        self._labels = np.eye(classes, dtype=np.float32)[data.train_y[rows]]
        model.compile(
            optimizer=_keras_model.optimizer(workload.optimizer),
            loss=keras.losses.CategoricalCrossentropy(from_logits=True),
            # Keras' "auto" looks at the GPUs of the machine even where they are hidden, and would
            # put XLA on a CPU cell.
            jit_compile=False if _tf_shared.on_cpu() else "auto",
        )
        self.settings = {
            "loop": "model.fit",
            "jit_compile": str(model.jit_compile).lower(),
            **_mixed_settings(keras.config.dtype_policy()),
        }
        self._gate = _Gate(model)
        self._thread = Thread(target=self._fit, args=(batch_size,), name="fit", daemon=True)
        self._thread.start()
        self._gate.wait()

    def train_block(self, steps: int) -> None:
        self._gate.run(steps)

    def loss(self) -> float:
        return self._gate.loss()

    def close(self) -> None:
        self._gate.close()
        self._thread.join()

    def _fit(self, batch_size: int) -> None:
        import keras
        import tensorflow as tf

        gate = self._gate

        class Hold(keras.callbacks.Callback):  # type: ignore[misc]
            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                gate.before_batch()

            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                gate.after_epoch()

        try:
            with tf.device(self._place):  # a thread has its own current device
                self._model.fit(
                    self._inputs,
                    self._labels,
                    batch_size=batch_size,
                    epochs=ENDLESS_EPOCHS,
                    # The arrays are in the first epoch's order; fit gathers rows either way.
                    shuffle=False,
                    verbose=0,
                    callbacks=[Hold()],
                )
        except _Closed:
            pass
        except BaseException as error:
            gate.fail(error)


def _mixed_settings(policy: Any) -> dict[str, str]:
    """As the other loops say it, but for the loss scale, which is Keras' own here."""
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

    # Called by the session's thread.

    def wait(self) -> None:
        """Return when ``fit`` stands before a batch; raise what ended it if it cannot."""
        self._idle.acquire()
        if self._error:
            # Stay passable: a second call must get the error too, not wait for ever.
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

    # Called by the thread of fit.

    def before_batch(self) -> None:
        if self._left == 0:
            self._idle.release()
            self._go.acquire()
            if self._closing:
                raise _Closed
            self._epoch_loss = None
        self._left -= 1
        if self._left == 0:
            # fit's loss is a mean since the last reset: reset it, and it is the last batch's.
            self._model.reset_metrics()

    def after_epoch(self) -> None:
        # The next epoch resets the metrics before it comes to its first batch.
        if self._left == 0:
            self._epoch_loss = self._running_loss()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._idle.release()

    def _running_loss(self) -> float:
        return float(self._model.metrics[0].result())
