"""MLX's synchronisation, and its matrix products."""

from typing import Any

import mlx.core as mx

from ..common import product_scale


def synchronize(*arrays: Any) -> None:
    """Compute any nesting of arrays, and return when the device has finished."""
    mx.eval(*arrays)
    mx.synchronize()


class MlxProducts:
    """See :class:`..seam.Products`. As in training, nothing is computed before ``sync``."""

    def __init__(self, size: int, dtype: Any) -> None:
        most = product_scale(size)
        self._matrix = mx.random.uniform(-most, most, (size, size)).astype(dtype)
        mx.eval(self._matrix)
        self._result = self._matrix

    def request(self, count: int) -> None:
        self._result = self._matrix
        for _ in range(count):
            self._result = self._result @ self._matrix

    def sync(self) -> None:
        synchronize(self._result)

    def read(self) -> float:
        value: Any = self._result[0, 0].item()
        return float(value)
