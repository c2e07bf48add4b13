"""``fashion-mlp`` in MLX, written bare: ``python benchmarks/bare_loops/mlx_loops.py
naive|tuned``."""

from functools import partial
from typing import Any

from _shared import (
    BATCH,
    BETA_1,
    BETA_2,
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

from bench_agent.engines.cpu import blas  # how the machine is set is shared

blas.preload()

import mlx.core as mx  # noqa: E402
from mlx import nn, optimizers  # noqa: E402
from mlx.utils import tree_map  # noqa: E402


class Adam(optimizers.Adam):
    """Keras' formula, as the engine's."""

    def apply_single(self, gradient: Any, parameter: Any, state: Any) -> Any:
        number = self.step.astype(mx.float32)
        correction = mx.sqrt(1 - mx.power(BETA_2, number)) / (1 - mx.power(BETA_1, number))
        mean = BETA_1 * state["m"] + (1 - BETA_1) * gradient
        square = BETA_2 * state["v"] + (1 - BETA_2) * mx.square(gradient)
        state["m"], state["v"] = mean, square
        return parameter - RATE * correction * mean / (mx.sqrt(square) + EPSILON)


def build() -> tuple[Any, Any, Any]:
    """Model, optimiser, and the function to loss and gradients."""
    model = nn.Sequential(
        lambda x: mx.flatten(x, start_axis=1),
        nn.Linear(784, 512),
        nn.relu,
        nn.Dropout(0.2),
        nn.Linear(512, 64),
        nn.relu,
        nn.Linear(64, 10),
    )
    dense = [layer for layer in model.layers if isinstance(layer, nn.Linear)]
    for layer, (kernel, bias) in zip(dense, weights(), strict=True):
        layer.weight, layer.bias = mx.array(kernel.T), mx.array(bias)
    mx.eval(model.parameters())

    def loss_of(x: Any, y: Any) -> Any:
        return nn.losses.cross_entropy(model(x), y, reduction="mean")

    return model, Adam(RATE), nn.value_and_grad(model, loss_of)


def naive(seconds: float) -> list[float]:
    """A batch from NumPy, a step, evaluate everything, read the loss."""
    model, optimizer, loss_and_gradients = build()
    inputs, targets = pictures(), labels()
    order = shuffled()
    trained = 0

    def train(count: int) -> None:
        nonlocal trained
        for number in range(trained, trained + count):
            first = number % STEPS_PER_EPOCH * BATCH
            rows = order[first : first + BATCH]
            x, y = mx.array(inputs[rows]), mx.array(targets[rows])
            loss, gradients = loss_and_gradients(x, y)
            optimizer.update(model, gradients)
            mx.eval(model.parameters(), optimizer.state)
            loss.item()
        trained += count
        mx.synchronize()

    return time_blocks(train, seconds)


def tuned(seconds: float) -> list[float]:
    """Data on the device, a compiled step, evaluated every eight steps; each half of a batch in a
    stream of its own, with one BLAS thread."""
    blas.set_threads(1)
    streams = [mx.new_stream(mx.default_device()) for _ in range(2)]
    mx.set_default_stream(streams[0])
    model, optimizer, loss_and_gradients = build()
    data_x, data_y = mx.array(pictures()), mx.array(labels())
    order = mx.random.permutation(len(data_x))
    optimizer.init(model.trainable_parameters())
    state = [model.state, optimizer.state, mx.random.state]
    mx.eval(data_x, data_y, order, state)
    trained = 0

    @partial(mx.compile, inputs=state, outputs=state)
    def step(data_x: Any, data_y: Any, rows: Any) -> Any:
        halves, trained = [], model.trainable_parameters()
        for stream, half in zip(streams, mx.split(rows, 2), strict=True):
            with mx.stream(stream):
                halves.append(loss_and_gradients(data_x[half], data_y[half]))
                model.update(trained)
        loss, gradients = tree_map(lambda a, b: (a + b) / 2, *halves)
        optimizer.update(model, gradients)
        return loss

    def train(count: int) -> None:
        nonlocal trained
        loss = None
        for number in range(trained, trained + count):
            first = number % STEPS_PER_EPOCH * BATCH
            loss = step(data_x, data_y, order[first : first + BATCH])
            if (number + 1) % 8 == 0:
                mx.eval(state, loss)
        trained += count
        mx.eval(state, loss)
        mx.synchronize()

    return time_blocks(train, seconds)


if __name__ == "__main__":
    main({"naive": naive, "tuned": tuned})
