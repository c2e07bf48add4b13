"""Keras' optimisers as TensorFlow's fused operations, one for each variable.

Source of the formulas: ``bench_protocol.catalogue.workloads``, with Keras' terms. TensorFlow's
``ResourceApply...`` kernels compute exactly these, in one pass over a variable.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop
from bench_protocol.training.reading import mean_square

Update = Callable[[Sequence[Any], Any], None]
State = list[tuple[Any, Any, Any]]
"""Each variable with two of the optimiser's, which start at zero: RMSprop's mean square, Adam's
mean and mean square, SGD's velocity come first."""


def state_of(variables: Sequence[Any]) -> State:
    zeros = [[tf.Variable(tf.zeros_like(variable)) for variable in variables] for _ in range(2)]
    return list(zip(variables, *zeros, strict=True))


def restart(optimizer: Optimizer, state: State, *, fused: bool, first: bool = False) -> None:
    """Set the optimiser's variables for a restart. ``fused``: as in :func:`update`."""
    match optimizer:
        case RMSprop():
            fills = (mean_square(first), 0.0)
        case Adam():
            excess = _excess(optimizer.beta_2) if fused else 1.0
            fills = (0.0, excess * mean_square(first))
        case SGD():
            fills = (0.0, 0.0)
    for _, *kept in state:
        for variable, fill in zip(kept, fills, strict=True):
            variable.assign(tf.fill(variable.shape, tf.constant(fill, variable.dtype)))


def update(optimizer: Optimizer, state: State, *, fused: bool) -> Update:
    """A function (gradients, number of this step as float32 scalar) that updates the variables;
    ``fused``: by the fused kernels, which do not exist for every kind of device."""
    match optimizer:
        case RMSprop():
            return _rmsprop(optimizer, state, fused)
        case Adam():
            return _adam(optimizer, state, fused)
        case SGD():
            return _sgd(optimizer, state, fused)


def _rmsprop(settings: RMSprop, state: State, fused: bool) -> Update:
    rate, rho, epsilon = settings.learning_rate, settings.rho, settings.epsilon

    def apply(gradients: Sequence[Any], number: Any) -> None:
        for (variable, square, momentum), gradient in zip(state, gradients, strict=True):
            if fused:
                tf.raw_ops.ResourceApplyRMSProp(
                    var=variable.handle,
                    ms=square.handle,
                    mom=momentum.handle,
                    lr=rate,
                    rho=rho,
                    momentum=0.0,
                    epsilon=epsilon,
                    grad=gradient,
                )
                continue
            mean = square.assign(rho * square + (1 - rho) * tf.square(gradient))
            variable.assign_sub(rate * gradient / tf.sqrt(mean + epsilon))

    return apply


def _adam(settings: Adam, state: State, fused: bool) -> Update:
    rate, epsilon = settings.learning_rate, settings.epsilon
    beta_1, beta_2 = settings.beta_1, settings.beta_2
    kept = 1 - rate * settings.weight_decay
    excess_1, excess_2 = _excess(beta_1), _excess(beta_2)
    fused_rate = rate * math.sqrt(excess_2) / excess_1
    fused_epsilon = epsilon * math.sqrt(excess_2)

    def apply(gradients: Sequence[Any], number: Any) -> None:
        power_1 = tf.pow(tf.constant(beta_1, tf.float32), number)
        power_2 = tf.pow(tf.constant(beta_2, tf.float32), number)
        alpha = rate * tf.sqrt(1 - power_2) / (1 - power_1)
        for (variable, mean, square), gradient in zip(state, gradients, strict=True):
            if kept != 1 and len(variable.shape) > 1:
                variable.assign(variable * kept)
            if fused:
                tf.raw_ops.ResourceApplyAdam(
                    var=variable.handle,
                    m=mean.handle,
                    v=square.handle,
                    beta1_power=power_1,
                    beta2_power=power_2,
                    lr=fused_rate,
                    beta1=beta_1,
                    beta2=beta_2,
                    epsilon=fused_epsilon,
                    grad=gradient,
                )
                continue
            first = mean.assign_add((gradient - mean) * (1 - beta_1))
            second = square.assign_add((tf.square(gradient) - square) * (1 - beta_2))
            variable.assign_sub(first * alpha / (tf.sqrt(second) + epsilon))

    return apply


def _excess(beta: float) -> float:
    """How many times as large as Keras' a mean of the fused kernel is, which computes 1 - beta in
    float32 (4.7e-5 more for 0.999); a deep network under Adam makes 1e-4 of that."""
    return float(1 - np.float32(beta)) / (1 - beta)


def _sgd(settings: SGD, state: State, fused: bool) -> Update:
    rate, momentum = settings.learning_rate, settings.momentum

    def apply(gradients: Sequence[Any], number: Any) -> None:
        for (variable, velocity, _), gradient in zip(state, gradients, strict=True):
            if settings.weight_decay:
                gradient += settings.weight_decay * variable
            if fused:
                tf.raw_ops.ResourceApplyKerasMomentum(
                    var=variable.handle,
                    accum=velocity.handle,
                    lr=rate,
                    grad=gradient,
                    momentum=momentum,
                )
                continue
            variable.assign_add(velocity.assign(momentum * velocity - rate * gradient))

    return apply
