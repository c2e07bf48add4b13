"""PyTorch's synchronisation, and its matrix products."""

from typing import Any

import torch

from ..common import product_scale


def synchronize(device: Any) -> None:
    """Return when the device has finished all requested work. PyTorch's CPU is never behind."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


class TorchProducts:
    """See :class:`..seam.Products`. The second factor is transposed, as in a dense layer: without
    AVX-512 PyTorch's plain bfloat16 product is eight times slower than that of its layers."""

    def __init__(self, size: int, device: Any, dtype: Any) -> None:
        matrix = (torch.rand((size, size), device=device) * 2 - 1) * product_scale(size)
        self._matrix = self._result = matrix.to(dtype)
        self._device = device

    def request(self, count: int) -> None:
        self._result = self._matrix
        for _ in range(count):
            self._result = torch.mm(self._result, self._matrix.t())

    def sync(self) -> None:
        synchronize(self._device)

    def read(self) -> float:
        return float(self._result[0, 0].item())
