"""Layers of pictures as data."""

from typing import Annotated, Literal

from pydantic import Field

from ..base.units import Wire
from .layer import Activation, Bias, Shape, Size, Weightless

# A batch normalisation keeps this share of its running statistics in each step.
MOMENTUM = 0.9


class Conv2D(Wire):
    """Convolution, one stride for both directions. Kernel layout: height, width, in, out.

    ``padding``: ``valid`` has no zeros; ``same`` as few as make ``size / stride`` outputs;
    ``centred`` has ``kernel // 2`` on all four sides.
    """

    kind: Literal["conv2d"] = "conv2d"
    filters: Size
    kernel: Size
    padding: Literal["valid", "same", "centred"]
    stride: Size = 1
    activation: Activation = "relu"
    bias: Bias = True

    def output_shape(self, shape: Shape) -> Shape:
        height, width, _ = shape
        return (self._positions(height), self._positions(width), self.filters)

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        kernel = {"kernel": (self.kernel, self.kernel, shape[2], self.filters)}
        return kernel | ({"bias": (self.filters,)} if self.bias else {})

    def product_flops(self, shape: Shape) -> int:
        height, width, _ = self.output_shape(shape)
        return 2 * height * width * self.kernel**2 * shape[2] * self.filters

    def input_product_flops(self, shape: Shape) -> int:
        return self.product_flops(shape)

    def padding_zeros(self, shape: Shape) -> tuple[tuple[int, int], tuple[int, int]]:
        """Zeros (top, bottom) and (left, right) around a picture; odd ones go bottom and right."""
        if self.padding != "same":
            around = self.kernel // 2 if self.padding == "centred" else 0
            return (around, around), (around, around)
        missing = [
            max(0, (self._positions(size) - 1) * self.stride + self.kernel - size)
            for size in shape[:2]
        ]
        top, left = (zeros // 2 for zeros in missing)
        return (top, missing[0] - top), (left, missing[1] - left)

    def _positions(self, size: int) -> int:
        if self.padding == "same":
            return -(-size // self.stride)
        around = self.kernel // 2 if self.padding == "centred" else 0
        return (size + 2 * around - self.kernel) // self.stride + 1


class MaxPool2D(Weightless):
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


class ZeroPad2D(Weightless):
    """``size`` zeros on all four sides."""

    kind: Literal["zero_pad2d"] = "zero_pad2d"
    size: Size

    def output_shape(self, shape: Shape) -> Shape:
        height, width, channels = shape
        return (height + 2 * self.size, width + 2 * self.size, channels)


class GlobalAveragePool2D(Weightless):
    """Mean over height and width."""

    kind: Literal["global_average_pool2d"] = "global_average_pool2d"

    def output_shape(self, shape: Shape) -> Shape:
        return (shape[-1],)


class BatchNorm(Weightless):
    """Batch normalisation (Ioffe & Szegedy 2015), one number a channel of each weight.

    ``activation(gamma (x - mean) / sqrt(variance + epsilon) + beta)``. ``statistics``: ``stored``
    takes the weights ``mean`` and ``variance``, which never change. ``batch`` takes mean and biased
    variance of the batch in training, and each step moves the stored ones, which evaluation takes,
    by a share of ``1 - MOMENTUM`` to those of the batch. ``gamma``: the value every gamma starts
    at. ``epsilon``: that of Keras' ResNet50.
    """

    kind: Literal["batch_norm"] = "batch_norm"
    gamma: Annotated[float, Field(gt=0, le=10)] = 1.0
    epsilon: Annotated[float, Field(gt=0, lt=1)] = 1.001e-5
    activation: Activation = "relu"
    statistics: Literal["stored", "batch"] = Field(
        default="stored", exclude_if=lambda statistics: statistics == "stored"
    )

    def output_shape(self, shape: Shape) -> Shape:
        return shape

    def weight_shapes(self, shape: Shape) -> dict[str, Shape]:
        return dict.fromkeys(("gamma", "beta", "mean", "variance"), shape[-1:])
