"""Keras' optimisers in PyTorch: its own place epsilon elsewhere.

Source of the formulas: ``bench_protocol.workloads``.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench_protocol.workloads import SGD, Adam, Optimizer, RMSprop


def optimizer(settings: Optimizer, parameters: Sequence[Any], *, fast: bool) -> Any:
    """A ``torch.optim.Optimizer`` that computes Keras' formula.

    Args:
        fast: use PyTorch's fused kernels, or operations over all parameters at once; else leave
            the choice to PyTorch, as who writes no option does.
    """
    fused = fast or None
    match settings:
        case RMSprop():
            return _rmsprop(settings, parameters, foreach=fast)
        case Adam():
            return _adam(settings, parameters, fused)
        case SGD():
            from torch import optim

            # u <- momentum u - lr g; w <- w + u is PyTorch's rule with u = -lr buffer.
            return optim.SGD(
                parameters, settings.learning_rate, momentum=settings.momentum, fused=fused
            )


def _rmsprop(settings: RMSprop, parameters: Sequence[Any], *, foreach: bool) -> Any:
    """PyTorch's adds epsilon outside the root."""
    import torch

    rate, rho, epsilon = settings.learning_rate, settings.rho, settings.epsilon

    class KerasRMSprop(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(parameters, {})
            self._parameters = list(parameters)
            self._squares = [torch.zeros_like(parameter) for parameter in parameters]

        @torch.no_grad()  # type: ignore[untyped-decorator, unused-ignore]
        def step(self, closure: None = None) -> None:
            gradients = [parameter.grad for parameter in self._parameters]
            if foreach:
                torch._foreach_mul_(self._squares, rho)
                torch._foreach_addcmul_(self._squares, gradients, gradients, 1 - rho)
                roots = torch._foreach_add(self._squares, epsilon)
                torch._foreach_sqrt_(roots)
                torch._foreach_addcdiv_(self._parameters, gradients, roots, -rate)
                return
            for parameter, square, gradient in zip(
                self._parameters, self._squares, gradients, strict=True
            ):
                square.mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
                parameter.addcdiv_(gradient, square.add(epsilon).sqrt_(), value=-rate)

    return KerasRMSprop()


def _adam(settings: Adam, parameters: Sequence[Any], fused: bool | None) -> Any:
    """PyTorch's with a rate and an epsilon for each step that make its formula Keras'."""
    import torch

    betas = (settings.beta_1, settings.beta_2)
    adam = torch.optim.Adam(
        parameters, settings.learning_rate, betas, settings.epsilon, fused=fused
    )
    steps = itertools.count(1)

    def keras_values(*_: Any) -> None:
        adam.param_groups[0].update(torch_adam_values(settings, next(steps)))

    adam.register_step_pre_hook(keras_values)
    return adam


def torch_adam_values(settings: Adam, step: int) -> dict[str, float]:
    """Learning rate and epsilon of a step for PyTorch's form of Adam.

    PyTorch: w <- w - lr / c_1 m / (sqrt(v) / sqrt(c_2) + eps), c_i = 1 - beta_i^t in double
    precision. Keras: w <- w - alpha m / (sqrt(v) + epsilon), alpha rounded in single precision.

    Args:
        step: t, from 1.
    """
    number = np.float32(step)
    single_1 = np.float32(1) - np.float32(settings.beta_1) ** number
    single_2 = np.float32(1) - np.float32(settings.beta_2) ** number
    alpha = np.float32(settings.learning_rate) * np.sqrt(single_2) / single_1
    root = math.sqrt(1 - settings.beta_2**step)
    return {
        "lr": float(alpha) * (1 - settings.beta_1**step) / root,
        "eps": settings.epsilon / root,
    }
