"""Dropout of ``tuned`` on a CPU and under XLA, by 16 random bits a value.

On a CPU floats cost a tenth of a small step.
"""

from itertools import count
from typing import Any

import numpy as np
import tensorflow as tf

from ..common import FRAMEWORK_SEED

VALUES = 2**16


class Dropout:
    """Drops by 16 random bits a value: the share dropped is the rate to within 1 / 131,072.

    The bits are Philox' (Salmon et al. 2011), as TensorFlow's own are. Its counter starts with the
    step, and each call in a step's graph has its own key, so no bits repeat.
    """

    def __init__(self, step: Any) -> None:
        """``step``: integer scalar, different in each step."""
        self._step = tf.cast(step, tf.uint64)
        self._keys = count(FRAMEWORK_SEED)

    def __call__(self, x: Any, rate: float) -> Any:
        """``x`` with some values zero and the others scaled, so that the mean is unchanged."""
        dropped = round(rate * VALUES)
        words = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=(-(-x.shape.num_elements() // 2),),
            key=[np.uint64(next(self._keys))],
            # The lower half counts the draws of a call.
            counter=[np.uint64(0), self._step],
            alg=1,
            dtype=tf.int32,
        )
        bits = tf.reshape(tf.bitcast(words, tf.int16), (-1,))[: x.shape.num_elements()]
        mask = tf.reshape(bits, x.shape) >= np.int16(dropped - VALUES // 2)
        return x * (tf.cast(mask, x.dtype) * (VALUES / (VALUES - dropped)))


def none(x: Any, rate: float) -> Any:
    """The dropout of evaluation: ``x`` itself."""
    return x
