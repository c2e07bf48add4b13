"""Keras' optimisers as JAX functions."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop

from .model import Parameters


def initial_state(optimizer: Optimizer, parameters: Parameters, mean_square: float) -> Any:
    """The optimiser's state: velocities and means of 0, and mean squares of ``mean_square``."""
    match optimizer:
        case RMSprop():
            fills: tuple[float, ...] = (mean_square,)
        case Adam():
            fills = (0.0, mean_square)
        case SGD():
            fills = (0.0,)
    return tuple(
        jax.tree.map(lambda values, fill=fill: jnp.full_like(values, fill), parameters)
        for fill in fills
    )


def update(settings: Optimizer, parameters: Any, state: Any, gradients: Any, number: Any) -> Any:
    """New parameters and state after step ``number``, from 1, by Keras' optimiser (formulas:
    ``bench_protocol.catalogue.workloads``)."""
    match settings:
        case RMSprop():
            rate, rho, epsilon = settings.learning_rate, settings.rho, settings.epsilon
            squares = jax.tree.map(lambda v, g: rho * v + (1 - rho) * g * g, state[0], gradients)
            parameters = jax.tree.map(
                lambda w, v, g: w - rate * g / jnp.sqrt(v + epsilon), parameters, squares, gradients
            )
            return parameters, (squares,)
        case Adam():
            beta_1, beta_2, epsilon = settings.beta_1, settings.beta_2, settings.epsilon
            t = jnp.asarray(number, jnp.float32)
            power_1, power_2 = jnp.float32(beta_1) ** t, jnp.float32(beta_2) ** t
            alpha = settings.learning_rate * jnp.sqrt(1 - power_2) / (1 - power_1)
            means = jax.tree.map(lambda m, g: m + (g - m) * (1 - beta_1), state[0], gradients)
            squares = jax.tree.map(lambda v, g: v + (g * g - v) * (1 - beta_2), state[1], gradients)
            if settings.weight_decay:
                parameters = jax.tree.map(partial(_decayed, settings), parameters)
            parameters = jax.tree.map(
                lambda w, m, v: w - alpha * m / (jnp.sqrt(v) + epsilon), parameters, means, squares
            )
            return parameters, (means, squares)
        case SGD():
            rate, momentum = settings.learning_rate, settings.momentum
            if decay := settings.weight_decay:
                gradients = jax.tree.map(lambda g, w: g + decay * w, gradients, parameters)
            velocities = jax.tree.map(lambda u, g: momentum * u - rate * g, state[0], gradients)
            return jax.tree.map(lambda w, u: w + u, parameters, velocities), (velocities,)


def _decayed(settings: Adam, weight: Any) -> Any:
    if weight.ndim < 2:
        return weight
    return weight * (1 - settings.learning_rate * settings.weight_decay)
