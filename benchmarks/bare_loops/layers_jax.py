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
from bench_protocol.catalogue.layers import MOMENTUM
from bench_protocol.catalogue.workloads import Workload

FORMS = ("step", "fori", "scan")
LENGTH = 64  # steps in one program
UNROLLED_ROWS, UNROLLED_STEPS = 4, 2
QUERY_BLOCKS = 4
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
            if by_batch(layer):
                sizes = {name: sizes[name] for name in ("gamma", "beta")}
            made.append({name: start(name, size, layer) for name, size in sizes.items()})
        shape = layer.output_shape(shape)
    return made


def by_batch(layer: Any) -> bool:
    return layer.kind == "batch_norm" and layer.statistics == "batch"


def running(layers: Sequence[Any], shape: Any) -> list[Any]:
    """Mean and variance of each normalisation by the batch, in the order of the forward pass."""
    made: list[Any] = []
    for layer in layers:
        if layer.kind == "residual":
            made += running(layer.main, shape) + running(layer.shortcut, shape)
        elif by_batch(layer):
            made.append((np.zeros(shape[-1:], np.float32), np.ones(shape[-1:], np.float32)))
        shape = layer.output_shape(shape)
    return made


def start(name: str, size: Sequence[int], layer: Any) -> Any:
    if name in ("gamma", "variance"):
        is_gamma = name == "gamma"
        return np.full(size, getattr(layer, "gamma", 1.0) if is_gamma else 1.0, np.float32)
    if layer.kind in ("embedding", "causal_attention"):
        return (random.standard_normal(size) * 0.02).astype(np.float32)
    if len(size) == 1:
        return np.zeros(size, np.float32)
    values = random.standard_normal(size) * math.sqrt(2 / math.prod(size[:-1]))
    return values.astype(np.float32)


def convolved(layer: Any, p: Any, x: Any) -> Any:
    pad, strides = layer.padding_zeros(x.shape[1:]), (layer.stride,) * 2
    kinds = ("NHWC", "HWIO", "NHWC")
    convolve = jax.lax.conv_general_dilated
    return biased(p, convolve(x, p["kernel"], strides, pad, dimension_numbers=kinds))


def biased(p: Any, x: Any) -> Any:
    return x + p["bias"] if "bias" in p else x


def pooled(layer: Any, p: Any, x: Any) -> Any:
    window, strides = (1, layer.size, layer.size, 1), (1, layer.stride, layer.stride, 1)
    return jax.lax.reduce_window(
        x, np.array(-np.inf, x.dtype), jax.lax.max, window, strides, "VALID"
    )


def normalised(layer: Any, p: Any, x: Any) -> Any:
    scale = p["gamma"] * jax.lax.rsqrt(p["variance"] + jnp.asarray(layer.epsilon, x.dtype))
    return (x - p["mean"]) * scale + p["beta"]


def normalised_by_batch(layer: Any, p: Any, x: Any, seen: list[Any]) -> Any:
    wide = x.astype(jnp.float32)
    mean, variance = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
    seen.append((mean, variance))
    scale = p["gamma"] * jax.lax.rsqrt(variance + layer.epsilon)
    return ((wide - mean) * scale + p["beta"]).astype(x.dtype)


def layer_normalised(layer: Any, p: Any, x: Any) -> Any:
    wide = x.astype(jnp.float32)
    apart = wide - wide.mean(-1, keepdims=True)
    spread = jax.lax.rsqrt(jnp.square(apart).mean(-1, keepdims=True) + layer.epsilon)
    return (apart * spread * p["gamma"]).astype(x.dtype)


def attended(layer: Any, p: Any, x: Any) -> Any:
    """On a CPU in blocks of queries, which leave out what the mask would hide."""
    batch, steps = x.shape[:2]
    qkv = (x @ p["kernel"]).reshape(batch, steps, 3, layer.heads, -1)
    if jax.default_backend() != "cpu":
        q, k, v = (qkv[:, :, part] for part in range(3))
        kind = "cudnn" if x.dtype == jnp.bfloat16 else None
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=kind)
        return mixed.reshape(x.shape) @ p["output_kernel"]
    q, k, v = qkv.transpose(2, 0, 3, 1, 4)
    q, rows, width = q * q.shape[-1] ** -0.5, [], steps // QUERY_BLOCKS
    for end in range(width, steps + 1, width):
        scores = q[:, :, end - width : end] @ k[:, :, :end].swapaxes(-1, -2)
        seen = np.tril(np.ones((width, end), bool), end - width)
        shares = jax.nn.softmax(jnp.where(seen, scores.astype(jnp.float32), -jnp.inf))
        rows.append(shares.astype(x.dtype) @ v[:, :, :end])
    return jnp.concatenate(rows, 2).swapaxes(1, 2).reshape(x.shape) @ p["output_kernel"]


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
    "dense": lambda layer, p, x: biased(p, x @ p["kernel"]),
    "embedding": lambda layer, p, x: p["tokens"][x] + p["positions"],
    "layer_norm": layer_normalised,
    "causal_attention": attended,
    "lstm": recurrent,
}


ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": jax.nn.relu,
    "gelu": partial(jax.nn.gelu, approximate=True),
}


