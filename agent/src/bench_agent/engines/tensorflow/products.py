"""TensorFlow's matrix products."""

from typing import Any

import tensorflow as tf

from ..common import product_scale
from .shared import sync


class TensorFlowProducts:
    """See :class:`..seam.Products`. ``chains``: parts of each product, computed side by side."""

    def __init__(self, size: int, place: str, dtype: str, chains: int) -> None:
        self._place = place
        most = product_scale(size)
        with tf.device(place):
            self._matrix = tf.cast(tf.random.uniform((size, size), -most, most), dtype)
            self._start = self._parts = tf.split(self._matrix, chains)

        @tf.function(autograph=False, jit_compile=False)  # type: ignore[untyped-decorator]
        def multiply(parts: list[Any], matrix: Any) -> list[Any]:
            return [tf.matmul(part, matrix) for part in parts]

        self._multiply = multiply

    def request(self, count: int) -> None:
        self._parts = self._start
        with tf.device(self._place):
            for _ in range(count):
                self._parts = self._multiply(self._parts, self._matrix)

    def sync(self) -> None:
        sync(self._corner())

    def read(self) -> float:
        return float(self._corner().numpy())

    def _corner(self) -> Any:
        with tf.device(self._place):
            return self._parts[-1][0, 0]
