"""``fashion-mlp`` in JAX, written bare: ``python benchmarks/bare_loops/jax_loops.py
naive|tuned``."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
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


def loss_of(parameters: Any, x: Any, y: Any, key: Any) -> Any:
    (w1, b1), (w2, b2), (w3, b3) = parameters
    hidden = jax.nn.relu(x.reshape(len(x), -1) @ w1 + b1)
    kept = jax.random.bernoulli(key, 0.8, hidden.shape)
    hidden = jax.nn.relu(jnp.where(kept, hidden / 0.8, 0.0) @ w2 + b2)
    logarithms = jax.nn.log_softmax(hidden @ w3 + b3)
    return -jnp.mean(jnp.take_along_axis(logarithms, y[:, None], axis=1))


def step(state: Any, x: Any, y: Any, key: Any, number: Any) -> Any:
    """One step of Keras' Adam; ``number`` counts from 1."""
    parameters, means, squares = state
    key = jax.random.fold_in(key, number)
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y, key)
    t = jnp.asarray(number, jnp.float32)
    alpha = RATE * jnp.sqrt(1 - jnp.float32(BETA_2) ** t) / (1 - jnp.float32(BETA_1) ** t)
    means = jax.tree.map(lambda m, g: m + (g - m) * (1 - BETA_1), means, gradients)
    squares = jax.tree.map(lambda v, g: v + (g * g - v) * (1 - BETA_2), squares, gradients)
    parameters = jax.tree.map(
        lambda w, m, v: w - alpha * m / (jnp.sqrt(v) + EPSILON), parameters, means, squares
    )
    return (parameters, means, squares), loss


def start() -> tuple[Any, Any]:
    parameters = jax.tree.map(jnp.asarray, weights())
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return (parameters, zeros, zeros), jax.random.key(0)


def naive(seconds: float) -> list[float]:
    """A compiled step, fed a NumPy batch each time, and the loss read every step."""
    state, key = start()
    compiled, inputs, targets = jax.jit(step), pictures(), labels()
    order = shuffled()
    trained = 0

    def train(count: int) -> None:
        nonlocal state, trained
        for number in range(trained, trained + count):
            first = number % STEPS_PER_EPOCH * BATCH
            rows = order[first : first + BATCH]
            state, loss = compiled(state, inputs[rows], targets[rows], key, number + 1)
            float(loss)
        trained += count
        jax.block_until_ready(state)

    return time_blocks(train, seconds)


def tuned(seconds: float) -> list[float]:
    """Data on the device, batches gathered there, any number of steps in one program, random
    numbers for one device."""
    jax.config.update("jax_threefry_partitionable", False)
    (parameters, means, squares), key = start()
    state = parameters, means, jax.tree.map(jnp.copy, squares)
    data = jnp.asarray(pictures()), jnp.asarray(labels()), jnp.asarray(shuffled())
    trained = 0

    def steps(state: Any, data: Any, key: Any, first: Any, count: Any) -> Any:
        x, y, order = data

        def body(offset: Any, carry: Any) -> Any:
            number = first + offset
            begin = number % STEPS_PER_EPOCH * BATCH
            rows = jax.lax.dynamic_slice(order, (begin,), (BATCH,))
            return step(carry[0], x[rows], y[rows], key, number + 1)

        return jax.lax.fori_loop(0, count, body, (state, jnp.float32(0)))

    program = jax.jit(steps, donate_argnums=0)

    def train(count: int) -> None:
        nonlocal state, trained
        state, loss = program(state, data, key, np.int32(trained), np.int32(count))
        trained += count
        jax.block_until_ready((state, loss))

    return time_blocks(train, seconds)


if __name__ == "__main__":
    main({"naive": naive, "tuned": tuned})
