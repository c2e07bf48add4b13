"""The loss of training by number of steps: what a timed session must show on generated data.

Generated data is learned slowly, so the loss of the last batch tells how many steps were trained.
Evaluations after all epochs have bands of their own (:mod:`.accuracy`).
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ..catalogue.matrix import Cell
from ..catalogue.workloads import Workload

# Steps and the mean loss after them, at the default batch. Measured with
# python -m benchmarks.limits.learning_curves on x86-64, 2026-11-24 (docs/notebook): means over
# n sessions of the last losses where the workload has Dropout, else of the test losses, which are
# as large and less noisy. The three other workloads took too long to be measured.
Curve = tuple[tuple[int, float], ...]
CURVES: dict[str, Curve] = {
    # n = 5
    "fashion-mlp": ((60, 2.175), (243, 1.868), (975, 1.242), (1950, 1.001), (3900, 0.856)),
    # n = 5
    "mnist-dense": ((146, 2.099), (585, 1.789), (2343, 1.175), (4687, 0.973), (9375, 0.871)),
    # n = 2, at the end 1
    "fashion-convnet": ((60, 2.264), (243, 2.048), (975, 1.354), (1950, 1.033), (3900, 0.859)),
    # n = 2
    "fashion-lstm": ((60, 2.270), (243, 2.179), (975, 1.677), (1950, 1.225), (3900, 0.928)),
}
# Honest curves differ by at most this share of what is left above the lowest loss.
CURVE_SPREAD = 0.15
# Standard deviation of one sample's loss, and how many of them a batch's mean may be off. A wrong
# label costs about 4.1 more than a right one: 4.1 sqrt(0.11 x 0.89) = 1.3. Measured at the end of
# training: 1.37 to 1.48. Wrong labels are few, so a batch of 32 strays far upwards: of 24,000
# honest ones by 5.3 deviations at most, downwards by 3.3.
SAMPLE_DEVIATION, DEVIATIONS_BELOW, DEVIATIONS_ABOVE = 1.4, 3.5, 5.5
# One label in eight is drawn at random (docs/protocol.md).
RANDOM_LABELS = 1 / 8


@dataclass(frozen=True)
class LossVerdict:
    """``sentence`` is for people; ``lowest`` and ``highest``: where an honest loss lies."""

    verdict: Literal["within", "outside", "unchecked"]
    sentence: str
    lowest: float | None = None
    highest: float | None = None


def judge(cell: Cell, workload: Workload, steps: int, last_loss: float | None) -> LossVerdict:
    """Compare the loss of the last batch with the range of honest trainings of the same length.

    Generated data: a range around the measured curve. Without a curve and on real data: below what
    guessing may cost in one batch, after an epoch; hard data such as CIFAR-100 is hardly learned
    by then. Data that is noise by its definition can be learned by nobody,
    so nothing is said of it.

    Args:
        cell: its data, batch size and workload digest count.
        workload: of today's catalogue.
        steps: all steps of the session, warm-up and first step included.
        last_loss: of the last batch; None if it was not finite, which another check judges.
    """
    if last_loss is None:
        return LossVerdict("unchecked", "there is no last loss")
    if workload.data_set.noise:
        return LossVerdict("unchecked", "the data is noise: there is nothing to learn")
    curve = CURVES.get(workload.name)
    known = cell.data == "generated" and cell.workload_digest == workload.digest
    if curve is None or not known:
        return _below_guessing(cell, workload, steps, last_loss)
    # With another batch size progress lies between that of equal steps and of equal samples.
    by_samples = steps * cell.batch_size / workload.batch_size
    fewest, most = sorted((float(steps), by_samples))
    if fewest < curve[0][0]:
        return LossVerdict("unchecked", f"{steps:,} steps are too few to judge the loss by")
    floor = lowest_loss(workload.data_set.classes)
    slow, fast = _at(curve, fewest), _at(curve, most)
    # After the curve's last step the loss may fall to the floor.
    fast = fast - CURVE_SPREAD * (fast - floor) if most <= curve[-1][0] else floor
    deviation = SAMPLE_DEVIATION / math.sqrt(cell.batch_size)
    lowest = max(0.0, fast - DEVIATIONS_BELOW * deviation)
    highest = slow + CURVE_SPREAD * (slow - floor) + DEVIATIONS_ABOVE * deviation
    return LossVerdict(
        "within" if lowest <= last_loss <= highest else "outside",
        f"the last loss is {last_loss:.3g}; after {steps:,} steps of {cell.batch_size} it is "
        f"{lowest:.3g} to {highest:.3g}",
        lowest,
        highest,
    )


def lowest_loss(classes: int) -> float:
    """Mean loss of a model that errs only on the labels that were drawn at random."""
    wrong = RANDOM_LABELS / classes
    right = 1 - RANDOM_LABELS + wrong
    return -right * math.log(right) - (classes - 1) * wrong * math.log(wrong)


def _at(curve: Curve, steps: float) -> float:
    """The curve at a number of steps: linear in the logarithm of the steps, constant outside."""
    for (first, begin), (last, end) in pairwise(curve):
        if first <= steps <= last:
            share = math.log(steps / first) / math.log(last / first)
            return begin + share * (end - begin)
    return curve[-1][1] if steps > curve[-1][0] else curve[0][1]


def _below_guessing(cell: Cell, workload: Workload, steps: int, last_loss: float) -> LossVerdict:
    epoch, guessing = workload.steps_per_epoch(cell.batch_size), math.log(workload.data_set.classes)
    if steps < epoch:
        return LossVerdict(
            "unchecked", f"{steps:,} of an epoch's {epoch:,} steps are too few to judge the loss by"
        )
    highest = guessing + DEVIATIONS_ABOVE * SAMPLE_DEVIATION / math.sqrt(cell.batch_size)
    return LossVerdict(
        "within" if last_loss < highest else "outside",
        f"the last loss is {last_loss:.3g}; guessing gives {guessing:.3g}, in one batch up to "
        f"{highest:.3g}",
        0.0,
        highest,
    )
