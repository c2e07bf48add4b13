"""Faults of a session's job: data, weights, batches, precision."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bench_agent.engines.seam import Data
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ..fault import Fault, Job, Plant
from .optimiser import TF, TORCH

OTHER_SEED = "7" * 32


def job(change: Callable[[Workload, Cell, Weights, Data], Job]) -> Plant:
    return lambda here: here.jobs(change)


def data(change: Callable[[Data], Data]) -> Plant:
    return job(lambda workload, cell, weights, data: (workload, cell, weights, change(data)))


def session(change: Callable[[Any], None]) -> Plant:
    return lambda here: here.sessions(change)


def half_batch(workload: Workload, cell: Cell, weights: Weights, data: Data) -> Job:
    return workload, cell.model_copy(update={"batch_size": cell.batch_size // 2}), weights, data


def no_backward(session: Any) -> None:
    """The optimiser steps with gradients of zero."""

    def backward(loss: Any) -> None:
        for parameter in session._model.parameters():
            parameter.grad = parameter.detach() * 0

    session._backward = backward


def last_bias_fixed(session: Any) -> None:
    list(session._model.parameters())[-1].register_hook(lambda gradient: gradient * 0)


def other_seed(workload: Workload, cell: Cell, weights: Weights, data: Data) -> Job:
    order = seeded.order(len(data.order), 0, OTHER_SEED)
    weights = seeded.initial_weights(workload, OTHER_SEED)
    return workload, cell, weights, replace(data, order=order)


def a_tenth(data: Data) -> Data:
    """The first tenth of the samples takes the place of all others."""
    few = np.arange(len(data.order)) % (len(data.order) // 10)
    return replace(data, train_x=data.train_x[few], train_y=data.train_y[few])


ENGINE = "engines/{}/engine.py open".format
FAULTS = tuple(
    Fault(name, words, where, setup, plant, in_timed_loop=True)
    for name, words, where, setup, plant in (
        ("C1", "half of each batch", ENGINE("torch"), TORCH, job(half_batch)),
        ("C3", "no backward pass", "engines/torch/sessions.py", TORCH, session(no_backward)),
        ("F9", "weights and order of another seed", ENGINE("tensorflow"), TF, job(other_seed)),
        ("D8", "a tenth of the samples, digest of all", ENGINE("torch"), TORCH, data(a_tenth)),
        ("N25", "samples in their stored order", ENGINE("tensorflow"), TF,
         data(lambda data: replace(data, order=np.sort(data.order)))),
        ("N29", "the last bias is not trained", "engines/torch/sessions.py", TORCH,
         session(last_bias_fixed)),
    )
)  # fmt: skip
