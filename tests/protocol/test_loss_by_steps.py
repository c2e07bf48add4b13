"""The loss on the test split by number of steps: curves of generated data, noise, real data."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fakes.workloads import cell_of

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Evaluation
from bench_protocol.training import loss_by_steps
from bench_protocol.training.loss_by_steps import RANDOM_LABELS, LossVerdict, evaluated_samples
from bench_protocol.training.measured_limits import limits_of

MLP = workload_named("fashion-mlp")
CELL = cell_of(MLP)
CURVES = {
    workload.name: curve.points
    for workload in CATALOGUE
    if (curve := limits_of(workload).curve) is not None
}
CURVE = CURVES[MLP.name]


def judge(
    cell: Cell, workload: Workload, steps: int, loss: float | None, samples: int | None = None
) -> LossVerdict:
    samples = samples or evaluated_samples(workload)
    evaluation = Evaluation(epochs=0, samples=samples, loss=loss, accuracy=0.5)
    return loss_by_steps.judge(cell, workload, steps, evaluation)


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_falls_from_guessing_to_the_floor_and_is_within_itself(name: str) -> None:
    workload, curve = workload_named(name), CURVES[name]
    losses = [loss for _, loss in curve]
    assert losses == sorted(losses, reverse=True)
    assert all(first < last for (first, _), (last, _) in pairwise(curve))
    assert curve[-1][0] == workload.epochs * workload.steps_per_epoch(workload.batch_size)
    assert losses[0] < math.log(10) + 0.1
    assert losses[-1] > loss_by_steps.lowest_loss(10)
    for steps, loss in curve:
        assert judge(cell_of(workload), workload, steps, loss).verdict == "within"


FLOOR, LAST = loss_by_steps.lowest_loss(10), CURVE[-1][0]
REAL, OTHER = {"data": "real"}, {"workload_digest": "0" * 64}
VGG, RESNET = workload_named("cifar100-vgg16"), workload_named("resnet50-transfer")


def loss_after(share: float) -> float:
    return next(loss for at, loss in CURVE if at >= int(LAST * share))


@pytest.mark.parametrize(
    ("workload", "changes", "steps", "loss", "verdict"),
    [
        # Too few steps, claimed for all of them.
        (MLP, {}, LAST, loss_after(1 / 64), "outside"),
        (MLP, {}, LAST, loss_after(1 / 16), "outside"),
        (MLP, {}, LAST, math.log(10), "outside"),
        # A tenth of the data, learned by heart, has no wrong labels left.
        (MLP, {}, LAST, 0.05, "outside"),
        (MLP, {}, 100 * LAST, 0.05, "outside"),
        (MLP, {}, 100 * LAST, FLOOR, "within"),
        (MLP, {}, CURVE[0][0] - 1, 9.0, "unchecked"),
        # A larger batch gets as far as by steps or by samples: ten epochs of 1,024 have 480 steps.
        (MLP, {"batch_size": 1024}, 480, 1.2, "within"),
        (MLP, {"batch_size": 1024}, 480, math.log(10) + 0.2, "outside"),
        (MLP, {"batch_size": 32}, 4 * LAST, CURVE[-1][1], "within"),
        # Real data is no worse than guessing after an epoch: ln 10 and 3.5 deviations of the mean
        # of 10,000 samples are 2.352.
        (MLP, REAL, 390, 2.34, "within"),
        (MLP, REAL, 390, 2.36, "outside"),
        (MLP, REAL, 389, 2.36, "unchecked"),
        # Data of another version and a workload without a curve: guessing decides.
        (MLP, OTHER, LAST, 1e-7, "within"),
        (VGG, {}, 1_000, 4.6, "within"),
        (VGG, {}, 1_000, 6.0, "outside"),
        # Noise has nothing to learn.
        (RESNET, {}, 10_000, 9.0, "unchecked"),
    ],
)
def test_a_loss_is_judged_by_its_steps(
    workload: Workload, changes: dict[str, Any], steps: int, loss: float, verdict: str
) -> None:
    cell = cell_of(workload).model_copy(update=changes)
    assert judge(cell, workload, steps, loss).verdict == verdict


def test_what_was_not_evaluated_and_what_has_no_curve_say_so() -> None:
    assert VGG.name not in CURVES
    assert loss_by_steps.judge(CELL, MLP, 10_000, None).verdict == "unchecked"
    assert "guessing" in judge(CELL.model_copy(update=OTHER), MLP, LAST, 1e-7).sentence


def test_the_floor_is_that_of_the_data() -> None:
    """Mean loss of a model that gives each class its true probability."""
    data_set = MLP.data_set
    words = seeded.raw_words("data/fashion-mnist/28x28x1/test/labels", seeded.DATA_SEED, 10_000)
    _, labels = seeded.generated_data(data_set, "test")
    classes = ((words >> np.uint64(40)) ** 2 * np.uint64(data_set.patterns) >> np.uint64(48)) % 10
    right = 7 / 8 + 1 / 80
    losses = np.where(labels == classes, -math.log(right), -math.log(1 / 80))
    assert losses.mean() == pytest.approx(loss_by_steps.lowest_loss(10), abs=0.04)


def honest_losses(mean: float, samples: int, sessions: int) -> NDArray[np.float64]:
    """One wrong label in nine costs about 4.1 more; the deviation is 1.45 (JAX: 1.37 to 1.48)."""
    random = np.random.default_rng(seed=7)
    wrong = random.binomial(samples, RANDOM_LABELS * 0.9, sessions)
    costs = random.gamma(4 * wrong + 1e-9, 4.1 / 4)
    return mean + (costs - costs.mean()) / samples


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_no_honest_run_fails_by_the_samples_it_is_evaluated_on(workload: Workload) -> None:
    """At its own number of steps; hard data and random labels are still guessed after an epoch."""
    epoch = workload.steps_per_epoch(workload.batch_size)
    points = CURVES.get(workload.name, ((epoch, math.log(workload.data_set.classes)),))
    steps, mean = points[-1]
    labels = evaluated_samples(workload) * workload.data_set.units_per_sample
    losses = honest_losses(mean, labels, 20_000)
    for data in ("generated", "real"):
        cell = cell_of(workload).model_copy(update={"data": data})
        seen = judge(cell, workload, steps, mean)
        assert seen.verdict == ("unchecked" if workload.data_set.noise else "within")
        if seen.lowest is not None and seen.highest is not None:
            assert np.mean((losses < seen.lowest) | (losses > seen.highest)) <= 2e-3


def test_a_session_is_evaluated_on_as_many_samples_as_cost_little() -> None:
    numbers = [
        evaluated_samples(workload_named(name)) for name in ("fashion-mlp", "cifar100-vgg16")
    ]
    assert numbers[0] == MLP.data_set.test_samples
    assert loss_by_steps.FEWEST_EVALUATED <= numbers[1] < 1_000
    fewer, more = (judge(CELL, MLP, CURVE[-1][0], 1.0, samples) for samples in (100, 10_000))
    assert (fewer.highest or 0) - (more.highest or 0) == pytest.approx(3.5 * 1.4 * 0.09, rel=0.01)


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
@pytest.mark.parametrize("steps", [1, 10_000])
def test_a_loss_that_is_no_number_is_no_honest_one(workload: Workload, steps: int) -> None:
    seen = judge(cell_of(workload), workload, steps, None)
    assert (seen.verdict, seen.sentence) == ("outside", "its loss on the test split is no number")
