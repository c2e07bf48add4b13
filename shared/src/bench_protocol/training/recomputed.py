"""Outputs of a recomputation. Reading them needs no NumPy."""

from pydantic import model_validator

from ..base.units import Finite, Wire


class Recomputed(Wire):
    """A correct reading: mean loss of the last batch, and |w - w_0| of each trained tensor in the
    catalogue's order after the last step, rounded to ten digits.

    ``loss_high``, ``movements_high``: the upper ends of ranges.
    """

    loss: Finite
    movements: tuple[Finite, ...]
    loss_high: Finite | None = None
    movements_high: tuple[Finite, ...] = ()

    @model_validator(mode="after")
    def _same_lengths(self) -> "Recomputed":
        if len(self.movements_high) not in (0, len(self.movements)):
            raise ValueError(f"movements_high must be empty or have {len(self.movements)} values")
        return self

    @property
    def loss_range(self) -> tuple[float, float]:
        return self.loss, self.loss if self.loss_high is None else self.loss_high

    @property
    def movement_ranges(self) -> list[tuple[float, float]]:
        """Lowest and highest correct movement of each tensor."""
        return list(zip(self.movements, self.movements_high or self.movements, strict=True))


class Figures(Wire):
    """Figures of a session's recomputation. ``start_loss``: of the first batch of the first epoch
    with the starting weights, dropout off; None where a whole batch takes too long
    (:func:`.reading.has_start_loss`). ``readings``: of the parts
    that are recomputed (:func:`.reading.parts_recomputed`)."""

    start_loss: Finite | None = None
    readings: tuple[Recomputed, ...]
