"""What a recomputation gives: losses and movements, and their range. Reading it needs no NumPy."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recomputed:
    """Losses and movements of a correct training.

    ``losses``: mean loss of each step's batch, before the step's update. ``movements``:
    |w - w_0| of each trained tensor after the last step; empty where they are not compared.
    """

    losses: tuple[float, ...]
    movements: tuple[float, ...]


@dataclass(frozen=True)
class Band:
    """Lowest and highest losses and movements of a correct training; equal without Dropout."""

    low: Recomputed
    high: Recomputed
