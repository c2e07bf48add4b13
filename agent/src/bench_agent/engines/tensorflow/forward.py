"""Forward pass of ``tuned``: Keras' layers, replaced where a faster form gives the same result."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import tensorflow as tf

from bench_protocol.catalogue import layers as catalogue
from bench_protocol.catalogue.layers import MOMENTUM, Conv2D, Layer, MaxPool2D

from . import sequence
from .keras_layers import padding

Drop = Callable[[Any, float], Any]
"""Dropout of values at a rate."""


class Mode(NamedTuple):
    """How layers are computed.

    ``training``: normalisations take the batch's statistics and move the running ones. ``stock``:
    Keras' own layers compute correctly here, so a convolution may be split. ``unrolled``: unroll an
    LSTM's time steps; else it is Keras', which is cuDNN's on CUDA.
    """

    training: bool
    stock: bool
    unrolled: bool


def forward(
    layers: Sequence[Layer], keras_layers: Sequence[Any], x: Any, drop: Drop, mode: Mode
) -> Any:
    """The output of some layers.

    Args:
        layers: descriptions of ``keras_layers``.
        x: (samples, ...), in the layers' compute type; tokens are integers.
    """
    pooled_next = [isinstance(after, MaxPool2D) for _, after in pairwise([*layers, None])]
    postponed = None
    for layer, keras_layer, pooled in zip(layers, keras_layers, pooled_next, strict=True):
        if mode.stock and pooled and isinstance(layer, Conv2D) and layer.bias:
            # Bias and activation are cheaper after the pooling. Neither changes
            # which value of a window is the largest: both grow with it, rounding included.
            x = product(layer, keras_layer.kernel.value, x)
            postponed = keras_layer
            continue
        x = _layer(layer, keras_layer, x, drop, mode)
        if postponed:
            x = bias_and_activation(postponed.activation, postponed.bias.value, x)
            postponed = None
    return x


def product(layer: Layer, kernel: Any, x: Any) -> Any:
    """The product of a convolution or dense layer, without bias and activation. ``kernel``: of all
    units or of some."""
    kernel = tf.cast(kernel, x.dtype)
    if isinstance(layer, Conv2D):
        return tf.nn.conv2d(x, kernel, strides=layer.stride, padding=padding(layer))
    return tf.matmul(x, kernel)


def bias_and_activation(activation: Callable[[Any], Any], bias: Any, x: Any) -> Any:
    return activation(tf.nn.bias_add(x, tf.cast(bias, x.dtype)))


def _layer(layer: Layer, keras_layer: Any, x: Any, drop: Drop, mode: Mode) -> Any:
    match layer:
        case catalogue.Dropout():
            # Keras draws its seed from a variable that each step reads and writes.
            return drop(x, layer.rate)
        case catalogue.LSTM() if mode.unrolled:
            weights = (tf.cast(weight.value, x.dtype) for weight in keras_layer.weights)
            return unrolled_lstm(x, *weights)
        case catalogue.Residual():
            return _residual(layer, keras_layer, x, drop, mode)
        case catalogue.Conv2D(padding="centred", bias=False) if mode.stock:
            return keras_layer.activation(product(layer, keras_layer.kernel.value, x))
        case catalogue.BatchNorm(statistics="batch"):
            return _batch_norm(keras_layer, x, mode.training)
        case catalogue.LayerNorm():
            return sequence.layer_norm(x, keras_layer.gamma.value, layer.epsilon)
        case catalogue.Embedding():
            table = tf.cast(keras_layer.tokens.value, keras_layer.compute_dtype)
            positions = tf.cast(keras_layer.positions.value, table.dtype)
            return sequence.rows_of(table, x) + positions
        case catalogue.CausalAttention():
            kernels = keras_layer.kernel.value, keras_layer.output_kernel.value
            return sequence.causal_attention(x, *kernels, layer.heads)
        case catalogue.Dense(bias=False):
            x = sequence.product(x, keras_layer.kernel.value)
            return sequence.gelu(x) if layer.activation == "gelu" else keras_layer.activation(x)
        case _:
            return keras_layer(x)


def _residual(block: catalogue.Residual, model: Any, x: Any, drop: Drop, mode: Mode) -> Any:
    def branch(name: catalogue.Branch) -> Any:
        parts = block.branch(name, tuple(x.shape[1:]))
        keras_layers = [model.get_layer(part.prefix.removesuffix(".")) for part in parts]
        return forward([part.layer for part in parts], keras_layers, x, drop, mode)

    outputs = branch("main") + branch("shortcut")
    return tf.nn.relu(outputs) if block.activation == "relu" else outputs


def _batch_norm(keras_layer: Any, x: Any, training: bool) -> Any:
    """By the fused kernel, which gives the unbiased variance to those who keep it."""
    mean, variance = keras_layer.moving_mean.value, keras_layer.moving_variance.value
    outputs, batch_mean, unbiased, *_ = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=keras_layer.gamma.value,
        offset=keras_layer.beta.value,
        mean=mean,
        variance=variance,
        epsilon=keras_layer.epsilon,
        is_training=training,
    )
    if training:
        count = x.shape.num_elements() // x.shape[-1]
        share = 1 - MOMENTUM
        mean.assign_add(share * (batch_mean - mean))
        variance.assign_add(share * (unbiased * ((count - 1) / count) - variance))
    return keras_layer.activation(outputs)


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
