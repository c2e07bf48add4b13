"""Faults of dropout, in every session; traces train without it."""

from collections.abc import Callable
from functools import partial
from typing import Any

from bench_agent.engines.seam import Data
from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ..fault import Fault, Job, Setup, changed_workload, patched

TORCH, TF, MLX, JAX = (Setup("fashion-mlp", name) for name in ("torch", "tensorflow", "mlx", "jax"))


def torch_off(session: Any) -> None:
    _torch_layers(session, lambda layer: layer.eval())


def torch_one_mask(session: Any) -> None:
    """One mask for all samples of a batch."""

    def one(layer: Any) -> None:
        import torch

        def forward(x: Any) -> Any:
            return x * torch.nn.functional.dropout(torch.ones_like(x[:1]), layer.p, True)

        layer.forward = forward

    _torch_layers(session, one)


def torch_not_scaled(session: Any) -> None:
    def not_scaled(layer: Any) -> None:
        right = layer.forward
        layer.forward = lambda x: right(x) * (1 - layer.p)

    _torch_layers(session, not_scaled)


def torch_off_later(session: Any) -> None:
    """Off in blocks after the warm-up's first steps; on while nothing is timed."""
    train, trained = session.train_block, [0]

    def block(steps: int) -> None:
        on = trained[0] < 64
        trained[0] += steps
        _torch_layers(session, lambda layer: layer.train(on))
        train(steps)
        _torch_layers(session, lambda layer: layer.train())

    session.train_block = block


def _torch_layers(session: Any, change: Callable[[Any], Any]) -> None:
    import torch

    for layer in session._model.modules():
        if isinstance(layer, torch.nn.Dropout):
            change(layer)


def mlx_not_captured(session: Any) -> None:
    """The compiled step does not know the random state: it repeats its first mask."""
    import mlx.core as mx

    from bench_agent.engines.mlx import model

    session._state = session._state[:2]
    capture = partial(mx.compile, inputs=session._state, outputs=session._state)
    session._step = capture(session._plain_step)
    session._dropout_passes = capture(partial(model.dropout_passes, session._model))


def jax_repeats(right: Any) -> Any:
    """The number of the step does not enter the key."""

    def forward(*arguments: Any, **named: Any) -> Any:
        apply = right(*arguments, **named)
        return lambda parameters, x, key, number: apply(parameters, x, key, 0)

    return forward


def jax_step_repeats(right: Any) -> Any:
    """As before, in the compiled step alone: what the witness reads has other masks."""

    def logits(self: Any, parameters: Any, x: Any, key: Any, number: Any = 0, *more: Any) -> Any:
        traced = not isinstance(number, int)
        return right(self, parameters, x, key, 1 if traced else number, *more)

    return logits


def other_rate(workload: Workload, cell: Cell, weights: Weights, data: Data) -> Job:
    layers = tuple(
        layer.model_copy(update={"rate": 0.5}) if isinstance(layer, Dropout) else layer
        for layer in workload.layers
    )
    return changed_workload(workload, layers=layers), cell, weights, data


TORCH_LAYER = "engines/torch/model.py"
TF_LAYER, TF_DROPOUT = "engines/tensorflow/dropout.py", "tensorflow.dropout:Dropout"
FAULTS = tuple(
    Fault(name, words, where, setup, plant, in_timed_loop=True)
    for name, words, where, setup, plant in (
        ("B8", "dropout does nothing", TORCH_LAYER, TORCH,
         lambda here: here.sessions(torch_off)),
        ("B9", "dropout does nothing", TF_LAYER, TF,
         patched(f"{TF_DROPOUT}.__call__", lambda _: lambda self, x, rate: x)),
        ("B10", "dropout's mask repeats: state not captured", "engines/mlx/sessions.py", MLX,
         lambda here: here.sessions(mlx_not_captured)),
        ("B11", "dropout's mask repeats", "engines/jax/model.py forward", JAX,
         patched("jax.model:forward", jax_repeats)),
        ("B12", "dropout rate 0.5 in place of 0.2", "engines/jax/model.py", JAX,
         lambda here: here.jobs(other_rate)),
        ("N20", "dropout's mask repeats: constant counter", TF_LAYER, TF,
         patched(f"{TF_DROPOUT}.__init__", lambda right: lambda self, step: right(self, 1))),
        ("N21", "dropout's mask repeats in the step alone", "engines/jax/sessions.py", JAX,
         patched("jax.sessions:TunedSession._logits", jax_step_repeats)),
        ("N22", "one dropout mask for all samples", TORCH_LAYER, TORCH,
         lambda here: here.sessions(torch_one_mask)),
        ("N23", "dropout without scaling", TORCH_LAYER, TORCH,
         lambda here: here.sessions(torch_not_scaled)),
        ("N24", "dropout off after 64 steps", TORCH_LAYER, TORCH,
         lambda here: here.sessions(torch_off_later)),
    )
)  # fmt: skip
