"""Stored references of the witness: ranges of the first losses of timed sessions.

A witness follows from the workload, its data, the batch size, the seed and the steps alone. So the
ranges of usual cells (the batch sizes of :func:`batch_sizes`, the default seed; generated data,
MNIST and Fashion-MNIST) are computed once: ``python -m benchmarks.limits.witness_references``
writes ``witness_references.json``. Real data without a reference, and pretrained frozen layers,
have the wide band of :func:`wide_band`. Elsewhere a witness stays unverified.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from pydantic import TypeAdapter

from ..base.units import PositiveCount, Sha256, Slug, Wire
from ..catalogue.matrix import DataKind
from ..catalogue.workloads import Workload
from ..payload.result import Result, Seed
from . import witness_steps
from .recomputed import Band, Recomputed

FILE = "witness_references.json"
# The frozen layers of a workload have the weights of its seed (``recipe_settings``).
GENERATED_WEIGHTS = "generated"
# In units of the loss of guessing (:func:`wide_band`).
FIRST_LOSS, LATER_LOSS = (0.8, 1.3), 1.5
# Beside those of the catalogue, where they are recomputed in about ten seconds.
USUAL_BATCH_SIZES = (16, 32, 64, 128, 256, 512, 1024)


class ReferenceKey(NamedTuple):
    """What the first losses of a timed session follow from."""

    workload_digest: str
    data_digest: str
    batch_size: int
    seed: str


class WitnessReference(Wire):
    """The range of one cell's losses.

    ``steps``: those after which a session reads its loss. ``low`` and ``high``: of every step from
    1 to the last of them; ``high`` is left out where it equals ``low``. ``start_loss``: of the
    first batch with the starting weights, dropout off; left out where it is that of step 1.
    """

    workload: Slug
    workload_digest: Sha256
    data: DataKind = "generated"
    data_digest: Sha256
    batch_size: PositiveCount
    seed: Seed
    steps: tuple[PositiveCount, ...]
    low: tuple[float, ...]
    high: tuple[float, ...] = ()
    start_loss: float | None = None

    @property
    def key(self) -> ReferenceKey:
        """What it is stored by."""
        return ReferenceKey(self.workload_digest, self.data_digest, self.batch_size, self.seed)

    @property
    def start(self) -> float | None:
        """``start_loss``, also where it is left out; None where it was not computed."""
        if self.start_loss is not None or self.high:
            return self.start_loss
        return self.low[0]

    @property
    def band(self) -> Band:
        """The range of the losses. It shows nothing, so it has no movements."""
        return Band(Recomputed(self.low, ()), Recomputed(self.high or self.low, ()))


@cache
def references() -> Mapping[ReferenceKey, WitnessReference]:
    """All stored references."""
    text = resources.files(__package__).joinpath(FILE).read_text("utf-8")
    stored = TypeAdapter(list[WitnessReference]).validate_json(text)
    return {reference.key: reference for reference in stored}


def reference_of(result: Result) -> WitnessReference | None:
    """The stored reference of a result's timed session; None if there is none.

    The key has the digest of the data, so there is none for data that was not at hand.
    """
    measured, cell = result.measurement, result.cell
    if measured is None or measured.data_digest is None:
        return None
    if measured.recipe_settings.get("frozen_weights", GENERATED_WEIGHTS) != GENERATED_WEIGHTS:
        return None
    key = ReferenceKey(cell.workload_digest, measured.data_digest, cell.batch_size, result.seed)
    return references().get(key)


def batch_sizes(workload: Workload) -> tuple[int, ...]:
    """Batch sizes whose references are stored: those of the catalogue, and usual ones.

    Where one draw of dropout's masks stands for all, its spread was measured at the catalogue's.
    """
    sizes = {workload.batch_size, *workload.batch_sizes}
    if workload.name not in witness_steps.ONE_DRAW:
        sizes.update(n for n in USUAL_BATCH_SIZES if witness_steps.is_quick(workload, n))
    return tuple(sorted(sizes))


def wide_band(workload: Workload, steps: Sequence[int]) -> Band:
    """The range of an honest training on data that was not at hand.

    The first loss is near that of guessing, ``ln(classes)``, because start weights know nothing:
    0.98 to 1.08 times on generated data, MNIST and Fashion-MNIST, every workload and batch size
    (the middle of each range). Later ones are up to 1.19 times on the same. Both with a margin.

    Args:
        steps: after which a loss was read, rising.
    """
    guessing = math.log(workload.data_set.classes)
    last = steps[-1] if steps else 1
    low = (FIRST_LOSS[0] * guessing, *(0.0,) * (last - 1))
    high = (FIRST_LOSS[1] * guessing, *(LATER_LOSS * guessing,) * (last - 1))
    return Band(Recomputed(low, ()), Recomputed(high, ()))
