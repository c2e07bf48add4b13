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
)

UNROLL = 16
EPOCHS = 3


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
        epochs=1 + EPOCHS,
        verbose=0,
        callbacks=[clock],
    )
    return clock.epochs[1:]


def tuned(seconds: float) -> list[float]:
    """Data on the device, many steps in one compiled program, each half of a batch on a core of its
    own, TensorFlow's own Adam kernel."""
    os.environ["TF_NUM_INTRAOP_THREADS"] = "1"
    model = build()
    variables = [variable.value for variable in model.trainable_variables]
    means = [tf.Variable(tf.zeros_like(v)) for v in variables]
    squares = [tf.Variable(tf.zeros_like(v)) for v in variables]
    x, y = tf.constant(pictures()), tf.constant(labels())
    order = tf.constant(shuffled())

    def half(rows: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            hidden = tf.reshape(tf.gather(x, rows), (BATCH // 2, 784))
            hidden = tf.nn.dropout(model.layers[1](hidden), 0.2)
            logits = model.layers[4](model.layers[3](hidden))
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.gather(y, rows), logits)
            loss = tf.reduce_sum(losses) / BATCH
        return tape.gradient(loss, variables)

    def step(number: tf.Tensor, trained: tf.Tensor) -> None:
        rows = tf.slice(order, (number % STEPS_PER_EPOCH * BATCH,), (BATCH,))
        halves = [half(part) for part in tf.split(rows, 2)]
        gradients = [a + b for a, b in zip(*halves, strict=True)]
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
