"""Train any workload in JAX from its list of layers, without the agent's engines:
``python benchmarks/bare_loops/layers_jax.py scan --workload mnist-cnn --device cuda``.

``step`` calls one compiled program for each step. ``fori`` and ``scan`` compile a loop of a fixed
number of steps into one program.
"""

import argparse
import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # several sides share a GPU

import jax
import jax.numpy as jnp
import numpy as np
from _shared import finish, layers_arguments, random, time_blocks

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.workloads import Workload

FORMS = ("step", "fori", "scan")
LENGTH = 64  # steps in one program
UNROLLED_ROWS, UNROLLED_STEPS = 4, 2
HALF = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
SCALE = 1024.0


def weights(layers: Sequence[Any], shape: Any) -> list[Any]:
    """Initial weights of some layers, one dictionary each."""
    made: list[Any] = []
    for layer in layers:
        if layer.kind == "residual":
            sides = {"main": layer.main, "shortcut": layer.shortcut}
            made.append({name: weights(side, shape) for name, side in sides.items()})
        else:
            sizes = layer.weight_shapes(shape)
            made.append({name: start(name, size, layer) for name, size in sizes.items()})
        shape = layer.output_shape(shape)
    return made


def start(name: str, size: Sequence[int], layer: Any) -> Any:
    if name in ("gamma", "variance"):
        return np.full(size, layer.gamma if name == "gamma" else 1.0, np.float32)
    if len(size) == 1:
        return np.zeros(size, np.float32)
    values = random.standard_normal(size) * math.sqrt(2 / math.prod(size[:-1]))
    return values.astype(np.float32)


def convolved(layer: Any, p: Any, x: Any) -> Any:
    pad, strides = layer.padding_zeros(x.shape[1:]), (layer.stride,) * 2
    kinds = ("NHWC", "HWIO", "NHWC")
    convolve = jax.lax.conv_general_dilated
    return convolve(x, p["kernel"], strides, pad, dimension_numbers=kinds) + p["bias"]


def pooled(layer: Any, p: Any, x: Any) -> Any:
    window, strides = (1, layer.size, layer.size, 1), (1, layer.stride, layer.stride, 1)
    return jax.lax.reduce_window(
        x, np.array(-np.inf, x.dtype), jax.lax.max, window, strides, "VALID"
    )


def normalised(layer: Any, p: Any, x: Any) -> Any:
    scale = p["gamma"] * jax.lax.rsqrt(p["variance"] + jnp.asarray(layer.epsilon, x.dtype))
    return (x - p["mean"]) * scale + p["beta"]


def recurrent(layer: Any, p: Any, x: Any) -> Any:
    """An LSTM's last output."""
    inputs = jnp.swapaxes(x @ p["kernel"] + p["bias"], 0, 1)
    zero = jnp.zeros((len(x), layer.units), x.dtype)

    def cell(carry: Any, gates: Any) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(gates + h @ p["recurrent_kernel"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    return jax.lax.scan(cell, (zero, zero), inputs, unroll=UNROLLED_ROWS)[0][0]


def padded(layer: Any, p: Any, x: Any) -> Any:
    return jnp.pad(x, ((0, 0), (layer.size,) * 2, (layer.size,) * 2, (0, 0)))


LAYERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "conv2d": convolved,
    "max_pool2d": pooled,
    "zero_pad2d": padded,
    "global_average_pool2d": lambda layer, p, x: x.mean((1, 2)),
    "batch_norm": normalised,
    "flatten": lambda layer, p, x: x.reshape(len(x), -1),
    "dense": lambda layer, p, x: x @ p["kernel"] + p["bias"],
    "lstm": recurrent,
}


def forward(layers: Sequence[Any], ps: Any, x: Any, key: Any) -> Any:
    for number, (layer, p) in enumerate(zip(layers, ps, strict=True)):
        if layer.kind == "dropout":
            kept = jax.random.bernoulli(jax.random.fold_in(key, number), 1 - layer.rate, x.shape)
            x = jnp.where(kept, x / (1 - layer.rate), 0).astype(x.dtype)
        elif layer.kind == "residual":
            sides = ("main", "shortcut")
            x = jax.nn.relu(sum(forward(getattr(layer, s), p[s], x, key) for s in sides))
        else:
            x = LAYERS[layer.kind](layer, p, x)
        if layer.kind in ("conv2d", "dense", "batch_norm") and layer.activation == "relu":
            x = jax.nn.relu(x)
    return x


def updated(wanted: Any, ps: Any, state: Any, gs: Any, t: Any) -> Any:
    """Weights and state after step ``t``, counted from 1."""
    tree, (m, v) = jax.tree.map, state
    if wanted.kind == "adam":
        m = tree(lambda m, g: m + (g - m) * (1 - wanted.beta_1), m, gs)
        v = tree(lambda v, g: v + (g * g - v) * (1 - wanted.beta_2), v, gs)
        rate = wanted.learning_rate * jnp.sqrt(1 - wanted.beta_2**t) / (1 - wanted.beta_1**t)
        return tree(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + wanted.epsilon), ps, m, v), (m, v)
    if wanted.kind == "rmsprop":
        v = tree(lambda v, g: wanted.rho * v + (1 - wanted.rho) * g * g, v, gs)
        rate = wanted.learning_rate
        return tree(lambda w, g, v: w - rate * g * jax.lax.rsqrt(v + wanted.epsilon), ps, gs, v), (
            m,
            v,
        )
    m = tree(lambda u, g: wanted.momentum * u - wanted.learning_rate * g, m, gs)
    return tree(jnp.add, ps, m), (m, v)


