"""Layers of ``tuned`` over the positions of sequences, each with few passes over the values.

TensorFlow multiplies a batch of sequences by one kernel sequence by sequence, and adds up the
gradients afterwards; here the positions of all sequences are the rows of one product.
"""

import math
from typing import Any

import numpy as np
import tensorflow as tf

# gelu(x) is x sigmoid(x (LINEAR + CUBIC x^2)): tanh in its other form.
LINEAR = 2 * math.sqrt(2 / math.pi)
CUBIC = 0.044715 * LINEAR


def product(x: Any, kernel: Any) -> Any:
    """``x @ kernel`` over the last axis of ``x``, in its type."""
    rows = tf.reshape(x, (-1, x.shape[-1]))
    return tf.reshape(tf.matmul(rows, tf.cast(kernel, x.dtype)), (*x.shape[:-1], kernel.shape[-1]))


@tf.custom_gradient  # type: ignore[untyped-decorator]
def rows_of(table: Any, rows: Any) -> Any:
    """Rows of a table, with a gradient of the whole table.

    TensorFlow's gradient has a row for each look-up. Keras' Adam squares each of them and adds up
    the squares, where a row that is looked up twice needs the square of its sum.
    """

    def gradient(upstream: Any) -> Any:
        flat = tf.reshape(upstream, (-1, table.shape[-1]))
        return tf.math.unsorted_segment_sum(flat, tf.reshape(rows, (-1,)), table.shape[0]), None

    return tf.gather(table, rows), gradient


@tf.custom_gradient  # type: ignore[untyped-decorator]
def gelu(x: Any) -> Any:
    """The catalogue's ``gelu``, without TensorFlow's power of 3."""
    squares = tf.square(x)
    gate = tf.sigmoid(x * (LINEAR + CUBIC * squares))

    def gradient(upstream: Any) -> Any:
        slope = tf.raw_ops.SigmoidGrad(y=gate, dy=x * (LINEAR + 3 * CUBIC * squares))
        return upstream * (gate + slope)

    return x * gate, gradient


def layer_norm(x: Any, gamma: Any, epsilon: float) -> Any:
    """Normalise the last axis in float32 and return the type of ``x``."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def normalised(wide: Any, gamma: Any) -> Any:
        centred = wide - tf.reduce_mean(wide, -1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
        scale = tf.math.rsqrt(variance + epsilon)
        unit = centred * scale

        def gradient(upstream: Any) -> Any:
            inward = upstream * gamma
            along = tf.reduce_mean(inward * unit, -1, keepdims=True)
            inward -= tf.reduce_mean(inward, -1, keepdims=True)
            of_gamma = tf.reduce_sum(upstream * unit, range(len(wide.shape) - 1))
            return (inward - unit * along) * scale, of_gamma

        return unit * gamma, gradient

    return tf.cast(normalised(tf.cast(x, tf.float32), gamma), x.dtype)


def causal_attention(x: Any, kernel: Any, output_kernel: Any, heads: int) -> Any:
    """(samples, steps, units) to the same shape; weights as in ``layers.CausalAttention``."""
    samples, steps, units = x.shape
    shape = (samples, steps, 3, heads, units // heads)
    q, k, v = tf.unstack(tf.transpose(tf.reshape(product(x, kernel), shape), (2, 0, 3, 1, 4)))
    scores = tf.matmul(q * (units // heads) ** -0.5, k, transpose_b=True)
    unseen = tf.constant(1 - np.tri(steps), x.dtype) * -1e4
    shares = tf.nn.softmax(scores + unseen)
    together = tf.transpose(tf.matmul(shares, v), (0, 2, 1, 3))
    return product(tf.reshape(together, x.shape), output_kernel)
