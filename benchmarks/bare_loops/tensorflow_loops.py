"""``fashion-mlp`` in TensorFlow, written bare: ``python benchmarks/bare_loops/tensorflow_loops.py
naive|tuned``."""

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
import _shared
import keras
import numpy as np
import tensorflow as tf
from _shared import (
    BATCH,
    BETA_1,
    BETA_2,
    CLASSES,
    EPSILON,
    RATE,
    STEPS_PER_EPOCH,
    labels,
    main,
    pictures,
    shuffled,
    time_blocks,
    weights,
)

UNROLL = 16
# The agent's warm-up is about as long: fit's pace changes over its first thousand steps.
WARM_UP_EPOCHS, EPOCHS = 3, 12


def build() -> keras.Model:
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((28, 28)),
            layers.Flatten(),
            layers.Dense(512, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(64, activation="relu"),
            layers.Dense(CLASSES),
        ]
    )


def naive(seconds: float) -> list[float]:
    """``model.fit`` on arrays; its epochs are timed by a callback that sees only whole epochs."""

    class Clock(keras.callbacks.Callback):
        epochs: list[float] = []  # noqa: RUF012

        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            if epoch == WARM_UP_EPOCHS:
                _shared.meet()
            self.began = _shared.now()

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            self.epochs.append(_shared.now() - self.began)

    rows = STEPS_PER_EPOCH * BATCH
    model, clock = build(), Clock()
    model.compile(
        optimizer=keras.optimizers.Adam(RATE),
        loss=keras.losses.CategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    one_hot = np.eye(CLASSES, dtype=np.float32)[labels()[:rows]]
    model.fit(
        pictures()[:rows],
        one_hot,
        batch_size=BATCH,
        epochs=WARM_UP_EPOCHS + EPOCHS,
        verbose=0,
        callbacks=[clock],
    )
    return clock.epochs[WARM_UP_EPOCHS:]


def tuned(seconds: float) -> list[float]:
    """Data on the device, many steps in one compiled program, TensorFlow's own Adam kernel. A core
    has half of the first layer's units, which are half of the second's inputs, for the whole batch.
    """
    (kernel, bias), *others = weights()
    (kernel_2, bias_2), last = others
    cut = np.split(kernel, 2, axis=1), np.split(bias, 2), np.split(kernel_2, 2)
    halves = [tuple(map(tf.Variable, half)) for half in zip(*cut, strict=True)]
    bias_2, *last = map(tf.Variable, (bias_2, *last))
    variables = [*halves[0], *halves[1], bias_2, *last]
    means = [tf.Variable(tf.zeros_like(v)) for v in variables]
    squares = [tf.Variable(tf.zeros_like(v)) for v in variables]
    x, y = tf.constant(pictures().reshape(-1, 784)), tf.constant(labels())
    order = tf.constant(shuffled())

    def dense(values: tf.Tensor, kernel: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
        return tf.nn.bias_add(tf.matmul(values, kernel), bias)

    def dropout(values: tf.Tensor, key: int, trained: tf.Tensor) -> tf.Tensor:
        """By 16 bits a value."""
        words = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=(values.shape.num_elements() // 2,),
            key=[np.uint64(key)],
            counter=[np.uint64(0), tf.cast(trained, tf.uint64)],
            alg=1,
            dtype=tf.int32,
        )
        bits = tf.reshape(tf.bitcast(words, tf.int16), values.shape)
        dropped = round(0.2 * 2**16)
        return values * tf.cast(bits >= dropped - 2**15, tf.float32) / (1 - dropped / 2**16)

    def loss_of(rows: tf.Tensor, trained: tf.Tensor) -> tf.Tensor:
        inputs = tf.gather(x, rows)
        parts = []
        for key, (kernel, bias, onward) in enumerate(halves):
            hidden = tf.nn.relu(dense(inputs, kernel, bias))
            parts.append(tf.matmul(dropout(hidden, key, trained), onward))
        hidden = tf.nn.relu(tf.nn.bias_add(tf.add_n(parts), bias_2))
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.gather(y, rows), dense(hidden, *last)
        )
        return tf.reduce_sum(losses) / BATCH

    def step(number: tf.Tensor, trained: tf.Tensor) -> None:
        rows = tf.slice(order, (number % STEPS_PER_EPOCH * BATCH,), (BATCH,))
        with tf.GradientTape() as tape:
            loss = loss_of(rows, trained)
        gradients = tape.gradient(loss, variables)
        power_1, power_2 = tf.pow(BETA_1, trained), tf.pow(BETA_2, trained)
        for v, m, s, g in zip(variables, means, squares, gradients, strict=True):
            tf.raw_ops.ResourceApplyAdam(
                var=v.handle,
                m=m.handle,
                v=s.handle,
                beta1_power=power_1,
                beta2_power=power_2,
                lr=RATE,
                beta1=BETA_1,
                beta2=BETA_2,
                epsilon=EPSILON,
                grad=g,
            )

    @tf.function(autograph=False, jit_compile=False)
    def steps(first: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        def many(number: tf.Tensor, how_many: int) -> tuple[tf.Tensor]:
            for offset in range(how_many):
                step(number + offset, tf.cast(number + offset + 1, tf.float32))
            return (number + how_many,)

        number = first
        for size in (UNROLL, 1):
            (number,) = tf.while_loop(
                lambda n, size=size: n + size <= first + count,
                lambda n, size=size: many(n, size),
                (number,),
                parallel_iterations=1,
            )
        return number

    trained = 0

    def train(count: int) -> None:
        nonlocal trained
        steps(tf.constant(trained), tf.constant(count))
        trained += count
        variables[-1].numpy()

    return time_blocks(train, seconds)


if __name__ == "__main__":
    main({"naive": naive, "tuned": tuned})
