"""Faults of the data, in every session."""

from dataclasses import replace
from typing import Any

import numpy as np

from bench_agent.engines.seam import Data

from ..fault import Fault, Planting
from .optimiser import JAX, MLX, TF, TORCH


def all_jobs(change: Any) -> Any:
    return lambda here: here.jobs(
        lambda workload, cell, weights, data: (workload, cell, weights, change(data))
    )


def labels_off(data: Data) -> Data:
    return replace(data, train_y=np.roll(data.train_y, 1))


def through_bfloat16(here: Planting) -> None:
    def patch() -> None:
        import torch

        from bench_agent.engines.torch import sessions

        right = sessions.resident

        def resident(pictures: Any) -> Any:
            return torch.from_numpy(right(pictures)).bfloat16().float().numpy()

        sessions.resident = resident

    here.loaded(patch)


def not_divided(here: Planting) -> None:
    """Pictures from 0 to 255."""

    def patch() -> None:
        from bench_agent.engines.jax import sessions

        sessions.resident = lambda pictures: pictures.astype(np.float32)

    here.loaded(patch)


def multiplied(here: Planting) -> None:
    """Pictures from 0 to 255 / 256."""

    def patch() -> None:
        from bench_agent.engines.mlx import sessions

        sessions.resident = lambda pictures: pictures.astype(np.float32) * np.float32(1 / 256)

    here.loaded(patch)


FAULTS = (
    Fault(
        "A7", "labels one row off", "engines/tensorflow/engine.py open", TF, all_jobs(labels_off),
    ),
    Fault(
        "F8", "resident pictures through bfloat16", "engines/torch/sessions.py", TORCH,
        through_bfloat16,
    ),
    Fault("N31", "pictures from 0 to 255", "engines/jax/sessions.py", JAX, not_divided),
    Fault("N32", "pictures divided by 256", "engines/mlx/sessions.py", MLX, multiplied),
)  # fmt: skip
