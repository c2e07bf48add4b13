"""The figures of a session's readings. Short readings have a range, because rounding decides some
of their gradients; readings with dropout because each framework draws its own masks; movements of
deep readings because weights are rounded."""

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from statistics import fmean, stdev

import numpy as np

from ..catalogue import nonces, seeded
from ..catalogue.layers import Dropout, Shape
from ..catalogue.workloads import DataSet, Workload
from ..statistics.student_t import quantile
from ..training.reading import (
    MASK_DRAWS,
    ROUNDING_PAIRS,
    Part,
    has_start_loss,
    is_steady,
    parts,
    parts_recomputed,
)
from ..training.recomputed import Figures, Recomputed
from .arrays import Array, Values
from .training import Job, Masks, Split, Training

# Chance that an honest value lies outside its range, if logarithms are normal. There are two in
# each of two readings: the loss, and all movements together. So it is 1e-3 for a session.
MISSED = 1e-3 / 4
# Starting weights change by up to this share, some thirty roundings of float32: errors add up over
# the hundreds of products of a sum. One pair found what rounding decided in 11 to 16 of 16 trials.
NUDGE, ROUNDINGS = 2e-6, 4


def figures(workload: Workload, nonce: str, batch_size: int, split: Split | None = None) -> Figures:
    """Recompute the readings of a session whose seed follows from a nonce.

    Args:
        workload: as the catalogue has it.
        split: pictures (uint8) and labels of the training split where data is real; generated if
            not given, and then only the samples that the steps need.
    """
    job = Job(workload, batch_size, nonces.seed_of(nonce, workload.digest))
    deep, *others = parts_recomputed(parts(workload, batch_size, job.seed))
    training = Training(job, deep, split)
    start_loss = None
    if has_start_loss(workload, batch_size):
        first = Training(job, Part("short", 0, 1, deep.per_epoch), split, repeats=False)
        start_loss = _rounded(first.loss())
    ranged = {"short": _short, "first": _short, "masks": _dropping}
    of_kind = {} if is_steady(workload) else ranged
    readings = (of_kind.get(part.kind, _exact)(Training(job, part, split), job) for part in others)
    return Figures(start_loss=start_loss, readings=(_exact(training, job), *readings))


@lru_cache(maxsize=16)
def generated_digest(data_set: DataSet) -> str:
    names = ("train", *(["validation"] if data_set.validation_samples else []), "test")
    return seeded.data_digest(*(seeded.generated_data(data_set, name) for name in names))


def _exact(training: Training, job: Job) -> Recomputed:
    """One right loss. Movements have the range that the rounding of weights explains, which matters
    where a step changes a weight by less than float32 tells apart."""
    loss, moved, lost = training.train(), training.movements(), training.roundings()
    ends = [(max(0.0, norm - off), norm + off) for norm, off in zip(moved, lost, strict=True)]
    return _between([loss, *(low for low, _ in ends)], [loss, *(high for _, high in ends)])


def _short(training: Training, job: Job) -> Recomputed:
    """The range that rounding explains.

    Where the input of a ReLU is nearer to zero than float32 rounds, or two inputs of a maximum
    differ by less, rounding decides which way the gradient goes. In each pair one training
    multiplies each starting weight by ``1 + NUDGE (2 u - 1)``, another by ``1 - NUDGE (2 u - 1)``,
    with u in [0, 1) from the stream ``rounding/{pair}/{layer}/{name}`` of the job's seed. Each
    value may differ by ``ROUNDINGS`` times the largest of their differences (docs/adr/0026).
    """
    right = training.train(), *training.movements()
    effects = np.zeros(len(right))
    for pair in range(ROUNDING_PAIRS):
        for nudge in (NUDGE, -NUDGE):
            training.restart()
            _nudge(training.weights, job.seed, pair, nudge)
            nudged = training.train(), *training.movements()
            effects = np.maximum(effects, np.abs(np.subtract(nudged, right)))
    low, high = np.subtract(right, ROUNDINGS * effects), np.add(right, ROUNDINGS * effects)
    return _between(low.tolist(), high.tolist())


def _nudge(weights: Sequence[Values], seed: str, pair: int, nudge: float) -> None:
    for layer, values in enumerate(weights):
        for name, value in values.items():
            words = seeded.raw_words(f"rounding/{pair}/{layer}/{name}", seed, value.size)
            value *= 1 + nudge * (2 * seeded.unit_interval(words).reshape(value.shape) - 1)


def _dropping(training: Training, job: Job) -> Recomputed:
    """Range of loss and movements over Dropout's masks.

    The part is trained some times, each with its own masks: uniform numbers of the stream
    ``dropout/{draw}/{step}/{layer}`` of the job's seed, a value is kept and divided by
    ``1 - rate`` where its number is at least ``rate`` (Srivastava et al. 2014). The range is the
    prediction interval of one more training with other masks (Hahn & Meeker 1991, section 4.8), on
    logarithms: mean +- t s sqrt(1 + 1 / draws), where s is their standard deviation and t
    Student's quantile with ``draws - 1`` degrees of freedom: for ``MISSED`` of the loss, and of
    all movements together, in equal parts (Bonferroni).
    """
    runs = []
    for draw in range(MASK_DRAWS):
        training.restart()
        runs.append((training.train(partial(_masks, job, draw)), *training.movements()))
    losses, *moved = zip(*runs, strict=True)
    ends = [_ends(losses, MISSED), *(_ends(norms, MISSED / len(moved)) for norms in moved)]
    return _between([low for low, _ in ends], [high for _, high in ends])


def _between(low: Sequence[float], high: Sequence[float]) -> Recomputed:
    """A range; the loss is the first of each, movements follow."""
    return Recomputed(
        loss=_rounded(low[0]),
        loss_high=_rounded(high[0]),
        movements=_all(low[1:]),
        movements_high=_all(high[1:]),
    )


def _masks(job: Job, draw: int, step: int) -> Masks:
    def masks(index: int, shape: Shape) -> Array:
        layer = job.workload.layers[index]
        rate = layer.rate if isinstance(layer, Dropout) else 0.0
        words = seeded.raw_words(f"dropout/{draw}/{step}/{index}", job.seed, math.prod(shape))
        # As seeded.unit_interval(words) >= rate, whose numbers are multiples of 2**-24.
        kept = (words >> np.uint64(40)) >= np.uint64(math.ceil(rate * 2**24))
        return np.where(kept, 1 / (1 - rate), 0.0).reshape(shape)

    return masks


def _ends(values: Sequence[float], missed: float) -> tuple[float, float]:
    """Low and high end; ``missed``: the chance of an honest value outside."""
    count = len(values)
    logs = [math.log(max(value, 1e-300)) for value in values]
    width = quantile(count - 1, 1 - missed) * stdev(logs) * math.sqrt(1 + 1 / count)
    middle = fmean(logs)
    return math.exp(middle - width), math.exp(middle + width)


def _all(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(map(_rounded, values))


def _rounded(value: float) -> float:
    """Round to ten digits: processors differ only in later digits."""
    return float(f"{value:.10g}")
