"""Layers of a workload as data: output shapes, parameters, FLOPs of matrix products.

Shapes are without the batch dimension and channels-last: ``(height, width, channels)`` for
pictures, ``(steps, features)`` for sequences, ``(features,)`` for vectors.
FLOPs count two per multiply-add of convolutions and matrix products; element-wise work is left
out, as is usual for model FLOPs (Chowdhery et al. 2022, "PaLM", appendix B).
"""

import math
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from ..base.units import Wire

Shape = tuple[int, ...]
Activation = Literal["linear", "relu"]
Size = Annotated[int, Field(ge=1, le=1_000_000)]


class _Weightless(Wire):
    """A layer that holds no weights and multiplies no matrices."""

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {}

    def product_flops(self, shape: Shape) -> int:
        return 0

    def input_product_flops(self, shape: Shape) -> int:
        return 0


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

    def padding_zeros(self, shape: Shape) -> tuple[tuple[int, int], tuple[int, int]]:
        """Zeros (top, bottom) and (left, right) around a picture; odd ones go bottom and right."""
        if self.padding == "valid":
            return (0, 0), (0, 0)
        missing = [
            max(0, (self._positions(size) - 1) * self.stride + self.kernel - size)
            for size in shape[:2]
        ]
        top, left = (zeros // 2 for zeros in missing)
        return (top, missing[0] - top), (left, missing[1] - left)

    def _positions(self, size: int) -> int:
        span = size if self.padding == "same" else size - self.kernel + 1
        return -(-span // self.stride)


class MaxPool2D(_Weightless):
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


class Flatten(_Weightless):
    """All dimensions into one, rows of the channels-last array after each other."""

    kind: Literal["flatten"] = "flatten"

    def output_shape(self, shape: Shape) -> Shape:
        return (math.prod(shape),)


class Dropout(_Weightless):
    """Zero a share of the values in training and scale the rest by 1 / (1 - rate)."""

    kind: Literal["dropout"] = "dropout"
    rate: Annotated[float, Field(gt=0, lt=1)]

    def output_shape(self, shape: Shape) -> Shape:
        return shape


class ZeroPad2D(_Weightless):
    """``size`` zeros on all four sides."""

    kind: Literal["zero_pad2d"] = "zero_pad2d"
    size: Size

    def output_shape(self, shape: Shape) -> Shape:
        height, width, channels = shape
        return (height + 2 * self.size, width + 2 * self.size, channels)


class GlobalAveragePool2D(_Weightless):
    """Mean over height and width."""

    kind: Literal["global_average_pool2d"] = "global_average_pool2d"

    def output_shape(self, shape: Shape) -> Shape:
        return (shape[-1],)


class BatchNorm(_Weightless):
    """Batch normalisation in inference mode (Ioffe & Szegedy 2015): its statistics do not change.

    ``activation(gamma (x - mean) / sqrt(variance + epsilon) + beta)``; one number a channel each.
    ``gamma``: the value every gamma starts at. ``epsilon``: that of Keras' ResNet50.
    """

    kind: Literal["batch_norm"] = "batch_norm"
    gamma: Annotated[float, Field(gt=0, le=10)] = 1.0
    epsilon: Annotated[float, Field(gt=0, lt=1)] = 1.001e-5
    activation: Activation = "relu"

    def output_shape(self, shape: Shape) -> Shape:
        return shape

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return dict.fromkeys(("gamma", "beta", "mean", "variance"), shape[-1:])


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


PlainLayer = Annotated[
    Conv2D
    | MaxPool2D
    | ZeroPad2D
    | GlobalAveragePool2D
    | BatchNorm
    | Flatten
    | Dropout
    | Dense
    | LSTM,
    Field(discriminator="kind"),
]


class Part(NamedTuple):
    """A layer inside a residual block. Its weights are called ``prefix`` and its own name."""

    prefix: str
    layer: PlainLayer
    inputs: Shape


Branch = Literal["main", "shortcut"]


class Residual(Wire):
    """``relu(main(x) + shortcut(x))`` (He et al. 2015); without shortcut layers it is ``x``."""

    kind: Literal["residual"] = "residual"
    main: tuple[PlainLayer, ...] = Field(min_length=1)
    shortcut: tuple[PlainLayer, ...] = ()

    def branch(self, name: Branch, shape: Shape) -> list[Part]:
        """Layers of one branch, each with its input shape."""
        parts = []
        for index, layer in enumerate(self.main if name == "main" else self.shortcut):
            parts.append(Part(f"{name}.{index}.", layer, shape))
            shape = layer.output_shape(shape)
        return parts

    def output_shape(self, shape: Shape) -> Shape:
        for layer in self.main:
            shape = layer.output_shape(shape)
        return shape

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return {
            part.prefix + name: weight_shape
            for part in self.parts(shape)
            for name, weight_shape in part.layer.weight_shapes(part.inputs).items()
        }

    def product_flops(self, shape: Shape) -> int:
        return sum(part.layer.product_flops(part.inputs) for part in self.parts(shape))

    def input_product_flops(self, shape: Shape) -> int:
        """FLOPs of the gradient of the block's input: the first product of each branch."""
        total = 0
        for name in ("main", "shortcut"):
            products = (
                part.layer.input_product_flops(part.inputs) for part in self.branch(name, shape)
            )
            total += next((flops for flops in products if flops), 0)
        return total

    def parts(self, shape: Shape) -> list[Part]:
        return [*self.branch("main", shape), *self.branch("shortcut", shape)]


Layer = Annotated[PlainLayer | Residual, Field(discriminator="kind")]
