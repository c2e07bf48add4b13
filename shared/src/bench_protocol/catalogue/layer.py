"""What all layers share: shapes, activations, a layer without weights.

Shapes are without the batch dimension and channels-last: ``(height, width, channels)`` for
pictures, ``(steps, features)`` for sequences, ``(features,)`` for vectors, ``(steps,)`` for tokens.
FLOPs count two per multiply-add of convolutions and matrix products; element-wise work is left
out, as is usual for model FLOPs (Chowdhery et al. 2022, "PaLM", appendix B).
"""

from typing import Annotated, Literal

from pydantic import Field

from ..base.units import Wire

Shape = tuple[int, ...]
# ``gelu``: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016).
Activation = Literal["linear", "relu", "gelu"]
Size = Annotated[int, Field(ge=1, le=1_000_000)]
# A layer's own bias; left out of the digest where there is one.
Bias = Annotated[bool, Field(exclude_if=lambda bias: bias is True)]


class Weightless(Wire):
    """A layer that holds no weights and multiplies no matrices."""

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {}

    def product_flops(self, shape: Shape) -> int:
        return 0

    def input_product_flops(self, shape: Shape) -> int:
        return 0
