"""Faults in an optimiser."""

from collections.abc import Callable
from typing import Any

from bench_agent.engines.seam import Data
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Optimizer, Workload
from bench_protocol.training.reading import mean_square, restarted

from ..fault import Fault, Job, Plant, Setup, changed_workload, patched

DENSE = "mnist-dense"
JAX, TORCH, MLX, TF = (Setup(DENSE, name) for name in ("jax", "torch", "mlx", "tensorflow"))
CNN_NAIVE = Setup("mnist-cnn", "torch", "naive")
HALF = Setup(DENSE, "torch", precision="mixed_bfloat16")


def settings(kinds: str, change: Callable[[Any], dict[str, float]]) -> Plant:
    """Optimisers of these kinds get other settings."""

    def other(workload: Workload, cell: Cell, weights: Weights, data: Data) -> Job:
        optimizer: Optimizer = workload.optimizer
        if optimizer.kind in kinds.split():
            optimizer = optimizer.model_copy(update=change(optimizer))
            workload = changed_workload(workload, optimizer=optimizer)
        return workload, cell, weights, data

    return lambda here: here.jobs(other)


def epsilon(value: float) -> Plant:
    return settings("adam rmsprop", lambda _: {"epsilon": value})


def rate(factor: float) -> Plant:
    return settings(
        "adam rmsprop sgd", lambda optimizer: {"learning_rate": optimizer.learning_rate * factor}
    )


def no_bias_correction(right: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def update(settings: Any, parameters: Any, state: Any, gradients: Any, number: Any) -> Any:
        if settings.kind != "adam":
            return right(settings, parameters, state, gradients, number)
        beta_1, beta_2, rate = settings.beta_1, settings.beta_2, settings.learning_rate
        means, squares = state
        means = jax.tree.map(lambda m, g: beta_1 * m + (1 - beta_1) * g, means, gradients)
        squares = jax.tree.map(lambda v, g: beta_2 * v + (1 - beta_2) * g * g, squares, gradients)
        parameters = jax.tree.map(
            lambda w, m, v: w - rate * m / (jnp.sqrt(v) + settings.epsilon),
            parameters, means, squares,
        )  # fmt: skip
        return parameters, (means, squares)

    return update


def gradient_zero(index: int) -> Plant:
    """PyTorch: one parameter has no gradient."""

    def change(session: Any) -> None:
        parameter = list(session._model.parameters())[index]
        parameter.register_hook(lambda gradient: gradient * 0)

    return lambda here: here.sessions(change)


def epsilon_outside(settings: Any, parameters: Any, foreach: bool) -> Any:
    """PyTorch's own RMSprop."""
    import torch

    class OwnRMSprop(torch.optim.RMSprop):
        def restart(self, first: bool) -> None:
            for state in self.state.values():
                state["square_avg"].fill_(mean_square(first))
                state["step"].fill_(restarted(int(state["step"]), first))

    return OwnRMSprop(parameters, settings.learning_rate, alpha=settings.rho, eps=settings.epsilon)


def accumulated(session: Any) -> None:
    """PyTorch: gradients are never set to zero."""
    session._optimizer.zero_grad = lambda set_to_none=True: None


JAX_UPDATE = "engines/jax/optimizer.py update"
TORCH_STEP = "engines/torch/sessions.py"
FAULTS = (
    Fault("A1", "Adam with epsilon 1e-8", JAX_UPDATE, JAX, epsilon(1e-8)),
    Fault("A2", "Adam without bias correction", JAX_UPDATE, JAX,
          patched("jax.optimizer:update", no_bias_correction)),
    Fault(
        "A3", "RMSprop with rho 0.99", "engines/torch/optimizer.py", CNN_NAIVE,
        settings("rmsprop", lambda _: {"rho": 0.99}),
    ),
    Fault("A5", "learning rate 1 % too high", "engines/mlx/optimizer.py", MLX, rate(1.01)),
    Fault("A6", "the first layer's gradient is zero", TORCH_STEP, TORCH, gradient_zero(0)),
    Fault(
        "F7", "RMSprop's epsilon outside the root", "engines/torch/optimizer.py", CNN_NAIVE,
        patched("torch.optimizer:_rmsprop", lambda _: epsilon_outside),
    ),
    Fault("H3", "Adam with epsilon 1e-5", TORCH_STEP, HALF, epsilon(1e-5)),
    Fault("H5", "learning rate 5 % too high", TORCH_STEP, HALF, rate(1.05)),
    Fault(
        "N1", "gradients add up: zero_grad left out", TORCH_STEP, TORCH,
        lambda here: here.sessions(accumulated),
    ),
)  # fmt: skip
