"""JAX's synchronisation, and its matrix products."""

from typing import Any

import jax
import jax.numpy as jnp

from ..common import product_scale


def synchronize(arrays: Any) -> None:
    """Return when the device has computed any nesting of arrays, and so all they follow from."""
    jax.block_until_ready(arrays)


class JaxProducts:
    def __init__(self, size: int, dtype: str) -> None:
        most = product_scale(size)
        matrix = jax.random.uniform(jax.random.key(0), (size, size), minval=-most, maxval=most)
        self._matrix = self._result = matrix.astype(dtype)
        self._multiply: Any = jax.jit(jnp.matmul)

    def request(self, count: int) -> None:
        self._result = self._matrix
        for _ in range(count):
            self._result = self._multiply(self._result, self._matrix)

    def sync(self) -> None:
        synchronize(self._result)

    def read(self) -> float:
        return float(self._result[0, 0])
