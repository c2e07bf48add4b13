"""Keras' optimisers with all that changes from step to step on the device.

A CUDA graph repeats the same operations with the same numbers. So the number of the step and Adam's
rate are tensors, and nothing is read from the host. Source of the formulas:
``bench_protocol.catalogue.workloads``.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop
from bench_protocol.training.reading import mean_square, restarted

# Adam's bias corrections are 1 from here on: 0.5 ** ROUNDED is below a rounding of float32.
ROUNDED = 25
# PyTorch's fused kernel divides by 1 - beta^t of its own t. With this one the quotient is 1.
NO_CORRECTION = 1e9


class DeviceOptimizer:
    """The part of ``torch.optim.Optimizer`` that a training step uses."""

    def __init__(self, settings: Optimizer, parameters: Sequence[Any]) -> None:
        self._settings = settings
        self._parameters = list(parameters)
        tensors = 2 if isinstance(settings, Adam) else 1
        self._state = [[torch.zeros_like(p) for p in self._parameters] for _ in range(tensors)]
        device = self._parameters[0].device
        self._number = torch.zeros(1, dtype=torch.int64, device=device)
        if isinstance(settings, Adam):
            self._rates = torch.from_numpy(adam_rates(settings)).to(device)
            steps = torch.full((), NO_CORRECTION, dtype=torch.float32, device=device)
            self._steps = [steps] * len(self._parameters)

    @property
    def step_count(self) -> int:
        """The number of updates, and ``COUNTED_ON`` for each restart."""
        return int(self._number.item())

    def tensors(self) -> list[Any]:
        return [self._number, *itertools.chain(*self._state)]

    def restart(self, first: bool) -> None:
        """Set the state for a restart, in place: a graph holds these tensors."""
        self._number.fill_(restarted(self.step_count, first))
        for tensors in self._state:
            for tensor in tensors:
                tensor.zero_()
        if not isinstance(self._settings, SGD):
            for square in self._state[-1]:
                square.fill_(mean_square(first))

    def zero_grad(self, set_to_none: bool = True) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def step(self) -> None:
        with torch.no_grad():
            gradients = [parameter.grad for parameter in self._parameters]
            match self._settings:
                case RMSprop():
                    self._rmsprop(self._settings, gradients)
                case Adam():
                    self._adam(self._settings, gradients)
                case SGD():
                    (velocities,) = self._state
                    if decay := self._settings.weight_decay:
                        torch._foreach_add_(gradients, self._parameters, alpha=decay)
                    torch._foreach_mul_(velocities, self._settings.momentum)
                    torch._foreach_add_(velocities, gradients, alpha=-self._settings.learning_rate)
                    torch._foreach_add_(self._parameters, velocities)
            self._number += 1

    def _rmsprop(self, settings: RMSprop, gradients: list[Any]) -> None:
        (squares,) = self._state
        torch._foreach_mul_(squares, settings.rho)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - settings.rho)
        roots = torch._foreach_add(squares, settings.epsilon)
        torch._foreach_sqrt_(roots)
        torch._foreach_addcdiv_(self._parameters, gradients, roots, -settings.learning_rate)

    def _adam(self, settings: Adam, gradients: list[Any]) -> None:
        means, squares = self._state
        if settings.weight_decay:
            matrices = [values for values in self._parameters if values.ndim > 1]
            # Not by the fused kernel, which would take the corrected rate.
            torch._foreach_mul_(matrices, 1 - settings.learning_rate * settings.weight_decay)
        which = self._number.clamp(max=len(self._rates) - 1)
        torch._fused_adam_(
            self._parameters,
            gradients,
            means,
            squares,
            [],
            self._steps,
            lr=self._rates.index_select(0, which).view(()),
            beta1=settings.beta_1,
            beta2=settings.beta_2,
            weight_decay=0.0,
            eps=settings.epsilon,
            amsgrad=False,
            maximize=False,
        )


def adam_rates(settings: Adam) -> Any:
    """Keras' rate of each step, alpha sqrt(1 - beta_2^t) / (1 - beta_1^t), t from 1 on, until it
    no longer changes. float32, in its arithmetic."""
    slowest = max(settings.beta_1, settings.beta_2)
    steps = np.arange(1, 2 + math.ceil(ROUNDED * math.log(2) / -math.log(slowest)))
    numbers = steps.astype(np.float32)
    single_1 = np.float32(1) - np.float32(settings.beta_1) ** numbers
    single_2 = np.float32(1) - np.float32(settings.beta_2) ** numbers
    return np.float32(settings.learning_rate) * np.sqrt(single_2) / single_1
