"""Keras' layer for each layer of the catalogue; where Keras has none, one of our own."""

import math
from functools import partial
from typing import Any, assert_never

import keras
import tensorflow as tf
from keras import activations, ops

from bench_protocol.catalogue import layers

from .sequence import rows_of

ACTIVATIONS = {
    "linear": activations.linear,
    "relu": activations.relu,
    "gelu": partial(activations.gelu, approximate=True),
}
Padding = str | list[list[int]]


def layer_of(layer: layers.PlainLayer, safe: bool) -> Any:
    """Keras' form of a layer. ``safe``: as in :func:`.keras_model.build`."""
    match layer:
        case layers.Conv2D():
            safe_kind = SafeConv2D if safe and layer.bias else Convolution
            return safe_kind(layer)
        case layers.MaxPool2D():
            return keras.layers.MaxPooling2D(layer.size, strides=layer.stride, padding="valid")
        case layers.ZeroPad2D():
            return keras.layers.ZeroPadding2D(layer.size)
        case layers.GlobalAveragePool2D():
            return keras.layers.GlobalAveragePooling2D()
        case layers.BatchNorm():
            return Normalisation(layer)
        case layers.Flatten():
            return keras.layers.Flatten()
        case layers.Dropout():
            return keras.layers.Dropout(layer.rate)
        case layers.Dense():
            kind = SafeDense if safe and layer.bias else keras.layers.Dense
            activation = ACTIVATIONS[layer.activation]
            return kind(layer.units, activation=activation, use_bias=layer.bias)
        case layers.LSTM():
            return keras.layers.LSTM(layer.units)
        case layers.Embedding():
            return Embedding(layer)
        case layers.LayerNorm():
            return keras.layers.LayerNormalization(epsilon=layer.epsilon, center=False)
        case layers.CausalAttention():
            return CausalAttention(layer)
        case _:
            assert_never(layer)


def dense_product(x: Any, kernel: Any, bias: Any) -> Any:
    """``x @ kernel + bias`` for the safe layers, float32 (..., units).

    tensorflow-metal fuses MatMul, BiasAdd and Relu into a wrong operation. Its matcher does not
    recognise a two-dimensional bias in a plain addition.
    """
    return tf.raw_ops.AddV2(x=tf.matmul(x, kernel), y=tf.reshape(bias, (1, -1)))


def convolution(x: Any, kernel: Any, bias: Any, stride: int, padding: Padding) -> Any:
    """Convolution and bias for the safe layers, channels-last; as :func:`dense_product`."""
    product = tf.nn.conv2d(x, kernel, strides=stride, padding=padding)
    return tf.raw_ops.AddV2(x=product, y=tf.reshape(bias, (1, 1, 1, -1)))


def padding(layer: layers.Conv2D) -> Padding:
    """TensorFlow's name of a convolution's padding, or its zeros on each side of each axis."""
    around = layer.kernel // 2
    if layer.padding != "centred":
        return layer.padding.upper()
    if layer.stride == 1 and layer.kernel % 2:
        return "SAME"
    return [[0, 0], [around, around], [around, around], [0, 0]] if around else "VALID"


class Convolution(keras.layers.Conv2D):  # type: ignore[misc]
    """Keras' convolution; zeros that it has no name for are added before it."""

    def __init__(self, layer: layers.Conv2D) -> None:
        named = padding(layer)
        self._zeros = 0 if isinstance(named, str) else layer.kernel // 2
        super().__init__(
            layer.filters,
            layer.kernel,
            strides=layer.stride,
            padding=named.lower() if isinstance(named, str) else "valid",
            activation=ACTIVATIONS[layer.activation],
            use_bias=layer.bias,
        )

    def call(self, inputs: Any) -> Any:
        around = (self._zeros, self._zeros)
        padded = ops.pad(inputs, ((0, 0), around, around, (0, 0))) if self._zeros else inputs
        return super().call(padded)

    def compute_output_shape(self, shape: Any) -> Any:
        samples, height, width, channels = shape
        more = 2 * self._zeros
        return super().compute_output_shape((samples, height + more, width + more, channels))


class SafeConv2D(Convolution):
    def __init__(self, layer: layers.Conv2D) -> None:
        super().__init__(layer)
        self._all_zeros = padding(layer)

    def call(self, inputs: Any) -> Any:
        return self.activation(
            convolution(inputs, self.kernel, self.bias, self.strides[0], self._all_zeros)
        )


class SafeDense(keras.layers.Dense):  # type: ignore[misc]
    def call(self, inputs: Any, training: Any = None) -> Any:
        return self.activation(dense_product(inputs, self.kernel, self.bias))


class Normalisation(keras.layers.BatchNormalization):  # type: ignore[misc]
    """Batch normalisation with an activation. Keras' moments are biased, as the catalogue's; with
    stored statistics it is in inference mode while training too."""

    def __init__(self, layer: layers.BatchNorm) -> None:
        super().__init__(momentum=layers.MOMENTUM, epsilon=layer.epsilon)
        self.activation = ACTIVATIONS[layer.activation]
        self._by_batch = layer.statistics == "batch"

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        by_batch = training and self._by_batch
        return self.activation(super().call(inputs, training=by_batch, mask=mask))


class Embedding(keras.layers.Layer):  # type: ignore[misc]
    """A learned vector for each token and one for each position."""

    def __init__(self, layer: layers.Embedding) -> None:
        super().__init__()
        self._table = (layer.vocabulary, layer.units)

    def build(self, shape: Any) -> None:
        self.tokens = self.add_weight(shape=self._table, name="tokens")
        self.positions = self.add_weight(shape=(shape[1], self._table[1]), name="positions")

    def call(self, inputs: Any) -> Any:
        return rows_of(ops.convert_to_tensor(self.tokens), inputs) + self.positions


class CausalAttention(keras.layers.Layer):  # type: ignore[misc]
    def __init__(self, layer: layers.CausalAttention) -> None:
        super().__init__()
        self._heads = layer.heads

    def build(self, shape: Any) -> None:
        units = shape[-1]
        self.kernel = self.add_weight(shape=(units, 3 * units), name="kernel")
        self.output_kernel = self.add_weight(shape=(units, units), name="output_kernel")

    def call(self, inputs: Any) -> Any:
        _, steps, units = inputs.shape
        q, k, v = (
            ops.transpose(ops.reshape(part, (-1, steps, self._heads, units // self._heads)), AXES)
            for part in ops.split(ops.matmul(inputs, self.kernel), 3, axis=-1)
        )
        scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) / math.sqrt(q.shape[-1])
        mask = ops.tril(ops.ones((steps, steps), dtype="bool"))
        shares = ops.softmax(ops.where(mask, scores, -1e9))
        heads = ops.transpose(ops.matmul(shares, v), AXES)
        return ops.matmul(ops.reshape(heads, (-1, steps, units)), self.output_kernel)


# Steps and heads exchanged.
AXES = (0, 2, 1, 3)
