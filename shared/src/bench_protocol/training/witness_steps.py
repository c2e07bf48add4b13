"""The steps whose loss a witness reads: as many as a core recomputes in about ten seconds.

All of it follows from the definition of a workload. Reading it needs no NumPy.
"""

import math

from ..catalogue.layers import LSTM, Dropout
from ..catalogue.workloads import Workload

# Steps whose loss is read, most informative first; the last one's weights give the movements. The
# steps between two of them are trained in one call, which is how blocks are trained.
READINGS: tuple[tuple[int, ...], ...] = (
    (1, 24, 64),
    (1, 8, 24),
    (1, 4, 8),
    (1, 2, 4),
    (1, 2, 3),
    (1, 2),
    (1,),
)
# Cost of a training sample in the recomputation, on a core with AVX-512: FLOPs of convolutions and
# products a second, and seconds of one output value, all layers' passes together. Fitted to the
# sessions of the catalogue, whose times are within 15 % of it where they are over a second.
FLOPS, VALUE_SECONDS = 4.5e10, 9e-9
# A frozen layer's outputs are computed once, with no pass backward.
FROZEN_SHARE = 1 / 3
# Values of an LSTM's unit in each time step: four gates, cell and output.
LSTM_VALUES = 6
SECONDS = 10.0
# Read this many steps at the default batch and below, although that may take longer.
LEAST_STEPS = 3
# A larger batch costs minutes for one result.
MOST_TIMES = 8
# Dropout's masks are drawn by the framework: the range of a loss comes from this many trainings
# with other masks (bench_protocol.recompute.band), or from one where even one step of all is long.
MASK_DRAWS = 6


def witness_steps(workload: Workload, batch_size: int) -> tuple[int, ...]:
    """Steps of the first epoch, counted from 1, after which the loss is read.

    All steps up to the last one are as many as are recomputed in about ten seconds, or
    ``LEAST_STEPS`` at the default batch and below. They lie within the first epoch, because later
    orders are the recipe's own. The first step is always read, also where recomputing it takes
    longer.
    """
    samples = recomputed_samples(workload) // mask_draws(workload)
    steps = samples // batch_size
    least = LEAST_STEPS * batch_size
    if batch_size <= workload.batch_size and least <= MOST_TIMES * samples:
        steps = max(LEAST_STEPS, steps)
    steps = min(steps, workload.steps_per_epoch(batch_size))
    return next((reading for reading in READINGS if reading[-1] <= steps), (1,))


def is_affordable(workload: Workload, batch_size: int) -> bool:
    """Whether a server recomputes the witness: its first step takes at most ``MOST_TIMES`` ten
    seconds."""
    return batch_size * mask_draws(workload) <= MOST_TIMES * recomputed_samples(workload)


def mask_draws(workload: Workload) -> int:
    """Number of trainings behind the range of a witness; 1 without Dropout."""
    drawn = any(isinstance(layer, Dropout) for layer in workload.layers)
    is_short = MASK_DRAWS * workload.batch_size <= recomputed_samples(workload)
    return MASK_DRAWS if drawn and is_short else 1


def recomputed_samples(workload: Workload) -> int:
    """Training samples that one core recomputes in ten seconds."""
    values = 0.0
    for index, layer in enumerate(workload.layers):
        steps = workload.shapes[index][0] * LSTM_VALUES if isinstance(layer, LSTM) else 1
        share = FROZEN_SHARE if index < workload.frozen_layers else 1.0
        values += share * steps * math.prod(workload.shapes[index + 1])
    seconds = workload.training_flops_per_sample / FLOPS + VALUE_SECONDS * values
    return max(1, int(SECONDS / seconds))
