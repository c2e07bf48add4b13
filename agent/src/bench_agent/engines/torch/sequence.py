"""PyTorch modules of sequences."""

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Embedding(nn.Module):  # type: ignore[misc]
    def __init__(self, vocabulary: int, steps: int, units: int) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.empty(vocabulary, units))
        self.positions = nn.Parameter(torch.empty(steps, units))

    def forward(self, x: Any) -> Any:
        return functional.embedding(x, self.tokens) + self.positions


class CausalAttention(nn.Module):  # type: ignore[misc]
    """``fused``: by PyTorch's kernel, which stores no products; else as tutorials write it."""

    def __init__(self, steps: int, units: int, heads: int, *, fused: bool) -> None:
        super().__init__()
        self.input = nn.Linear(units, 3 * units, bias=False)
        self.output = nn.Linear(units, units, bias=False)
        self._heads = heads
        self._fused = fused
        if not fused:
            later = torch.ones(steps, steps, dtype=torch.bool).triu(1)
            self.register_buffer("later", later, persistent=False)

    def forward(self, x: Any) -> Any:
        batch, steps, units = x.shape
        q, k, v = (
            part.view(batch, steps, self._heads, -1).transpose(1, 2)
            for part in self.input(x).split(units, dim=-1)
        )
        if self._fused:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            products = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            y = products.masked_fill(self.later, -math.inf).softmax(dim=-1) @ v
        return self.output(y.transpose(1, 2).reshape(batch, steps, units))


class LastOutput(nn.LSTM):  # type: ignore[misc]
    """PyTorch's LSTM, last output only. Its second bias is zero and not trained.

    In autocast PyTorch takes oneDNN's LSTM on any CPU, but oneDNN has none in bfloat16 before
    AVX-512: the call ends with "could not create a primitive descriptor".
    """

    def __init__(self, features: int, units: int) -> None:
        super().__init__(features, units, batch_first=True)
        del self.bias_hh_l0
        self.register_buffer("bias_hh_l0", torch.zeros(4 * units), persistent=False)
        # The kernels use this list, so the buffer must replace the parameter in it.
        self._flat_weights = [getattr(self, name) for name in self._flat_weights_names]

    def forward(self, x: Any) -> Any:
        half = x.device.type == "cpu" and torch.is_autocast_enabled("cpu")
        if not half or _onednn_has_bfloat16():
            outputs, _ = super().forward(x)
        else:
            # None leaves a flag as it is.
            with torch.backends.mkldnn.flags(
                enabled=False, deterministic=None, allow_tf32=None, fp32_precision=None
            ):
                outputs, _ = super().forward(x)
        return outputs[:, -1]


def _onednn_has_bfloat16() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
