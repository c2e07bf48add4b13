"""Keras' optimisers in MLX, which places epsilon and the bias correction differently."""

from typing import Any

import mlx.core as mx
from mlx import optimizers
from mlx.utils import tree_map_with_path

from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop
from bench_protocol.training.reading import mean_square, restarted


class KerasRMSprop(optimizers.RMSprop):  # type: ignore[misc]
    def apply_single(self, gradient: Any, parameter: Any, state: Any) -> Any:
        mean = self.alpha * state["v"] + (1 - self.alpha) * mx.square(gradient)
        state["v"] = mean
        return parameter - self.learning_rate * gradient * mx.rsqrt(mean + self.eps)


class KerasAdam(optimizers.Adam):  # type: ignore[misc]
    decay = 0.0

    def apply_single(self, gradient: Any, parameter: Any, state: Any) -> Any:
        beta_1, beta_2 = self.betas
        number = self.step.astype(mx.float32)
        correction = mx.sqrt(1 - mx.power(beta_2, number)) / (1 - mx.power(beta_1, number))
        if self.decay and parameter.ndim > 1:
            parameter = parameter * (1 - self.learning_rate * self.decay)
        mean = beta_1 * state["m"] + (1 - beta_1) * gradient
        square = beta_2 * state["v"] + (1 - beta_2) * mx.square(gradient)
        state["m"], state["v"] = mean, square
        return parameter - self.learning_rate * correction * mean / (mx.sqrt(square) + self.eps)


class KerasSGD(optimizers.SGD):  # type: ignore[misc]
    decay = 0.0

    def apply_single(self, gradient: Any, parameter: Any, state: Any) -> Any:
        if self.decay:
            gradient = gradient + self.decay * parameter
        velocity = self.momentum * state["v"] - self.learning_rate * gradient
        state["v"] = velocity
        return parameter + velocity


def optimizer(settings: Optimizer) -> Any:
    rate = settings.learning_rate
    match settings:
        case RMSprop():
            return KerasRMSprop(rate, alpha=settings.rho, eps=settings.epsilon)
        case Adam():
            made = KerasAdam(rate, betas=[settings.beta_1, settings.beta_2], eps=settings.epsilon)
        case SGD():
            made = KerasSGD(rate, momentum=settings.momentum)
    made.decay = settings.weight_decay
    return made


def restart(settings: Optimizer, optimizer: Any, first: bool) -> None:
    """Set an optimiser's state for a restart, in its dictionary, because a compiled step holds
    it."""
    squares = not isinstance(settings, SGD)

    def filled(path: str, value: Any) -> Any:
        kind = path.rpartition(".")[2]
        if kind not in ("m", "v"):
            return (
                mx.array(restarted(int(value.item()), first), value.dtype)
                if path == "step"
                else value
            )
        return mx.full(
            value.shape, mean_square(first) if squares and kind == "v" else 0.0, value.dtype
        )

    optimizer.state.update(tree_map_with_path(filled, optimizer.state))
