"""Faults in transformers and normalised networks, in PyTorch."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bench_agent.engines.seam import Data
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ..fault import Fault, Job, Setup, patched
from .optimiser import rate

GPT, RESNET = Setup("gpt-char", "torch", "naive"), Setup("cifar-resnet18", "torch", "naive")


def decay_after(session: Any) -> None:
    """The optimiser decays nothing; the weights decay once it has moved them."""
    groups = session._optimizer.param_groups
    decays = [group["weight_decay"] for group in groups]
    for group in groups:
        group["weight_decay"] = 0.0

    def decay(*_: Any) -> None:
        for group, share in zip(groups, decays, strict=True):
            for values in group["params"]:
                values.data.mul_(1 - group["lr"] * share)

    session._optimizer.register_step_post_hook(decay)


def gammas_decay(session: Any) -> None:
    groups = session._optimizer.param_groups
    for group in groups:
        group["weight_decay"] = max(other["weight_decay"] for other in groups)


def own_epsilon(right: Any) -> Any:
    def values(settings: Any, steps: Any) -> Iterator[tuple[float, float]]:
        return ((rate, settings.epsilon) for rate, _ in right(settings, steps))

    return values


def uncorrected(_: Any) -> Any:
    """PyTorch's own corrections are taken back."""

    def values(settings: Any, steps: Any) -> Iterator[tuple[float, float]]:
        roots = np.sqrt(1 - settings.beta_2**steps)
        rates = settings.learning_rate * (1 - settings.beta_1**steps) / roots
        return zip(rates.tolist(), (settings.epsilon / roots).tolist(), strict=True)

    return values


def labels_off(workload: Workload, cell: Cell, weights: Weights, data: Data) -> Job:
    return workload, cell, weights, replace(data, train_y=np.roll(data.train_y, 1, axis=1))


def mask(diagonal: int | None) -> Any:
    """Positions from this diagonal on are hidden; None hides none."""

    def change(session: Any) -> None:
        for module in session._model.modules():
            if hasattr(module, "later"):
                later = module.later.new_ones(module.later.shape)
                module.later = later.triu(len(later) if diagonal is None else diagonal)

    return change


def normalisations(session: Any) -> list[Any]:
    return [module for module in session._model.modules() if hasattr(module, "factor")]


def frozen_statistics(session: Any) -> None:
    import torch
    from torch.nn import functional

    def fixed(module: Any) -> Any:
        mean, variance = torch.zeros_like(module.bias), torch.ones_like(module.weight)

        def forward(x: Any) -> Any:
            weights = (module.weight, module.bias)
            return functional.batch_norm(x, mean, variance, *weights, eps=module.eps)

        return forward

    for module in normalisations(session):
        module.forward = fixed(module)


def unbiased_statistics(session: Any) -> None:
    for module in normalisations(session):
        module.factor = 1.0


def other_rows_positions(right: Any) -> Any:
    import torch

    def forward(module: Any, x: Any) -> Any:
        places = torch.arange(x.shape[1], device=x.device) + torch.arange(
            len(x), device=x.device
        ).unsqueeze(1)
        moved = module.positions[places % x.shape[1]]
        return right(module, x) - module.positions + moved

    return forward


OPTIMIZER, MODEL = "engines/torch/optimizer.py", "engines/torch/model.py"
SEQUENCE, SESSIONS = "engines/torch/sequence.py", "engines/torch/sessions.py"
FAULTS = (
    Fault("M1", "learning rate 1 % too high", OPTIMIZER, GPT, rate(1.01)),
    Fault("M2", "learning rate 1 % too high", OPTIMIZER, RESNET, rate(1.01)),
    Fault("M3", "weights decay after the update", OPTIMIZER, GPT,
          lambda here: here.sessions(decay_after)),
    Fault("M4", "gammas decay", OPTIMIZER, GPT, lambda here: here.sessions(gammas_decay)),
    Fault("M5", "epsilon in PyTorch's place", OPTIMIZER, GPT,
          patched("torch.optimizer:torch_adam_values", own_epsilon)),
    Fault("M6", "Adam without bias correction", OPTIMIZER, GPT,
          patched("torch.optimizer:torch_adam_values", uncorrected)),
    Fault("M7", "labels one token off", SESSIONS, GPT, lambda here: here.jobs(labels_off)),
    Fault("M8", "mask one position off", SEQUENCE, GPT, lambda here: here.sessions(mask(2))),
    Fault("M9", "attention not causal", SEQUENCE, GPT, lambda here: here.sessions(mask(None))),
    Fault("M10", "positions of another batch row", SEQUENCE, GPT,
          patched("torch.sequence:Embedding.forward", other_rows_positions)),
    Fault("M11", "batch statistics frozen", MODEL, RESNET,
          lambda here: here.sessions(frozen_statistics)),
    Fault("M12", "running variance unbiased", MODEL, RESNET,
          lambda here: here.sessions(unbiased_statistics)),
)  # fmt: skip
