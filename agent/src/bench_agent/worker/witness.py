"""The witness: evidence of training, read from the timed session (docs/methodology.md).

Losses are read in the warm-up, everything else after the last block: nothing is added to a block.
Last of all the session is rewound and trains its first steps again: what goes wrong only after the
warm-up shows there.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.layers import Dropout
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Measurement
from bench_protocol.payload.witness import Mask, Rewound, Witness, trained_tensors

from ..engines.common import as_floats
from ..engines.seam import Data, Dropped, Session

# Samples of the forward pass that reads the masks.
MASKED_SAMPLES = 32
# bfloat16 rounds by 0.4 % before and after.
SCALE_TOLERANCE = 0.02


def losses_after(session: Session, steps: Sequence[int]) -> tuple[float | None, ...]:
    """Train, with one call between two readings, and read the loss after each of ``steps``."""
    losses = []
    for before, after in pairwise((0, *steps)):
        session.train_block(after - before)
        session.sync()
        losses.append(finite(session.loss()))
    return tuple(losses)


def read(
    session: Session,
    workload: Workload,
    seed: str,
    data: Data,
    steps: Sequence[int],
    losses: Sequence[float | None],
) -> Witness:
    """The witness of a session whose last block has ended.

    Args:
        seed: of the starting weights. They are generated again: no copy is kept during the timing.
        losses: as they were read after these steps of the warm-up.
    """
    return Witness(
        steps=tuple(steps),
        losses=tuple(losses),
        step_count=session.step_count(),
        counted_by=session.counted_by,
        movements=movements(session, workload, seeded.initial_weights(workload, seed)),
        masks=masks(session, workload, data),
    )


def rewound(
    session: Session,
    workload: Workload,
    seed: str,
    data: Data,
    batch_size: int,
    steps: Sequence[int],
) -> Rewound:
    """The second reading: the session goes back to its start and trains its first steps again.

    Args:
        steps: of the first reading.
    """
    start = seeded.initial_weights(workload, seed)
    session.rewind(start)
    rows = data.order[:batch_size]
    start_loss, _ = session.evaluate(data.train_x[rows], data.train_y[rows])
    return Rewound(
        start_loss=finite(start_loss),
        losses=losses_after(session, steps),
        movements=movements(session, workload, start),
    )


def counts_all_steps(measurement: Measurement) -> bool:
    """Whether the session's step count equals the requested steps.

    Under a dynamic loss scale Keras leaves out the updates whose gradients overflow.
    """
    recorded, blocks = measurement.witness, measurement.blocks
    if recorded is None:
        return True
    expected = 1 + blocks.warm_up_steps + blocks.steps
    if measurement.recipe_settings.get("loss_scale") == "dynamic":
        return recorded.step_count <= expected
    return recorded.step_count == expected


def movements(
    session: Session, workload: Workload, start: seeded.Weights
) -> tuple[float | None, ...]:
    """|w - w_0| of each trained tensor, in the catalogue's order."""
    norms = []
    for tensor, now in zip(trained_tensors(workload), session.trained_parameters(), strict=True):
        moved = now.astype(np.float64) - start[tensor.index][tensor.name]
        norms.append(finite(float(np.linalg.norm(moved))))
    return tuple(norms)


def masks(session: Session, workload: Workload, data: Data) -> tuple[Mask, ...]:
    """The masks of each dropout layer on the first training samples, in two steps."""
    draws = (_passes(session, workload, data, ahead) for ahead in (0, 1))
    return tuple(_mask(*draw) for draw in zip(*draws, strict=True))


def scales_what_it_keeps(session: Session, workload: Workload, data: Data) -> bool:
    """Whether each dropout layer multiplies what it keeps by 1 / (1 - rate)."""
    rates = (layer.rate for layer in workload.layers if isinstance(layer, Dropout))
    for rate, (before, after) in zip(rates, _passes(session, workload, data, 0), strict=True):
        kept = (before != 0) & (after != 0)
        if kept.any():
            scale = float(np.median(after[kept] / before[kept]))
            if abs(scale * (1 - rate) - 1) > SCALE_TOLERANCE:
                return False
    return True


def _passes(session: Session, workload: Workload, data: Data, ahead: int) -> list[Dropped]:
    if not any(isinstance(layer, Dropout) for layer in workload.layers):
        return []
    return session.through_dropout(as_floats(data.train_x[:MASKED_SAMPLES]), ahead)


def _mask(draw: Dropped, next_draw: Dropped) -> Mask:
    dropped, next_dropped = _dropped(*draw), _dropped(*next_draw)
    values = max(1, int(np.count_nonzero(draw[0])))
    return Mask(
        zeros=int(np.count_nonzero(dropped)) / values,
        differ=bool((dropped != next_dropped).any()),
    )


def _dropped(before: NDArray[np.float32], after: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.asarray((before != 0) & (after == 0))


def finite(value: float) -> float | None:
    """The value, or None where it is no finite number."""
    return value if math.isfinite(value) else None
