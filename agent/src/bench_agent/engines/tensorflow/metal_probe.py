"""Metal probe: does this device compute layers and optimisers correctly, and in which form?

tensorflow-metal 1.x fuses product, bias and ReLU into an operation that computes wrongly in graph
mode (keras-team/tf-keras issue 140, tensorflow issue 62137). It also fuses the operations of
optimisers (FindAdam, FindRMSprop, FindSGD and others in libmetal_plugin.dylib 1.2.0). The probe
runs each form as the training would, inside a graph, and compares with NumPy.

The plug-in's optimiser of graphs reads ``TURN_OFF_REMAPPER`` (in the same library): with "1" it
fuses nothing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop
from bench_protocol.recompute.optimizers import Update
from bench_protocol.training.reading import COUNTED_ON

from ..seam import WrongResult
from . import update
from .keras_layers import convolution, dense_product
from .keras_model import optimizer, restart

# float32 products of some hundred terms agree to about 1e-6; the wrong fusion differs far more.
TOLERANCE = 1e-4
# Adam's bias correction amplifies the rounding of beta^t by up to a thousand. Another formula
# differs by tens of per cent.
UPDATE_TOLERANCE = 1e-2
# The optimisers of the catalogue.
OPTIMIZERS: tuple[Optimizer, ...] = (RMSprop(), Adam(), SGD())
# Gradients far above and near epsilon, which decides where it is added.
GRADIENT_SCALES = (1.0, 1e-3)
UPDATES, WEIGHTS = 3, 256
SWITCH = "TURN_OFF_REMAPPER"
Array = NDArray[np.float32]
Train = Callable[[Optimizer, Array], Array]
"""(settings, gradients (steps, weights)) -> weights (weights,), which start at zero."""


@dataclass(frozen=True)
class Form:
    """One way to write the training. Both functions of layers take (x, kernel, bias) and end in a
    ReLU.

    ``dense``: (batch, in), (in, out), (out,) -> (batch, out).
    ``conv``: (batch, h, w, in), (3, 3, in, out), (out,) -> (batch, h - 2, w - 2, out).
    ``train``: the optimiser's updates, in a graph.
    ``remapper``: whether the plug-in may fuse operations.
    """

    layers: Literal["stock", "safe"]
    dense: Callable[[Any, Any, Any], Any]
    conv: Callable[[Any, Any, Any], Any]
    train: Train
    remapper: bool = True

    def __str__(self) -> str:
        return self.layers if self.remapper else f"{self.layers} without the remapper"

    def choose(self) -> None:
        """Set this process up for the form. A user's choice of the remapper stays."""
        if not self.remapper:
            os.environ.setdefault(SWITCH, "1")


def forms(*, tuned: bool = False) -> tuple[Form, ...]:
    """All known forms, the framework's own first. ``tuned``: the updates are those of ``tuned``,
    composed of small operations; else Keras' own."""
    nn = tf.nn
    train = composed_updates if tuned else keras_updates
    stock = Form(
        "stock",
        lambda x, kernel, bias: nn.relu(nn.bias_add(tf.matmul(x, kernel), bias)),
        lambda x, kernel, bias: nn.relu(nn.bias_add(nn.conv2d(x, kernel, 1, "VALID"), bias)),
        train,
    )
    safe = Form(
        "safe",
        lambda x, kernel, bias: nn.relu(dense_product(x, kernel, bias)),
        lambda x, kernel, bias: nn.relu(convolution(x, kernel, bias, 1, "VALID")),
        train,
    )
    return stock, replace(stock, remapper=False), safe, replace(safe, remapper=False)


def right_form(candidates: tuple[Form, ...]) -> Literal["stock", "safe"]:
    """Name of the first form that computes correctly on the current device, for which this process
    is then set up.

    Raises:
        WrongResult: none does; the message gives the deviations.
    """
    wrong: list[str] = []
    for form in candidates:
        with _as_it_was():
            form.choose()
            problem = why_wrong(form)
        if problem is None:
            form.choose()
            return form.layers
        wrong.append(f"{form}: {problem}")
    raise WrongResult(f"TensorFlow deviates from NumPy; {'; '.join(wrong)}")


def why_wrong(form: Form) -> str | None:
    """The deviation of a form from NumPy in words; None if it computes correctly."""
    off = deviation(form)
    if off > TOLERANCE:
        return f"dense and convolution layers by {off:.1e}"
    for settings in OPTIMIZERS:
        off = update_deviation(form, settings)
        if off > UPDATE_TOLERANCE:
            return f"the updates of {type(settings).__name__} by {off:.1e}"
    return None


def deviation(form: Form) -> float:
    """Largest relative deviation of the layers from NumPy over several shapes; infinite if one is
    not finite."""
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


def update_deviation(form: Form, settings: Optimizer) -> float:
    """Largest relative deviation of an optimiser's updates from NumPy; infinite if one is not
    finite."""
    gradients = np.random.default_rng(0).normal(size=(UPDATES, WEIGHTS)).astype(np.float32)
    worst = 0.0
    for scale in GRADIENT_SCALES:
        scaled = gradients * np.float32(scale)
        expected = np.zeros(WEIGHTS)
        rule = Update(settings, expected)
        for gradient in scaled:
            rule.apply(gradient.astype(np.float64))
        worst = max(worst, _relative(form.train(settings, scaled), expected))
    return worst


def keras_updates(settings: Optimizer, gradients: Array) -> Array:
    """Train by Keras' own optimiser. See :data:`Train`."""
    weights = keras.Variable(np.zeros_like(gradients[0]), dtype="float32")
    chosen = optimizer(settings, [weights])
    chosen.build([weights])
    restart(chosen)
    step = tf.function(lambda gradient: chosen.apply([gradient], [weights]), autograph=False)
    for gradient in gradients:
        step(tf.constant(gradient))
    return np.asarray(weights.numpy())


def composed_updates(settings: Optimizer, gradients: Array) -> Array:
    """Train by the small operations of ``tuned``. See :data:`Train`."""
    weights = tf.Variable(np.zeros_like(gradients[0]))
    state = update.state_of([weights])
    update.restart(settings, state, fused=False)
    apply = update.update(settings, state, fused=False)
    step = tf.function(lambda gradient, number: apply([gradient], number), autograph=False)
    for number, gradient in enumerate(gradients, COUNTED_ON):
        step(tf.constant(gradient), tf.constant(float(number)))
    return np.asarray(weights.numpy())


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


def _relative(values: NDArray[Any], expected: NDArray[Any]) -> float:
    worst = float(np.abs(values - expected).max() / np.abs(expected).max())
    return worst if np.isfinite(worst) else float("inf")
