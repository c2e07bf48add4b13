"""Faults of dropout."""

from collections.abc import Callable
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


def _torch_layers(session: Any, change: Callable[[Any], Any]) -> None:
    import torch

    for layer in session._model.modules():
        if isinstance(layer, torch.nn.Dropout):
            change(layer)


def mlx_not_captured(session: Any) -> None:
    """The compiled step does not know the random state: it repeats its first mask."""
    import mlx.core as mx

    state = session._state[:2]
    session._new_step = lambda: mx.compile(session._plain_step, inputs=state, outputs=state)
    session._step = session._new_step()


def jax_repeats(right: Any) -> Any:
    """The number of the step does not enter the key."""

    def forward(*arguments: Any, **named: Any) -> Any:
        apply = right(*arguments, **named)
        return lambda parameters, x, key, number, training: apply(parameters, x, key, 0, training)

    return forward


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
    )
)  # fmt: skip
