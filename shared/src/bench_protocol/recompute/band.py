"""The range of a witness under Dropout, where each framework draws its own masks."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np

from ..catalogue import seeded
from ..catalogue.layers import Dropout, Shape
from ..statistics.student_t import quantile
from ..training.recomputed import Band, Recomputed
from ..training.witness_steps import mask_draws
from .arrays import Array
from .training import Job, Masks, Split, Training, recompute

# Chance that an honest value lies outside its range, if logarithms are normal. There are seven: six
# losses (of three steps, in two readings), and all movements together. So it is 1e-3 for a session.
MISSED = 1e-3 / 7
NORMAL_QUANTILE = 3.80  # for the same chance
# Used with one or two draws: standard deviation of the logarithm of a loss and of a movement.
# cifar100-vgg16, batch 128: at most 2.8e-6 and 7.0e-2 after two steps (n = 7 draws), 3.3e-6 and
# 5.8e-2 after three (n = 3).
STORED_LOSS_SPREAD, STORED_MOVEMENT_SPREAD = 1e-5, 8e-2


def witness_band(job: Job, steps: int, draws: int = 0, split: Split | None = None) -> Band:
    """Range of each loss and movement over Dropout's masks.

    Each framework draws its own masks, so a loss is known only as a distribution. The training is
    recomputed ``draws`` times, each with its own masks: uniform numbers of the stream
    ``dropout/{draw}/{step}/{layer}`` of the job's seed, a value is kept and divided by
    ``1 - rate`` where its number is at least ``rate`` (Srivastava et al. 2014). The range is the
    prediction interval of one more training with other masks (Hahn & Meeker 1991, section 4.8), on
    logarithms: mean +- t s sqrt(1 + 1 / draws), where s is their standard deviation and t
    Student's quantile with ``draws - 1`` degrees of freedom: for ``MISSED`` of each loss, and of
    all movements together, in equal parts (Bonferroni). With one or two draws s is a stored
    constant and t the normal quantile.

    Without Dropout low and high are both what :func:`recompute` returns.

    Args:
        draws: how many; 0 for what ten seconds allow
            (:func:`..training.witness_steps.witness_steps`).
        split: as in :func:`recompute`.
    """
    if not any(isinstance(layer, Dropout) for layer in job.trained.layers):
        right = recompute(job, steps, split)
        return Band(right, right)
    training = Training(job, steps, split)
    runs = [_run(training, job, steps, draw) for draw in range(draws or mask_draws(job.workload))]
    losses = _ranges([run.losses for run in runs], STORED_LOSS_SPREAD, MISSED)
    moved = [run.movements for run in runs]
    movements = _ranges(moved, STORED_MOVEMENT_SPREAD, MISSED / len(moved[0]))
    low, high = (
        Recomputed(tuple(pair[end] for pair in losses), tuple(pair[end] for pair in movements))
        for end in (0, 1)
    )
    return Band(low, high)


def _run(training: Training, job: Job, steps: int, draw: int) -> Recomputed:
    training.restart()
    losses = tuple(training.step(_masks(job, draw, step)) for step in range(steps))
    return Recomputed(losses, training.movements())


def _masks(job: Job, draw: int, step: int) -> Masks:
    def masks(index: int, shape: Shape) -> Array:
        layer = job.trained.layers[index]
        rate = layer.rate if isinstance(layer, Dropout) else 0.0
        words = seeded.raw_words(f"dropout/{draw}/{step}/{index}", job.seed, math.prod(shape))
        # As seeded.unit_interval(words) >= rate, whose numbers are multiples of 2**-24.
        kept = (words >> np.uint64(40)) >= np.uint64(math.ceil(rate * 2**24))
        return np.where(kept, 1 / (1 - rate), 0.0).reshape(shape)

    return masks


def _ranges(
    runs: Sequence[tuple[float, ...]], stored_spread: float, missed: float
) -> list[tuple[float, float]]:
    """Low and high of each column; ``missed``: the chance of an honest value outside."""
    count = len(runs)
    ranges = []
    for values in zip(*runs, strict=True):
        logs = [math.log(max(value, 1e-300)) for value in values]
        if count < 3:
            width = NORMAL_QUANTILE * stored_spread
        else:
            width = quantile(count - 1, 1 - missed) * stdev(logs)
        width *= math.sqrt(1 + 1 / count)
        ranges.append((math.exp(fmean(logs) - width), math.exp(fmean(logs) + width)))
    return ranges
