"""Keras' optimisers in PyTorch, whose own place epsilon differently.

Source of the formulas: ``bench_protocol.catalogue.workloads``.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import optim

from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop
from bench_protocol.training.reading import mean_square, restarted

ADAM_STEPS_AHEAD = 1000


def optimizer(settings: Optimizer, parameters: Sequence[Any], *, fast: bool) -> Any:
    """A ``torch.optim.Optimizer`` that computes Keras' formula, with ``restart`` for its state.
    ``fast``: fused kernels or operations over all parameters at once; else PyTorch chooses."""
    fused = fast or None
    match settings:
        case RMSprop():
            return _rmsprop(settings, parameters, foreach=fast)
        case Adam():
            return _adam(settings, parameters, fused)
        case SGD():
            return _sgd(settings, parameters, fused)


def own_step_count(optimizer: Any) -> int | None:
    """The updates that an optimiser counted itself; None for plain SGD, which counts none."""
    if isinstance(counted := getattr(optimizer, "step_count", None), int):
        return counted
    states = [state for state in optimizer.state.values() if "step" in state]
    return int(states[0]["step"]) if states else None


def _rmsprop(settings: RMSprop, parameters: Sequence[Any], *, foreach: bool) -> Any:
    """PyTorch's RMSprop adds epsilon outside the root; Keras' inside."""
    rate, rho, epsilon = settings.learning_rate, settings.rho, settings.epsilon

    class KerasRMSprop(torch.optim.Optimizer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(parameters, {})
            self._parameters = list(parameters)
            self._squares = [torch.zeros_like(parameter) for parameter in parameters]
            self.step_count = 0

        def restart(self, first: bool) -> None:
            self.step_count = restarted(self.step_count, first)
            for square in self._squares:
                square.fill_(mean_square(first))

        @torch.no_grad()  # type: ignore[untyped-decorator, unused-ignore]
        def step(self, closure: None = None) -> None:
            self.step_count += 1
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


def _sgd(settings: SGD, parameters: Sequence[Any], fused: bool | None) -> Any:
    """u <- momentum u - lr g; w <- w + u is PyTorch's rule with u = -lr buffer."""

    class RestartedSGD(optim.SGD):  # type: ignore[misc]
        def restart(self, first: bool) -> None:
            for state in self.state.values():
                if (buffer := state.get("momentum_buffer")) is not None:
                    buffer.zero_()

    return RestartedSGD(
        parameters,
        settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        fused=fused,
    )


def _adam(settings: Adam, parameters: Sequence[Any], fused: bool | None) -> Any:
    """PyTorch's Adam, with a rate and epsilon for each step that turn its formula into Keras'.
    The rate is the workload's but for rounding, so that it is the decay's too."""
    betas = (settings.beta_1, settings.beta_2)
    decayed = [values for values in parameters if values.ndim > 1]
    kept = [values for values in parameters if values.ndim < 2]
    groups = [
        {"params": some, "weight_decay": decay}
        for some, decay in ((decayed, settings.weight_decay), (kept, 0.0))
        if some
    ]
    plain = optim.AdamW if settings.weight_decay else optim.Adam

    class KerasAdam(plain):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__(groups, settings.learning_rate, betas, settings.epsilon, fused=fused)
            for values in parameters:
                # PyTorch makes the same in the first step. Its fused kernels read the number of the
                # step on the device.
                self.state[values] = {
                    "step": torch.zeros((), device=values.device if fused else "cpu"),
                    "exp_avg": torch.zeros_like(values),
                    "exp_avg_sq": torch.zeros_like(values),
                }
            self._values = _endless_adam_values(settings, 1)
            self.register_step_pre_hook(self._take_values)

        def _take_values(self, *_: Any) -> None:
            rate, epsilon = next(self._values)
            for group in self.param_groups:
                group["lr"], group["eps"] = rate, epsilon

        def restart(self, first: bool) -> None:
            for state in self.state.values():
                state["step"].fill_(restarted(int(state["step"]), first))
                state["exp_avg"].zero_()
                state["exp_avg_sq"].fill_(mean_square(first))
            self._values = _endless_adam_values(settings, int(state["step"]) + 1)

    return KerasAdam()


def _endless_adam_values(settings: Adam, first_step: int) -> Iterator[tuple[float, float]]:
    """Rates and epsilons, computed for many steps at once. One step at a time cost 50 microseconds,
    1 % of a small model's step, because the steps' data fills the caches."""
    for first in itertools.count(first_step, ADAM_STEPS_AHEAD):
        yield from torch_adam_values(settings, np.arange(first, first + ADAM_STEPS_AHEAD))


def torch_adam_values(settings: Adam, steps: NDArray[np.int64]) -> Iterator[tuple[float, float]]:
    """Learning rate and epsilon of each step for PyTorch's form of Adam.

    PyTorch: w <- w - lr / c_1 m / (sqrt(v) / sqrt(c_2) + eps), c_i = 1 - beta_i^t in double
    precision. Keras: w <- w - alpha m / (sqrt(v) + epsilon), alpha rounded in single precision.

    Args:
        steps: t, from 1.
    """
    numbers = steps.astype(np.float32)
    single_1 = np.float32(1) - np.float32(settings.beta_1) ** numbers
    single_2 = np.float32(1) - np.float32(settings.beta_2) ** numbers
    alpha = np.float32(settings.learning_rate) * np.sqrt(single_2) / single_1
    roots = np.sqrt(1 - settings.beta_2**steps)
    rates = alpha.astype(np.float64) * (1 - settings.beta_1**steps) / roots
    return zip(rates.tolist(), (settings.epsilon / roots).tolist(), strict=True)
