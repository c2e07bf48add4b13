"""The base of TensorFlow's sessions: the model, its evaluation, memory and placement."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.workloads import Workload

from ..loop import TrainingLoop
from ..seam import Data
from . import keras_model


def sync(value: Any) -> None:
    """Return when the device has finished all requested work.

    Reading a small value waits for its device's stream, also on devices without TensorFlow's own
    synchronisation: plug-ins such as Metal's have no kernel for ``sync_devices``, which then
    returns at once (sync_ops.cc).
    """
    tf.test.experimental.sync_devices()
    value.numpy()


class Built(NamedTuple):
    """A job and its model, which is on the device ``place`` with layers of this form."""

    workload: Workload
    cell: Cell
    data: Data
    model: Any
    layers: Literal["stock", "safe"]
    place: str


class KerasSession(TrainingLoop):
    def __init__(self, built: Built) -> None:
        super().__init__(built.workload, built.cell, built.data)
        self.layers = built.layers
        self._place = built.place
        self._model = built.model
        self._inference = tf.function(self._inferred_logits, autograph=False)
        # The bias of the last layer: small, and written by the last update of a step.
        self._last_variable = built.model.trainable_variables[-1].value

    def sync(self) -> None:
        sync(self._last_variable)

    def parameter_count(self) -> int:
        return int(self._model.count_params())

    def peak_memory_bytes(self) -> int | None:
        if self._on_cpu:
            return None
        try:
            return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
        except (ValueError, RuntimeError):  # a device without memory statistics
            return None

    def _inferred(self, x: NDArray[Any]) -> NDArray[np.float32]:
        with tf.device(self._place):
            logits: NDArray[np.float32] = self._inference(tf.constant(x)).numpy()
        return logits

    def _inferred_logits(self, x: Any) -> Any:
        """Logits of some inputs in a graph, dropout off; float32 (batch, classes), or (batch,
        steps, classes) of tokens."""
        return tf.cast(self._model(x, training=False), tf.float32)

    def trained_parameters(self) -> Iterator[NDArray[np.float32]]:
        return keras_model.trained_parameters(self._workload, self._model)

    def placement(self) -> str:
        return str(self._last_variable.device)
