"""Layers as data. Each knows its output shape, its parameters and its matrix products.

Shapes are without the batch dimension and channels-last: ``(height, width, channels)`` for
pictures, ``(steps, features)`` for sequences, ``(features,)`` for vectors.
FLOPs count two per multiply-add of convolutions and matrix products; element-wise work is left
out, as is usual for model FLOPs (Chowdhery et al. 2022, "PaLM", appendix B).
"""

import math
from typing import Annotated, Literal

from pydantic import Field

from .units import Wire

Shape = tuple[int, ...]
Activation = Literal["linear", "relu"]
Size = Annotated[int, Field(ge=1, le=1_000_000)]


class Conv2D(Wire):
    """Convolution, one stride for both directions. Kernel layout: height, width, in, out."""

    kind: Literal["conv2d"] = "conv2d"
    filters: Size
    kernel: Size
    padding: Literal["valid", "same"]
    stride: Size = 1
    activation: Activation = "relu"

    def output_shape(self, shape: Shape) -> Shape:
        height, width, _ = shape
        return (self._positions(height), self._positions(width), self.filters)

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {
            "kernel": (self.kernel, self.kernel, shape[2], self.filters),
            "bias": (self.filters,),
        }

    def product_flops(self, shape: Shape) -> int:
        height, width, _ = self.output_shape(shape)
        return 2 * height * width * self.kernel**2 * shape[2] * self.filters

    def input_product_flops(self, shape: Shape) -> int:
        return self.product_flops(shape)

    def _positions(self, size: int) -> int:
        span = size if self.padding == "same" else size - self.kernel + 1
        return -(-span // self.stride)


class MaxPool2D(Wire):
    """Maximum over squares, no padding."""

    kind: Literal["max_pool2d"] = "max_pool2d"
    size: Size = 2
    stride: Size = 2

    def output_shape(self, shape: Shape) -> Shape:
        height, width, channels = shape
        return (
            (height - self.size) // self.stride + 1,
            (width - self.size) // self.stride + 1,
            channels,
        )

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {}

    def product_flops(self, shape: Shape) -> int:
        return 0

    def input_product_flops(self, shape: Shape) -> int:
        return 0


class Flatten(Wire):
    """All dimensions into one, rows of the channels-last array after each other."""

    kind: Literal["flatten"] = "flatten"

    def output_shape(self, shape: Shape) -> Shape:
        return (math.prod(shape),)

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {}

    def product_flops(self, shape: Shape) -> int:
        return 0

    def input_product_flops(self, shape: Shape) -> int:
        return 0


class Dropout(Wire):
    """Zero a share of the values in training and scale the rest by 1 / (1 - rate)."""

    kind: Literal["dropout"] = "dropout"
    rate: Annotated[float, Field(gt=0, lt=1)]

    def output_shape(self, shape: Shape) -> Shape:
        return shape

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {}

    def product_flops(self, shape: Shape) -> int:
        return 0

    def input_product_flops(self, shape: Shape) -> int:
        return 0


class Dense(Wire):
    """``activation(x @ kernel + bias)``; kernel layout: in, out."""

    kind: Literal["dense"] = "dense"
    units: Size
    activation: Activation = "relu"

    def output_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], self.units)

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {"kernel": (shape[-1], self.units), "bias": (self.units,)}

    def product_flops(self, shape: Shape) -> int:
        return 2 * math.prod(shape) * self.units

    def input_product_flops(self, shape: Shape) -> int:
        return self.product_flops(shape)


class LSTM(Wire):
    """Long short-term memory, last step's output only.

    Gates in the order i, f, g, o along the last axis, one bias, forget bias starts at 1, tanh and
    sigmoid as in Hochreiter & Schmidhuber 1997 with forget gates (Gers et al. 2000).
    """

    kind: Literal["lstm"] = "lstm"
    units: Size

    def output_shape(self, shape: Shape) -> Shape:
        return (self.units,)

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        gates = 4 * self.units
        return {
            "kernel": (shape[1], gates),
            "recurrent_kernel": (self.units, gates),
            "bias": (gates,),
        }

    def product_flops(self, shape: Shape) -> int:
        steps, features = shape
        return 2 * steps * 4 * self.units * (features + self.units)

    def input_product_flops(self, shape: Shape) -> int:
        steps, features = shape
        return 2 * steps * 4 * self.units * features


Layer = Annotated[
    Conv2D | MaxPool2D | Flatten | Dropout | Dense | LSTM, Field(discriminator="kind")
]
