"""Faults of the data, in every session."""

from dataclasses import replace
from typing import Any

import numpy as np

from bench_agent.engines.seam import Data

from ..fault import Fault, patched
from .optimiser import MLX, TF, TORCH


def all_jobs(change: Any) -> Any:
    return lambda here: here.jobs(
        lambda workload, cell, weights, data: (workload, cell, weights, change(data))
    )


def labels_off(data: Data) -> Data:
    return replace(data, train_y=np.roll(data.train_y, 1))


def through_bfloat16(right: Any) -> Any:
    import torch

    return lambda pictures: torch.from_numpy(right(pictures)).bfloat16().float().numpy()


def scaled(factor: float) -> Any:
    """Pictures from 0 to 255, times a factor."""
    return lambda _: lambda pictures: pictures.astype(np.float32) * np.float32(factor)


FAULTS = (
    Fault(
        "A7", "labels one row off", "engines/tensorflow/engine.py open", TF, all_jobs(labels_off),
    ),
    Fault(
        "F8", "resident pictures through bfloat16", "engines/torch/sessions.py", TORCH,
        patched("torch.sessions:resident", through_bfloat16),
    ),
    Fault("N32", "pictures divided by 256", "engines/mlx/sessions.py", MLX,
          patched("mlx.sessions:resident", scaled(1 / 256))),
)  # fmt: skip
