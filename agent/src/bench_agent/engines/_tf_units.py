"""Two dense layers of ``tuned`` on a CPU, cut between the cores: the first by its units, the second
by its inputs, so that a core computes the whole batch with weights that are its own, up to their
update.

Cut by samples, the chains' gradients of all weights are added up, and one core updates them.
Sources: Krizhevsky 2014, "One weird trick for parallelizing convolutional neural networks"
(arXiv 1404.5997); by units and then by inputs: Shoeybi et al. 2019, "Megatron-LM" (arXiv
1909.08053). Behind convolutions it loses here what it gains: their chains would wait for each other
twice.
"""

from collections.abc import Callable
from typing import Any

from bench_protocol.layers import Dense, Dropout
from bench_protocol.workloads import Workload

# 784 x 64 took a quarter longer by units, 784 x 128 a fifth less.
LEAST_WEIGHTS = 75_000
# Of the units in the first layer's kernel and bias, and of the inputs in the second's kernel.
AXES = (1, 0, 0)


def dense_pair(workload: Workload, chains: int) -> tuple[int, int] | None:
    """Indices of the two layers to cut where a batch is cut into ``chains``, if there are any.

    The first is the first with weights, and no more than dropout lies between them.
    """
    layers, shapes = workload.layers, workload.shapes
    weighted = [i for i, layer in enumerate(layers) if layer.weight_shapes(shapes[i])]
    one, other = [*weighted, None, None][:2]
    if one is None or other is None or one < workload.frozen_layers or chains == 1:
        return None
    first, between, second = layers[one], layers[one + 1 : other], layers[other]
    by_units = (
        isinstance(first, Dense)
        and isinstance(second, Dense)
        and all(isinstance(layer, Dropout) for layer in between)
        and first.units % chains == 0
        and shapes[one][-1] * first.units >= LEAST_WEIGHTS
    )
    return (one, other) if by_units else None


class DensePair:
    """Both layers' weights in equal shares, which train in place of Keras'.

    ``whole``: those of Keras' variables whose place the shares take, which are the model's first.
    """

    def __init__(self, first: Any, second: Any, shares: int) -> None:
        """``first``, ``second``: Keras' layers."""
        import tensorflow as tf

        self._first, self._second = first, second
        self.whole = [variable.value for variable in (first.kernel, first.bias, second.kernel)]
        self._shares = [
            [tf.Variable(part) for part in tf.split(value, shares, axis)]
            for value, axis in zip(self.whole, AXES, strict=True)
        ]

    @property
    def variables(self) -> list[Any]:
        """The shares, in the order of ``whole``."""
        return [share for shares in self._shares for share in shares]

    def __call__(self, x: Any, between: Callable[[Any], Any]) -> Any:
        """The second layer's output (samples, units) of the first one's input.

        Args:
            between: what lies between them, for some of the first one's units.
        """
        import tensorflow as tf

        parts = []
        for weights in zip(*self._shares, strict=True):
            kernel, bias, onward = (tf.cast(weight, x.dtype) for weight in weights)
            own = self._first.activation(tf.nn.bias_add(tf.matmul(x, kernel), bias))
            parts.append(tf.matmul(between(own), onward))
        bias = tf.cast(self._second.bias.value, x.dtype)
        return self._second.activation(tf.nn.bias_add(tf.add_n(parts), bias))

    def write_back(self) -> None:
        """Put the weights as trained into Keras' layers."""
        import tensorflow as tf

        for whole, shares, axis in zip(self.whole, self._shares, AXES, strict=True):
            whole.assign(tf.concat(shares, axis))
