"""The loss on the test split by number of steps: what a timed session must reach.

Generated data is learned slowly, so the loss tells how many steps were trained. Evaluations after
all epochs have bands of their own (:mod:`.accuracy`).
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ..catalogue.matrix import Cell
from ..catalogue.workloads import DataSet, Workload
from ..payload.result import Evaluation
from .measured_limits import limits_of

Points = tuple[tuple[int, float], ...]

# Honest curves differ by at most this share of what is left above the lowest loss.
CURVE_SPREAD = 0.15
# Standard deviation of one sample's loss, and how many of them the mean of some may be off. A wrong
# label costs about 4.1 more than a right one: 4.1 sqrt(0.11 x 0.89) = 1.3. Measured at the end of
# training: 1.37 to 1.48.
SAMPLE_DEVIATION, DEVIATIONS = 1.4, 3.5
# A session is evaluated on as many samples as this many FLOPs pass forward, and on no fewer.
EVALUATED_FLOPS, FEWEST_EVALUATED = 2e11, 64
# One label in eight is drawn at random (docs/protocol.md).
RANDOM_LABELS = 1 / 8
# The chances that one of a token's four likely successors follows it, and that any token does.
SUCCESSOR_SHARES, SPREAD = (1 / 2, 1 / 4, 1 / 8, 1 / 16), 1 / 16


@dataclass(frozen=True)
class LossVerdict:
    """``sentence`` is for people; ``lowest`` and ``highest``: where an honest loss lies."""

    verdict: Literal["within", "outside", "unchecked"]
    sentence: str
    lowest: float | None = None
    highest: float | None = None


def evaluated_samples(workload: Workload) -> int:
    """Test samples on which a session is evaluated that was not timed for whole epochs."""
    forward = workload.training_flops_per_sample / 3
    affordable = max(FEWEST_EVALUATED, int(EVALUATED_FLOPS / forward))
    return min(workload.data_set.test_samples, affordable)


def judge(cell: Cell, workload: Workload, steps: int, evaluation: Evaluation | None) -> LossVerdict:
    """Compare the loss on the test split with the range of honest trainings of the same length.

    On generated data that is a range around the measured curve. Without a curve, and on real data,
    after one epoch the loss must be below that of guessing: hard data such as CIFAR-100 is hardly
    learned by then. Noise can be learned by nobody, so it has no range.

    Args:
        cell: its data, batch size and workload digest count.
        workload: of today's catalogue.
        steps: all steps of the session, warm-up and first step included.
    """
    if evaluation is None:
        return LossVerdict("unchecked", "the session was not evaluated")
    if evaluation.loss is None:
        return LossVerdict("outside", "its loss on the test split is no number")
    if workload.data_set.noise:
        return LossVerdict("unchecked", "the data is noise: there is nothing to learn")
    loss, measured = evaluation.loss, limits_of(workload).curve
    noise = DEVIATIONS * SAMPLE_DEVIATION / math.sqrt(evaluation.samples)
    comparable = cell.data == "generated" and cell.workload_digest == workload.digest
    if measured is None or not comparable:
        return _below_guessing(cell, workload, steps, loss, noise)
    curve = measured.points
    # With another batch size progress lies between that of equal steps and of equal samples.
    by_samples = steps * cell.batch_size / workload.batch_size
    fewest, most = sorted((float(steps), by_samples))
    if fewest < curve[0][0]:
        return LossVerdict("unchecked", f"{steps:,} steps are too few to judge the loss by")
    floor = floor_of(workload.data_set)
    slow, fast = _at(curve, fewest), _at(curve, most)
    # The loss may fall to the floor after the last step of the curve.
    fast = fast - CURVE_SPREAD * (fast - floor) if most <= curve[-1][0] else floor
    lowest = max(0.0, fast - noise)
    highest = slow + CURVE_SPREAD * (slow - floor) + noise
    return LossVerdict(
        "within" if lowest <= loss <= highest else "outside",
        f"its loss on the test split is {loss:.3g}; after {steps:,} steps of {cell.batch_size} it "
        f"is {lowest:.3g} to {highest:.3g}",
        lowest,
        highest,
    )


def floor_of(data_set: DataSet) -> float:
    """The lowest mean loss on a data set's generated samples.

    Of text: the entropy of a token's successors (:mod:`..catalogue.tokens`), less what is lost
    where two of them are one token: 3 / classes, twice its mean.
    """
    if not data_set.tokens:
        return lowest_loss(data_set.classes)
    chances = [share + SPREAD / data_set.classes for share in SUCCESSOR_SHARES]
    rare = SPREAD / data_set.classes
    entropy = -sum(chance * math.log(chance) for chance in chances)
    entropy -= (data_set.classes - len(chances)) * rare * math.log(rare)
    return max(0.0, entropy - 3 / data_set.classes)


def lowest_loss(classes: int) -> float:
    """Mean loss of a model that errs only on the labels that were drawn at random."""
    wrong = RANDOM_LABELS / classes
    right = 1 - RANDOM_LABELS + wrong
    return -right * math.log(right) - (classes - 1) * wrong * math.log(wrong)


def _at(curve: Points, steps: float) -> float:
    """The curve at a number of steps: linear in the logarithm of the steps, constant outside."""
    for (first, begin), (last, end) in pairwise(curve):
        if first <= steps <= last:
            share = math.log(steps / first) / math.log(last / first)
            return begin + share * (end - begin)
    return curve[-1][1] if steps > curve[-1][0] else curve[0][1]


def _below_guessing(
    cell: Cell, workload: Workload, steps: int, loss: float, noise: float
) -> LossVerdict:
    epoch, guessing = workload.steps_per_epoch(cell.batch_size), math.log(workload.data_set.classes)
    if steps < epoch:
        return LossVerdict(
            "unchecked", f"{steps:,} of an epoch's {epoch:,} steps are too few to judge the loss by"
        )
    highest = guessing + noise
    return LossVerdict(
        "within" if loss < highest else "outside",
        f"its loss on the test split is {loss:.3g}; guessing gives up to {highest:.3g}",
        0.0,
        highest,
    )