def step(workload: Workload, precision: str, carry: Any, rows: Any, t: Any, data: Any) -> Any:
    """One step; ``t`` counts from 0."""
    (ps, state), (frozen, x, y, key) = carry, data
    cut, dtype = workload.frozen_layers, HALF.get(precision, "float32")
    scale = SCALE if precision == "mixed_float16" else 1.0
    key = jax.random.fold_in(key, t)
    cast = partial(jax.tree.map, lambda value: value.astype(dtype))
    picked = x[rows]
    picked = picked.astype(jnp.float32) / 255 if picked.dtype == jnp.uint8 else picked

    def loss_of(ps: Any) -> Any:
        hidden = forward(workload.layers[:cut], cast(frozen), picked.astype(dtype), key)
        hidden = jax.lax.stop_gradient(hidden)
        logits = forward(workload.layers[cut:], cast(ps), hidden, key).astype(jnp.float32)
        return -scale * jnp.take_along_axis(jax.nn.log_softmax(logits), y[rows][:, None], 1).mean()

    gs = jax.tree.map(lambda g: g / scale, jax.grad(loss_of)(ps))
    return updated(workload.optimizer, ps, state, gs, t.astype(jnp.float32) + 1)


def program(form: str, one: Callable[..., Any], steps: int) -> Callable[..., Any]:
    """A compiled program that trains from step ``t`` on: one step or ``LENGTH``."""

    def single(carry: Any, order: Any, t: Any, data: Any) -> Any:
        return one(carry, order[t % steps], t, data)

    def fori(carry: Any, order: Any, t: Any, data: Any) -> Any:
        body = lambda i, c: single(c, order, t + i, data)  # noqa: E731
        return jax.lax.fori_loop(0, LENGTH, body, carry)

    def scan(carry: Any, order: Any, t: Any, data: Any) -> Any:
        body = lambda c, n: (single(c, order, n, data), None)  # noqa: E731
        numbers = t + jnp.arange(LENGTH)
        return jax.lax.scan(body, carry, numbers, unroll=UNROLLED_STEPS)[0]

    return jax.jit({"step": single, "fori": fori, "scan": scan}[form], donate_argnums=0)


def timed(options: argparse.Namespace, seconds: float) -> list[float]:
    """Seconds per epoch of each block."""
    workload, precision = workload_named(options.workload), options.precision
    exact = {"float32": "highest", "tf32": "tensorfloat32"}
    jax.config.update("jax_default_matmul_precision", exact.get(precision))
    put = partial(jax.device_put, device=jax.devices(options.device)[0])
    every, cut = weights(workload.layers, workload.shapes[0]), workload.frozen_layers
    count = sum(value.size for value in jax.tree.leaves(every))
    if count != workload.parameter_count:
        raise ValueError(f"{count} weights, not {workload.parameter_count}")
    ps = jax.tree.map(put, every[cut:])
    carry = ps, (jax.tree.map(jnp.zeros_like, ps), jax.tree.map(jnp.zeros_like, ps))
    x, y = seeded.generated_data(workload.data_set, "train")
    pictures = x if x.size * 4 >= 2**30 else x.astype(np.float32) / 255
    data = jax.tree.map(put, every[:cut]), put(pictures), put(y), put(jax.random.key(0))
    steps = len(y) // workload.batch_size
    order = random.permutation(len(y))[: steps * workload.batch_size].astype(np.int32)
    rows = put(order.reshape(steps, -1))
    run = program(options.recipe, partial(step, workload, precision), steps)
    unit = 1 if options.recipe == "step" else LENGTH
    trained = 0

    def train(count: int) -> None:
        nonlocal carry, trained
        for _ in range(count // unit):
            carry = run(carry, rows, np.int32(trained), data)
            trained += unit
        jax.block_until_ready(carry)

    return time_blocks(train, seconds, steps, unit)


if __name__ == "__main__":
    options = layers_arguments(FORMS).parse_args()
    finish(options, partial(timed, options))
