"""The base of TensorFlow's sessions: the model, its evaluation, memory and placement."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bench_protocol.catalogue.workloads import Workload

from ..common import Score, evaluation_batches
from ..seam import Data
from . import keras_model


def on_cpu() -> bool:
    """Whether TensorFlow was set up without a GPU."""
    import tensorflow as tf

    return not tf.config.get_visible_devices("GPU")


def sync(value: Any) -> None:
    """Return when the device has finished all requested work.

    Reading a small value waits for its device's stream, also on devices without TensorFlow's own
    synchronisation: plug-ins such as Metal's have no kernel for ``sync_devices``, which then
    returns at once (sync_ops.cc).
    """
    import tensorflow as tf

    tf.test.experimental.sync_devices()
    value.numpy()


def as_host(before: Any, after: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Two tensors as float32 arrays."""
    return before.numpy().astype(np.float32), after.numpy().astype(np.float32)


class KerasSession:
    """The part of :class:`..seam.Session` that does not depend on the loop."""

    settings: Mapping[str, str]

    def __init__(
        self,
        workload: Workload,
        model: Any,
        data: Data,
        layers: Literal["stock", "safe"],
        place: str,
    ) -> None:
        self._workload = workload
        self.layers = layers
        self._place = place
        self._model = model
        self._data = data
        # The bias of the last layer: small, and written by the last update of a step.
        self._last_variable = model.trainable_variables[-1].value

    def sync(self) -> None:
        sync(self._last_variable)

    def parameter_count(self) -> int:
        return int(self._model.count_params())

    def peak_memory_bytes(self) -> int | None:
        import tensorflow as tf

        if on_cpu():
            return None
        try:
            return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])
        except (ValueError, RuntimeError):  # a device without memory statistics
            return None

    def evaluate(self, x: NDArray[np.uint8], y: NDArray[np.int32]) -> tuple[float, float]:
        import tensorflow as tf

        logits = tf.function(self._inferred, autograph=False)
        score = Score()
        with tf.device(self._place):
            for inputs, labels in evaluation_batches(x, y):
                score.add(logits(tf.constant(inputs)).numpy(), labels)
        return score.result()

    def _inferred(self, x: Any) -> Any:
        """Logits of some pictures, dropout off; float32 (batch, classes)."""
        import tensorflow as tf

        return tf.cast(self._model(x, training=False), tf.float32)

    def trained_parameters(self) -> Iterator[NDArray[np.float32]]:
        return keras_model.trained_parameters(self._workload, self._model)

    def placement(self) -> str:
        return str(self._last_variable.device)
