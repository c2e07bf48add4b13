"""Forward pass of ``tuned``: Keras' layers, replaced where a faster form gives the same result."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import tensorflow as tf

from bench_protocol.catalogue.layers import LSTM, Conv2D, Dropout, Layer, MaxPool2D

Drop = Callable[[Any, float], Any]
"""Dropout of values at a rate."""


def forward(
    layers: Sequence[Layer],
    keras_layers: Sequence[Any],
    x: Any,
    drop: Drop,
    *,
    stock: bool,
    unrolled: bool,
) -> Any:
    """The output of some layers in training.

    Args:
        layers: descriptions of ``keras_layers``.
        x: (samples, ...), in the layers' compute type.
        stock: whether Keras' own layers compute correctly here, so that a convolution may be split.
        unrolled: unroll an LSTM's time steps. Else it is Keras', which is cuDNN's on CUDA.
    """
    pooled_next = [isinstance(after, MaxPool2D) for _, after in pairwise([*layers, None])]
    postponed = None
    for layer, keras_layer, pooled in zip(layers, keras_layers, pooled_next, strict=True):
        if stock and pooled and isinstance(layer, Conv2D):
            # Bias and activation are cheaper after the pooling. Neither changes
            # which value of a window is the largest: both grow with it, rounding included.
            x = product(layer, keras_layer.kernel.value, x)
            postponed = keras_layer
            continue
        x = _layer(layer, keras_layer, x, drop, unrolled)
        if postponed:
            x = bias_and_activation(postponed.activation, postponed.bias.value, x)
            postponed = None
    return x


def product(layer: Layer, kernel: Any, x: Any) -> Any:
    """The product of a convolution or dense layer, without bias and activation. ``kernel``: of all
    units or of some."""
    kernel = tf.cast(kernel, x.dtype)
    if isinstance(layer, Conv2D):
        return tf.nn.conv2d(x, kernel, strides=layer.stride, padding=layer.padding.upper())
    return tf.matmul(x, kernel)


def bias_and_activation(activation: Callable[[Any], Any], bias: Any, x: Any) -> Any:
    return activation(tf.nn.bias_add(x, tf.cast(bias, x.dtype)))


def _layer(layer: Layer, keras_layer: Any, x: Any, drop: Drop, unrolled: bool) -> Any:
    if isinstance(layer, Dropout):
        # Keras draws its seed from a variable that each step reads and writes.
        return drop(x, layer.rate)
    if isinstance(layer, LSTM) and unrolled:
        return unrolled_lstm(x, *(tf.cast(weight.value, x.dtype) for weight in keras_layer.weights))
    return keras_layer(x)


def unrolled_lstm(x: Any, kernel: Any, recurrent_kernel: Any, bias: Any) -> Any:
    """Last output of an LSTM, (samples, units), its time steps unrolled in the graph.

    ``x``: (samples, steps, features). ``kernel``: (features, 4 units), gates i, f, g, o.
    ``recurrent_kernel``: (units, 4 units). ``bias``: (4 units,).
    """
    samples, steps, features = x.shape
    by_step = tf.reshape(tf.transpose(x, (1, 0, 2)), (steps * samples, features))
    inputs = tf.nn.bias_add(tf.matmul(by_step, kernel), bias)
    inputs = tf.unstack(tf.reshape(inputs, (steps, samples, kernel.shape[1])))
    cell = output = None
    for gates in inputs:
        if output is not None:
            gates = gates + tf.matmul(output, recurrent_kernel)
        i, f, g, o = tf.split(gates, 4, axis=1)
        new = tf.sigmoid(i) * tf.tanh(g)
        cell = new if cell is None else tf.sigmoid(f) * cell + new
        output = tf.sigmoid(o) * tf.tanh(cell)
    return output
