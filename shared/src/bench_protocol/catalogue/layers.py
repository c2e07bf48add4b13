"""Layers of a workload as data: output shapes, parameters, FLOPs of matrix products. Shapes and
FLOPs are those of :mod:`.layer`."""

import math
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from ..base.units import Wire
from .layer import Activation, Bias, Shape, Size, Weightless
from .picture_layers import (
    MOMENTUM,
    BatchNorm,
    Conv2D,
    GlobalAveragePool2D,
    MaxPool2D,
    ZeroPad2D,
)
from .sequence_layers import LSTM, CausalAttention, Embedding, LayerNorm

__all__ = [
    "LSTM",
    "MOMENTUM",
    "Activation",
    "BatchNorm",
    "Branch",
    "CausalAttention",
    "Conv2D",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalAveragePool2D",
    "Layer",
    "LayerNorm",
    "MaxPool2D",
    "Part",
    "PlainLayer",
    "Residual",
    "Shape",
    "ZeroPad2D",
]


class Flatten(Weightless):
    """All dimensions into one, rows of the channels-last array after each other."""

    kind: Literal["flatten"] = "flatten"

    def output_shape(self, shape: Shape) -> Shape:
        return (math.prod(shape),)


class Dropout(Weightless):
    """Zero a share of the values in training and scale the rest by 1 / (1 - rate)."""

    kind: Literal["dropout"] = "dropout"
    rate: Annotated[float, Field(gt=0, lt=1)]

    def output_shape(self, shape: Shape) -> Shape:
        return shape


class Dense(Wire):
    """``activation(x @ kernel + bias)``; kernel layout: in, out."""

    kind: Literal["dense"] = "dense"
    units: Size
    activation: Activation = "relu"
    bias: Bias = True

    def output_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], self.units)

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        kernel = {"kernel": (shape[-1], self.units)}
        return kernel | ({"bias": (self.units,)} if self.bias else {})

    def product_flops(self, shape: Shape) -> int:
        return 2 * math.prod(shape) * self.units

    def input_product_flops(self, shape: Shape) -> int:
        return self.product_flops(shape)


PlainLayer = Annotated[
    Conv2D
    | MaxPool2D
    | ZeroPad2D
    | GlobalAveragePool2D
    | BatchNorm
    | Flatten
    | Dropout
    | Dense
    | LSTM
    | Embedding
    | LayerNorm
    | CausalAttention,
    Field(discriminator="kind"),
]


class Part(NamedTuple):
    """A layer inside a residual block. Its weights are called ``prefix`` and its own name."""

    prefix: str
    layer: PlainLayer
    inputs: Shape


Branch = Literal["main", "shortcut"]


class Residual(Wire):
    """``activation(main(x) + shortcut(x))`` (He et al. 2015); without shortcut layers it is ``x``.

    Its activation is left out of the digest where it is a ReLU.
    """

    kind: Literal["residual"] = "residual"
    main: tuple[PlainLayer, ...] = Field(min_length=1)
    shortcut: tuple[PlainLayer, ...] = ()
    activation: Literal["linear", "relu"] = Field(
        default="relu", exclude_if=lambda activation: activation == "relu"
    )

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
