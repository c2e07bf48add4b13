"""Faults of the timed session alone: every trace is honest."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bench_agent.engines.seam import Data
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ..fault import Fault, Job, Plant, Setup
from .model import MLP
from .optimiser import JAX, MLX, TF, TORCH

OTHER_SEED = "7" * 32


def job(change: Callable[[Workload, Cell, Weights, Data], Job]) -> Plant:
    return lambda here: here.jobs(change, timed_only=True)


def data(change: Callable[[Data], Data]) -> Plant:
    return job(lambda workload, cell, weights, data: (workload, cell, weights, change(data)))


def session(change: Callable[[Any], None]) -> Plant:
    return lambda here: here.sessions(change, timed_only=True)


def half_batch(workload: Workload, cell: Cell, weights: Weights, data: Data) -> Job:
    return workload, cell.model_copy(update={"batch_size": cell.batch_size // 2}), weights, data


def in_bfloat16(session: Any) -> None:
    """PyTorch's autocast, in a session that was opened in float32."""
    import torch

    session._half = torch.bfloat16


def mlx_in_bfloat16(session: Any) -> None:
    import mlx.core as mx

    session._compute = mx.bfloat16


def no_backward(session: Any) -> None:
    """The optimiser steps with gradients of zero."""

    def backward(loss: Any) -> None:
        for parameter in session._model.parameters():
            parameter.grad = parameter.detach() * 0

    session._backward = backward


def first_layer_frozen(session: Any) -> None:
    """No gradient of the first layer is computed."""
    layer = next(part for part in session._model if list(part.parameters()))
    whole = session._logits

    def logits(x: Any) -> Any:
        layer.requires_grad_(False)
        return whole(x)

    def backward(loss: Any) -> None:
        loss.backward()
        layer.requires_grad_(True)
        for parameter in layer.parameters():
            parameter.grad = parameter.detach() * 0

    session._logits, session._backward = logits, backward


def last_bias_fixed(session: Any) -> None:
    list(session._model.parameters())[-1].register_hook(lambda gradient: gradient * 0)


def half_resolution(data: Data) -> Data:
    small = data.train_x[:, ::2, ::2]
    return replace(data, train_x=small.repeat(2, axis=1).repeat(2, axis=2))


def other_seed(workload: Workload, cell: Cell, weights: Weights, data: Data) -> Job:
    order = seeded.order(len(data.order), 0, OTHER_SEED)
    weights = seeded.initial_weights(workload, OTHER_SEED)
    return workload, cell, weights, replace(data, order=order)


def a_tenth(data: Data) -> Data:
    """Only the first tenth of the samples is used: it fits the caches."""
    few = len(data.order) // 10
    order = np.tile(data.order[data.order < few], 10)[: len(data.order)]
    return replace(data, train_x=data.train_x[:few], train_y=data.train_y[:few], order=order)


ENGINE = "engines/{}/engine.py open".format
FAULTS = tuple(
    Fault(name, words, where, setup, plant, in_timed_loop=True)
    for name, words, where, setup, plant in (
        ("C1", "half of each batch", ENGINE("torch"), TORCH, job(half_batch)),
        ("C2", "bfloat16 called float32", ENGINE("torch"), TORCH, session(in_bfloat16)),
        ("C3", "no backward pass", "engines/torch/sessions.py", TORCH, session(no_backward)),
        ("C5", "first layer frozen", "engines/torch/sessions.py", TORCH,
         session(first_layer_frozen)),
        ("C6", "pictures of half the resolution, enlarged", ENGINE("torch"), TORCH,
         data(half_resolution)),
        ("F9", "weights and order of another seed", ENGINE("tensorflow"), TF, job(other_seed)),
        ("D8", "a tenth of the samples, digest of all", ENGINE("torch"), TORCH, data(a_tenth)),
        ("D9", "black pictures", ENGINE("jax"), JAX,
         data(lambda data: replace(data, train_x=data.train_x * 0))),
        ("N25", "samples in their stored order", ENGINE("tensorflow"), TF,
         data(lambda data: replace(data, order=np.sort(data.order)))),
        ("N26", "labels of another numbering", ENGINE("mlx"), MLX,
         data(lambda data: replace(data, train_y=(data.train_y + 1) % 10))),
        ("N27", "bfloat16 called float32", ENGINE("mlx"), Setup("fashion-mlp", "mlx"),
         session(mlx_in_bfloat16)),
        ("N28", "half of each batch, with dropout", ENGINE("tensorflow"), MLP, job(half_batch)),
        ("N29", "the last bias is not trained", "engines/torch/sessions.py", TORCH,
         session(last_bias_fixed)),
        ("N30", "first layer of zeros", ENGINE("tensorflow"), TF,
         job(lambda workload, cell, weights, data: (workload, cell, _zeroed(weights), data))),
    )
)  # fmt: skip


def _zeroed(weights: Weights) -> Weights:
    first = next(index for index, values in enumerate(weights) if values)
    return [
        {name: value * 0 for name, value in values.items()} if index == first else values
        for index, values in enumerate(weights)
    ]
