"""Convolution, pooling and padding of pictures, (samples, height, width, channels)."""

from itertools import product

import numpy as np

from ..catalogue.layers import Conv2D, MaxPool2D, Shape, ZeroPad2D
from .arrays import Array, Passed, Values

Window = tuple[slice, slice, slice]
# Number of patch values that are multiplied at a time.
PATCH_VALUES = 1 << 20


def convolution(layer: Conv2D, values: Values, x: Array) -> Passed:
    """``y[i, j] = sum over a, b of x[s i + a, s j + b] @ kernel[a, b] + bias``; s the stride.

    It is a cross-correlation: the kernel is not mirrored. ``x`` has its padding zeros. Computed as
    matrix products over copied patches (Chellapilla et al. 2006), a few samples at a time; the
    backward pass copies them again, because all of them need ``kernel**2`` times the memory of x.
    """
    height, width, channels = x.shape[1:]
    kernel = values["kernel"].reshape(-1, layer.filters)
    (top, bottom), (left, right) = layer.padding_zeros(x.shape[1:])
    outputs = layer.output_shape(x.shape[1:])
    windows = _windows(layer.kernel, layer.stride, outputs)
    rows = outputs[0] * outputs[1]  # of one sample
    parts = _parts(len(x), rows * len(kernel))
    # Buffers for one part of the batch: the padded inputs, and the patches.
    padded = np.zeros((parts[0].stop, top + height + bottom, left + width + right, channels))
    inner = np.s_[:, top : top + height, left : left + width]
    patches = np.empty((parts[0].stop * rows, len(kernel)))

    # A 1x1 convolution of every pixel needs no copies: its patches are its inputs.
    plain = layer.kernel == layer.stride == 1

    def places(samples: int) -> Array:
        return patches[: samples * rows].reshape(samples, *outputs[:2], len(windows), channels)

    def copy_patches(part: slice) -> Array:
        samples = part.stop - part.start
        if plain:
            return x[part].reshape(samples * rows, channels)
        padded[:samples][inner] = x[part]
        for number, window in enumerate(windows):
            places(samples)[:, :, :, number] = padded[:samples][window]
        return patches[: samples * rows]

    y = np.empty((len(x) * rows, layer.filters))
    for part in parts:
        products = y[part.start * rows : part.stop * rows]
        np.matmul(copy_patches(part), kernel, out=products)
        if "bias" in values:
            products += values["bias"]

    def back(dy: Array, inputs: bool) -> tuple[Array, Values]:
        dx = np.empty(x.shape if inputs else 0)
        changes = dy.reshape(-1, layer.filters)
        kernel_gradient, of_part = np.zeros(kernel.shape), np.empty(kernel.shape)
        spread_parts = np.empty(padded.shape if inputs else 0)
        for part in parts:
            change = changes[part.start * rows : part.stop * rows]
            np.matmul(copy_patches(part).T, change, out=of_part)
            kernel_gradient += of_part
            if inputs:
                samples = part.stop - part.start
                np.matmul(change, kernel.T, out=patches[: samples * rows])
                spread = spread_parts[:samples]
                spread.fill(0)
                for number, window in enumerate(windows):
                    spread[window] += places(samples)[:, :, :, number]
                dx[part] = spread[inner]
        gradients = {"kernel": kernel_gradient.reshape(values["kernel"].shape)}
        if "bias" in values:
            gradients["bias"] = changes.sum(axis=0)
        return dx, gradients

    return y.reshape(len(x), *outputs), back


def max_pool(layer: MaxPool2D, x: Array) -> Passed:
    """Maximum of each window; the gradient goes to its first maximum, row by row."""
    outputs = layer.output_shape(x.shape[1:])
    windows = _windows(layer.size, layer.stride, outputs)
    disjoint = layer.stride >= layer.size
    y = x[windows[0]].copy()
    for window in windows[1:]:
        np.maximum(y, x[window], out=y)

    def back(dy: Array, _: bool) -> tuple[Array, Values]:
        dx = np.zeros(x.shape)
        pending = np.ones(y.shape, bool)
        for window in windows:
            here = x[window] == y
            here &= pending
            pending ^= here
            if disjoint:
                np.multiply(dy, here, out=dx[window])
            else:
                dx[window] += dy * here
        return dx, {}

    return y, back


def average_pool(x: Array) -> Passed:
    """Mean over height and width, shape (samples, channels)."""
    pixels = x.shape[1] * x.shape[2]

    def back(dy: Array, _: bool) -> tuple[Array, Values]:
        return np.broadcast_to(dy[:, None, None] / pixels, x.shape).copy(), {}

    return x.mean(axis=(1, 2)), back


def zero_pad(layer: ZeroPad2D, x: Array) -> Passed:
    """``size`` zeros on all four sides."""
    size = layer.size

    def back(dy: Array, _: bool) -> tuple[Array, Values]:
        return dy[:, size : size + x.shape[1], size : size + x.shape[2]], {}

    return np.pad(x, ((0, 0), (size, size), (size, size), (0, 0))), back


def _windows(size: int, stride: int, outputs: Shape) -> list[Window]:
    """For each place of a square window, row by row, the inputs that lie under it."""
    rows, columns = (stride * (positions - 1) + 1 for positions in outputs[:2])
    return [
        np.s_[:, top : top + rows : stride, left : left + columns : stride]
        for top, left in product(range(size), repeat=2)
    ]


def _parts(samples: int, values: int) -> list[slice]:
    """Slices of a batch: about ``PATCH_VALUES`` at a time, a sample has ``values``."""
    size = max(1, min(samples, PATCH_VALUES // values))
    return [slice(start, min(start + size, samples)) for start in range(0, samples, size)]
