"""Outputs of a recomputation: losses, movements and their ranges. Reading them needs no NumPy."""

from dataclasses import dataclass

from pydantic import model_validator

from ..base.units import Finite, Wire


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


class Figures(Wire):
    """Figures of the recomputation of one seeded job, rounded to ten digits.

    ``losses``: mean loss of each step's batch, before the step's update; ``high``: their upper ends
    where Dropout makes ranges of them. ``movements``: |w - w_0| of each trained tensor in the
    catalogue's order after the last step; ``movements_high`` as ``high``. ``start_loss``: of the
    first batch with the starting weights, dropout off. ``rounding``, ``movements_rounding``: the
    effect of rounding on each (:mod:`bench_protocol.recompute.rounding`); empty where it was not
    computed.
    """

    losses: tuple[Finite, ...]
    high: tuple[Finite, ...] = ()
    movements: tuple[Finite, ...] = ()
    movements_high: tuple[Finite, ...] = ()
    start_loss: Finite
    rounding: tuple[Finite, ...] = ()
    movements_rounding: tuple[Finite, ...] = ()

    @model_validator(mode="after")
    def _same_lengths(self) -> "Figures":
        for name, values in (
            ("high", self.losses),
            ("rounding", self.losses),
            ("movements_high", self.movements),
            ("movements_rounding", self.movements),
        ):
            if len(getattr(self, name)) not in (0, len(values)):
                raise ValueError(f"{name} must be empty or have {len(values)} values")
        return self

    @property
    def band(self) -> Band:
        """The range of losses and movements."""
        return Band(
            Recomputed(self.losses, self.movements),
            Recomputed(self.high or self.losses, self.movements_high or self.movements),
        )
