"""Metal probe: does this device compute dense and convolution layers correctly, and in which form?

tensorflow-metal 1.x fuses product, bias and ReLU into an operation that computes wrongly in graph
mode (keras-team/tf-keras issue 140, tensorflow issue 62137). The probe runs each form as the
training would, inside a graph, and compares with NumPy.

The plug-in's optimiser of graphs reads ``TURN_OFF_REMAPPER`` (in libmetal_plugin.dylib 1.2.0):
with "1" it fuses nothing, Keras' own optimisers included.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..seam import WrongResult
from .keras_model import convolution, dense_product

# float32 products of some hundred terms agree to about 1e-6; the wrong fusion differs far more.
TOLERANCE = 1e-4
SWITCH = "TURN_OFF_REMAPPER"
Array = NDArray[np.float32]


@dataclass(frozen=True)
class Form:
    """One way to write the layers. Both functions take (x, kernel, bias) and end in a ReLU.

    ``dense``: (batch, in), (in, out), (out,) -> (batch, out).
    ``conv``: (batch, h, w, in), (3, 3, in, out), (out,) -> (batch, h - 2, w - 2, out).
    ``remapper``: whether the plug-in may fuse operations.
    """

    layers: Literal["stock", "safe"]
    dense: Callable[[Any, Any, Any], Any]
    conv: Callable[[Any, Any, Any], Any]
    remapper: bool = True

    def __str__(self) -> str:
        return self.layers if self.remapper else f"{self.layers} without the remapper"

    def choose(self) -> None:
        """Set this process up for the form. A user's choice of the remapper stays."""
        if not self.remapper:
            os.environ.setdefault(SWITCH, "1")


def forms() -> tuple[Form, ...]:
    """All known forms, the framework's own first."""
    import tensorflow as tf

    nn = tf.nn
    stock = Form(
        "stock",
        lambda x, kernel, bias: nn.relu(nn.bias_add(tf.matmul(x, kernel), bias)),
        lambda x, kernel, bias: nn.relu(nn.bias_add(nn.conv2d(x, kernel, 1, "VALID"), bias)),
    )
    return (
        stock,
        replace(stock, remapper=False),
        Form(
            "safe",
            lambda x, kernel, bias: nn.relu(dense_product(x, kernel, bias)),
            lambda x, kernel, bias: nn.relu(convolution(x, kernel, bias, 1, "valid")),
        ),
    )


def right_form(candidates: tuple[Form, ...]) -> Literal["stock", "safe"]:
    """Name of the first form that computes correctly on the current device, for which this process
    is then set up.

    Raises:
        WrongResult: none does; the message gives the deviations.
    """
    deviations: dict[str, float] = {}
    for form in candidates:
        with _as_it_was():
            form.choose()
            deviations[str(form)] = deviation(form)
        if deviations[str(form)] <= TOLERANCE:
            form.choose()
            return form.layers
    raise WrongResult(f"dense and convolution layers deviate from NumPy by {deviations}")


def deviation(form: Form) -> float:
    """Largest relative deviation from NumPy over several shapes; infinite if one is not finite."""
    import tensorflow as tf

    random = np.random.default_rng(0)

    def draw(*shape: int) -> Array:
        return random.uniform(-1, 1, shape).astype(np.float32)

    worst = 0.0
    for rows, inputs, units in ((4, 8, 8), (64, 576, 64), (128, 784, 512)):
        x, kernel, bias = draw(rows, inputs), draw(inputs, units), draw(units)
        output = tf.function(form.dense)(*map(tf.constant, (x, kernel, bias))).numpy()
        worst = max(worst, _relative(output, np.maximum(x @ kernel + bias, 0)))
    for side, channels, filters in ((6, 1, 8), (13, 32, 64)):
        x, kernel, bias = (
            draw(8, side, side, channels),
            draw(3, 3, channels, filters),
            draw(filters),
        )
        output = tf.function(form.conv)(*map(tf.constant, (x, kernel, bias))).numpy()
        worst = max(worst, _relative(output, np.maximum(_convolve(x, kernel) + bias, 0)))
    return worst


@contextmanager
def _as_it_was() -> Iterator[None]:
    before = os.environ.get(SWITCH)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SWITCH, None)


def _convolve(x: Array, kernel: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[:2], axis=(1, 2))
    return np.asarray(np.einsum("nhwcij,ijcf->nhwf", windows, kernel, optimize=True), np.float32)


def _relative(values: Array, expected: Array) -> float:
    worst = float(np.abs(values - expected).max() / np.abs(expected).max())
    return worst if np.isfinite(worst) else float("inf")
