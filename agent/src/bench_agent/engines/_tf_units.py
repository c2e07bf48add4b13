"""A first dense layer of ``tuned`` on a CPU: each core has a share of its units.

Cut by samples, the chains' gradients of all weights are added up, and one core updates them. Cut by
units, a core computes the whole batch for weights that are its own, up to their update.
Source: Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks"
(arXiv 1404.5997): convolutions by samples, dense layers by units. Behind convolutions it loses
here what it gains: their chains would wait for each other twice.
"""

from typing import Any

from bench_protocol.layers import Dense
from bench_protocol.workloads import Workload

# 784 x 64 took a quarter longer by units, 784 x 128 a fifth less.
LEAST_WEIGHTS = 75_000


def first_dense(workload: Workload, chains: int) -> int | None:
    """Index of the layer to cut by units where a batch is cut into ``chains``, if there is one."""
    shaped = enumerate(zip(workload.layers, workload.shapes[:-1], strict=True))
    index, layer, shape = next((i, *both) for i, both in shaped if both[0].weight_shapes(both[1]))
    by_units = (
        chains > 1
        and index >= workload.frozen_layers
        and isinstance(layer, Dense)
        and layer.units % chains == 0
        and shape[-1] * layer.units >= LEAST_WEIGHTS
    )
    return index if by_units else None


class Units:
    """A dense layer's weights in equal shares of its units, which train in place of Keras'."""

    def __init__(self, keras_layer: Any, shares: int) -> None:
        import tensorflow as tf

        self._layer = keras_layer
        self.whole = [variable.value for variable in keras_layer.trainable_variables]
        kernels, biases = (tf.split(value, shares, axis=-1) for value in self.whole)
        self._shares = [
            (tf.Variable(kernel), tf.Variable(bias))
            for kernel, bias in zip(kernels, biases, strict=True)
        ]

    @property
    def variables(self) -> list[Any]:
        """Kernel and bias of each share."""
        return [variable for share in self._shares for variable in share]

    def __call__(self, x: Any) -> Any:
        """The layer's output (samples, units) of its input (samples, features)."""
        import tensorflow as tf

        products = (
            tf.nn.bias_add(tf.matmul(x, tf.cast(kernel, x.dtype)), tf.cast(bias, x.dtype))
            for kernel, bias in self._shares
        )
        return tf.concat([self._layer.activation(product) for product in products], axis=1)

    def write_back(self) -> None:
        """Put the weights as trained into Keras' layer."""
        import tensorflow as tf

        for whole, shares in zip(self.whole, zip(*self._shares, strict=True), strict=True):
            whole.assign(tf.concat(shares, axis=-1))