def forward(layers: Sequence[Any], ps: Any, x: Any, key: Any, seen: list[Any]) -> Any:
    """``seen`` receives the batch's statistics of each normalisation."""
    for number, (layer, p) in enumerate(zip(layers, ps, strict=True)):
        if layer.kind == "dropout":
            kept = jax.random.bernoulli(jax.random.fold_in(key, number), 1 - layer.rate, x.shape)
            x = jnp.where(kept, x / (1 - layer.rate), 0).astype(x.dtype)
        elif layer.kind == "residual":
            sides = ("main", "shortcut")
            x = sum(forward(getattr(layer, s), p[s], x, key, seen) for s in sides)
        elif by_batch(layer):
            x = normalised_by_batch(layer, p, x, seen)
        else:
            x = LAYERS[layer.kind](layer, p, x)
        x = ACTIVATIONS[getattr(layer, "activation", "linear")](x)
    return x


def updated(wanted: Any, ps: Any, state: Any, gs: Any, t: Any) -> Any:
    """Weights and state after step ``t``, counted from 1."""
    tree, (m, v) = jax.tree.map, state
    if wanted.kind == "adam":
        m = tree(lambda m, g: m + (g - m) * (1 - wanted.beta_1), m, gs)
        v = tree(lambda v, g: v + (g * g - v) * (1 - wanted.beta_2), v, gs)
        if kept := wanted.learning_rate * wanted.weight_decay:
            ps = tree(lambda w: w * (1 - kept) if w.ndim > 1 else w, ps)
        rate = wanted.learning_rate * jnp.sqrt(1 - wanted.beta_2**t) / (1 - wanted.beta_1**t)
        return tree(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + wanted.epsilon), ps, m, v), (m, v)
    if wanted.kind == "rmsprop":
        v = tree(lambda v, g: wanted.rho * v + (1 - wanted.rho) * g * g, v, gs)
        rate = wanted.learning_rate
        return tree(lambda w, g, v: w - rate * g * jax.lax.rsqrt(v + wanted.epsilon), ps, gs, v), (
            m,
            v,
        )
    if decay := wanted.weight_decay:
        gs = tree(lambda g, w: g + decay * w, gs, ps)
    m = tree(lambda u, g: wanted.momentum * u - wanted.learning_rate * g, m, gs)
    return tree(jnp.add, ps, m), (m, v)


def step(workload: Workload, precision: str, carry: Any, rows: Any, t: Any, data: Any) -> Any:
    """One step; ``t`` counts from 0."""
    (ps, state, kept), (frozen, x, y, key) = carry, data
    cut, dtype = workload.frozen_layers, HALF.get(precision, "float32")
    scale = SCALE if precision == "mixed_float16" else 1.0
    key = jax.random.fold_in(key, t)
    cast = partial(jax.tree.map, lambda value: value.astype(dtype))
    picked = x[rows]
    picked = picked.astype(jnp.float32) / 255 if picked.dtype == jnp.uint8 else picked

    def loss_of(ps: Any) -> Any:
        seen: list[Any] = []
        inputs = picked if workload.data_set.tokens else picked.astype(dtype)
        hidden = forward(workload.layers[:cut], cast(frozen), inputs, key, seen)
        hidden = jax.lax.stop_gradient(hidden)
        logits = forward(workload.layers[cut:], cast(ps), hidden, key, seen).astype(jnp.float32)
        logs, labels = jax.nn.log_softmax(logits), y[rows][..., None]
        return -scale * jnp.take_along_axis(logs, labels, -1).mean(), seen

    gs, seen = jax.grad(loss_of, has_aux=True)(ps)
    gs = jax.tree.map(lambda g: g / scale, gs)
    kept = jax.tree.map(lambda old, new: MOMENTUM * old + (1 - MOMENTUM) * new, kept, seen)
    return *updated(workload.optimizer, ps, state, gs, t.astype(jnp.float32) + 1), kept


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
    kept = running(workload.layers, workload.shapes[0])
    count = sum(value.size for value in jax.tree.leaves((every, kept)))
    if count != workload.parameter_count:
        raise ValueError(f"{count} weights, not {workload.parameter_count}")
    ps = jax.tree.map(put, every[cut:])
    zeros = (jax.tree.map(jnp.zeros_like, ps), jax.tree.map(jnp.zeros_like, ps))
    carry = ps, zeros, jax.tree.map(put, kept)
    x, y = seeded.generated_data(workload.data_set, "train")
    if workload.data_set.tokens:
        x = x.astype(np.int32)
    elif x.size * 4 < 2**30:
        x = x.astype(np.float32) / 255
    data = jax.tree.map(put, every[:cut]), put(x), put(y), put(jax.random.key(0))
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
