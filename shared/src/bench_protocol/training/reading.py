"""Readings of a timed session: the steps that it trains again after the timing, and from where.

A session goes back to its starting weights, but to no number that would betray it: its counters go
on, it is in the middle of an epoch, and its calls are as long as the timed blocks. So code that
depends on a step's number, a call's length or an epoch's end does in a reading what it did in the
timing. Everything follows from the workload and the session's seed; reading it needs no NumPy.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from ..catalogue.layers import (
    LSTM,
    BatchNorm,
    CausalAttention,
    Conv2D,
    Dropout,
    Layer,
    LayerNorm,
    PlainLayer,
    Residual,
    Shape,
)
from ..catalogue.workloads import Workload

# The counters of a session go on by this much. Adam's bias corrections are 1 from here on, to
# 1e-7, so the recomputation need not know how many steps the session had trained.
COUNTED_ON = 16_384
# The optimiser's state at the start of a reading: velocities and means are 0, mean squares this,
# about the square of a gradient in training. From an empty state RMSprop and Adam move a weight a
# full step whatever its gradient, so rounding decides where a gradient is nearly zero: mnist-cnn
# moved up to 2e-1 differently after 24 steps, and 2e-6 from this state (JAX against float64).
MEAN_SQUARE = 1e-4

# Cost of a training sample in the recomputation, on a core with AVX-512: FLOPs of convolutions and
# products a second, and seconds of one output value, all layers' passes together. Fitted to the
# sessions of the catalogue, whose times are within 15 % of it where they are over a second.
FLOPS, VALUE_SECONDS = 4.5e10, 9e-9
# A frozen layer's outputs are computed once, with no pass backward.
FROZEN_SHARE = 1 / 3
# Values of an LSTM's unit in each time step: four gates, cell and output.
LSTM_VALUES = 6
# Processor seconds of all trainings behind the readings of a session.
SECONDS = 10.0
# Processor seconds of steady readings, and the most of a first batch's loss beside them.
STEADY_SECONDS, START_SECONDS = 6.0, 11.0
# Deep readings have this many steps at the default batch and below, although that may take longer.
LEAST_STEPS = 3
# A larger batch costs minutes for one result.
MOST_TIMES = 8
# Beyond this many steps rounding has changed a training too much to tell a fault from it; where
# convolutions are trained sooner (docs/results.md, "Readings").
MOST_STEPS, MOST_CONVOLVED = 512, 24
# The part of the deepest reading by which the seed may shorten it.
DRAWN_PART = 4
# JAX, and TensorFlow under XLA, train this many steps in one program, and fewer in another. So this
# many come before the epoch's end where a reading has more.
STEPS_PER_LOOP = 16
# Short readings are nearly exact. What rounding decides in them is recomputed: pairs of trainings
# from starting weights that differ a little.
SHORT_STEPS, ROUNDING_PAIRS = 3, 3
# Dropout's masks are the framework's own: what a reading with them may give is the range over this
# many trainings with other masks. Fewer steps show another rate less clearly; at most this part of
# the budget pays for them.
MASK_DRAWS, MASK_STEPS, MASKS_PART = 12, 24, 2
Kind = Literal["deep", "short", "first", "masks"]
# Those whose calls are compared with the timed blocks.
PACED: tuple[Kind, ...] = ("deep", "masks")


@dataclass(frozen=True)
class Part:
    """The part of a job that a reading trains: ``steps`` steps, the first of which is number
    ``first`` of an epoch of ``per_epoch`` steps, counted from 0.

    ``kind``: ``deep``: as many steps as can be recomputed and compared, dropout off; ``short``: a
    few, dropout off; ``first``: a few, dropout off, the only one from an optimiser's empty state
    and from step 1 by its counter, which shows Adam's bias corrections; ``masks``: some with the
    framework's own dropout, made twice: the masks must differ, and have the layers' rates.
    """

    kind: Kind
    first: int
    steps: int
    per_epoch: int

    @property
    def epochs(self) -> int:
        return math.ceil((self.first + self.steps) / self.per_epoch)

    def calls(self, steps_per_call: int) -> list[int]:
        """The steps of each call: those of a block, and what is left."""
        whole, rest = divmod(self.steps, steps_per_call)
        return [steps_per_call] * whole + [rest] * bool(rest)

    def ends_epoch(self, steps_per_call: int) -> list[bool]:
        """Whether each call reaches an epoch's end."""
        ends = accumulate(self.calls(steps_per_call), initial=self.first)
        return [end // self.per_epoch > begin // self.per_epoch for begin, end in pairwise(ends)]


def parts(workload: Workload, batch_size: int, seed: str) -> tuple[Part, ...]:
    """The parts of its job that a session trains again: a deep one, two short ones where they are
    affordable; where layers drop, twice one that shows its masks.

    The seed draws how many of the steps come before the epoch's end: at least ``STEPS_PER_LOOP``,
    or 1 where it has no more; of two or more, not all. It draws the length of the deep reading,
    from three quarters of what is affordable. The two short ones begin at different places, so that
    one goes two steps beyond the end.
    """
    has_short, most, masks = _affordable(workload, batch_size)
    kinds: list[Kind] = ["deep"]
    if is_steady(workload):
        kinds.append("first")
    elif has_short:
        kinds += ["short", "first"]
    if drops(workload):
        kinds.append("masks")
    # A batch beyond the training split fails another check.
    per_epoch = max(1, workload.steps_per_epoch(batch_size))
    made, before = [], 0
    for number, kind in enumerate(kinds):
        digest = hashlib.sha256(f"trainmark/reading/v1/{seed}/{number}".encode()).digest()
        shorter, drawn = (int.from_bytes(digest[at : at + 8]) for at in (0, 8))
        before = before + 1 if kind == "first" else drawn
        steps = min(masks if kind == "masks" else SHORT_STEPS, most)
        if kind == "deep":
            steps = most - shorter % (most // DRAWN_PART + 1)
        most_before = max(1, min(steps - 1, per_epoch))
        least_before = STEPS_PER_LOOP if most_before >= STEPS_PER_LOOP else 1
        until_end = least_before + before % (most_before - least_before + 1)
        made.append(Part(kind, per_epoch - until_end, steps, per_epoch))
    return (*made, made[-1]) if drops(workload) else tuple(made)


def parts_recomputed(done: Sequence[Part]) -> tuple[Part, ...]:
    """The parts that a recomputation trains: each once, and those that show masks only where it can
    afford the range over masks, beside short ones."""
    with_range = any(part.kind == "short" for part in done)
    return tuple(part for part in dict.fromkeys(done) if part.kind != "masks" or with_range)


def restarted(count: int, first: bool) -> int:
    """A counter of steps after a restart; ``first``: for a reading of first steps."""
    return 0 if first else count + COUNTED_ON


def mean_square(first: bool) -> float:
    """The mean squares of an optimiser's state after a restart."""
    return 0.0 if first else MEAN_SQUARE


def drops(workload: Workload) -> bool:
    return any(isinstance(layer, Dropout) for layer in workload.layers)


def convolves(workload: Workload) -> bool:
    return any(isinstance(layer, Conv2D) for layer in _inner(workload, workload.frozen_layers))


def normalises_by_batch(workload: Workload) -> bool:
    return any(isinstance(one, BatchNorm) and one.statistics == "batch" for one in _inner(workload))


def is_steady(workload: Workload) -> bool:
    """Whether trained normalisations keep rounding from deciding a reading of a few steps."""
    trained = _inner(workload, workload.frozen_layers)
    return normalises_by_batch(workload) or any(isinstance(one, LayerNorm) for one in trained)


def distinct(workload: Workload, batch_size: int) -> int:
    """How many samples a batch of a reading has; it repeats them where they are fewer
    (:func:`..catalogue.seeded.reading_order`). Few are enough where readings are steady."""
    if not is_steady(workload):
        return batch_size
    affordable = int(STEADY_SECONDS / SECONDS * recomputed_samples(workload))
    return max(1, min(batch_size, affordable // (2 * SHORT_STEPS)))


def has_start_loss(workload: Workload, batch_size: int) -> bool:
    """Whether the first batch's loss is recomputed: of a whole batch, forward only."""
    if not is_steady(workload):
        return True
    affordable = START_SECONDS / SECONDS * recomputed_samples(workload)
    return batch_size * FROZEN_SHARE <= affordable


def is_affordable(workload: Workload, batch_size: int) -> bool:
    """Whether a server recomputes the readings: one step of all takes at most ``MOST_TIMES`` times
    ``SECONDS``, and its samples exist."""
    if batch_size > workload.data_set.train_samples:
        return False
    return distinct(workload, batch_size) <= MOST_TIMES * recomputed_samples(workload)


def recomputed_samples(workload: Workload) -> int:
    """Training samples that one core recomputes in ``SECONDS``."""
    values = 0.0
    for index, layer in enumerate(workload.layers):
        frozen = index < workload.frozen_layers
        inputs = workload.shapes[index]
        if isinstance(layer, Residual) and not frozen:
            values += sum(_values(part.layer, part.inputs) for part in layer.parts(inputs))
        values += (FROZEN_SHARE if frozen else 1.0) * _values(layer, inputs)
    seconds = workload.training_flops_per_sample / FLOPS + VALUE_SECONDS * values
    return max(1, int(SECONDS / seconds))


def _values(layer: Layer, inputs: Shape) -> int:
    """Values that a layer computes of a sample: its outputs, of an LSTM in each step, of attention
    each position's share of each."""
    outputs = math.prod(layer.output_shape(inputs))
    match layer:
        case LSTM():
            return inputs[0] * LSTM_VALUES * outputs
        case CausalAttention():
            return layer.heads * inputs[0] ** 2 + outputs
    return outputs


def _inner(workload: Workload, first: int = 0) -> Iterator[PlainLayer]:
    """Layers from ``first`` on, those inside residual blocks too."""
    for layer, inputs in list(zip(workload.layers, workload.shapes, strict=False))[first:]:
        if isinstance(layer, Residual):
            yield from (part.layer for part in layer.parts(inputs))
        else:
            yield layer


def _affordable(workload: Workload, batch_size: int) -> tuple[bool, int, int]:
    """Whether there are short readings, the most steps of a deep one, and the steps of one that
    shows masks.

    A deep one has as many as are recomputed in ``SECONDS``, or ``LEAST_STEPS`` at the default batch
    and below; at least one. Without short readings, masks are only compared with each other.
    """
    if is_steady(workload):
        return False, LEAST_STEPS, SHORT_STEPS
    steps = recomputed_samples(workload) // batch_size
    short = 2 * SHORT_STEPS * (1 + 2 * ROUNDING_PAIRS)
    has_short, masks, deep = steps > short + 1, SHORT_STEPS, steps
    if has_short and drops(workload):
        masks = min(MASK_STEPS, (steps - short) // (MASKS_PART * MASK_DRAWS))
        has_short = masks >= SHORT_STEPS
    if has_short:
        deep = steps - short - drops(workload) * MASK_DRAWS * masks
    least = LEAST_STEPS * batch_size
    if batch_size <= workload.batch_size and least <= MOST_TIMES * recomputed_samples(workload):
        deep = max(LEAST_STEPS, deep)
    most = MOST_CONVOLVED if convolves(workload) else MOST_STEPS
    return has_short, max(1, min(most, deep)), max(SHORT_STEPS, masks)
