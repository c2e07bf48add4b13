"""The parts of its job that a session trains again: which steps, how many, from where."""

import math

import pytest
from tests.fakes.workloads import TINY, variant

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.seeded import initial_weights
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import MOST_CALLS, Witness, trained_tensors
from bench_protocol.training import reading
from bench_protocol.training.reading import (
    DRAWN_PART,
    MASK_DRAWS,
    MASK_STEPS,
    MOST_CONVOLVED,
    MOST_STEPS,
    ROUNDING_PAIRS,
    SHORT_STEPS,
    STEPS_PER_LOOP,
    Part,
    drops,
    is_affordable,
    parts,
    parts_recomputed,
    recomputed_samples,
)

SEEDS = [nonces.seed_of(f"{number:064x}", "d1" * 32) for number in range(40)]
MOST_READINGS = next(
    one.max_length
    for one in Witness.model_fields["readings"].metadata
    if hasattr(one, "max_length")
)
every_session = pytest.mark.parametrize(
    ("workload", "batch_size"),
    [
        pytest.param(workload, size, id=f"{workload.name}-{size}")
        for workload in CATALOGUE
        for size in {workload.batch_size, *workload.batch_sizes}
    ],
)


@every_session
def test_the_parts_of_every_session_of_the_catalogue(workload: Workload, batch_size: int) -> None:
    assert is_affordable(workload, batch_size)
    per_epoch = workload.steps_per_epoch(batch_size)
    longest = MOST_CONVOLVED if reading.convolves(workload) else MOST_STEPS
    for seed in SEEDS:
        made = parts(workload, batch_size, seed)
        assert made == parts(workload, batch_size, seed)
        assert len(made) <= MOST_READINGS
        kinds = tuple(part.kind for part in made)
        if reading.is_steady(workload):
            assert kinds == ("deep", "first")
            continue
        assert len({part.first for part in made if part.kind in ("short", "first")}) in (0, 2)
        assert kinds in (
            ("deep", *short, *["masks"] * 2 * drops(workload)) for short in ((), ("short", "first"))
        )
        assert not drops(workload) or made[-1] == made[-2]
        for part in made:
            assert part.per_epoch == per_epoch
            assert 0 <= part.first < per_epoch
            assert 1 <= part.steps <= min(longest, MOST_CALLS)
            # The end is after the last step only where there is one step.
            until_end = per_epoch - part.first
            assert until_end < part.steps or (until_end, part.steps) == (1, 1)
            # A whole loop comes before it where there is room: in the first call of any length.
            has_room = min(part.steps - 1, per_epoch) >= STEPS_PER_LOOP
            assert not has_room or until_end >= STEPS_PER_LOOP
            assert part.epochs == -(-(part.first + part.steps) // per_epoch)
            if part.kind != "deep":
                assert part.steps <= (MASK_STEPS if part.kind == "masks" else SHORT_STEPS)


def test_the_calls_that_reach_an_epochs_end() -> None:
    assert Part("deep", 5, 14, 8).calls(3) == [3, 3, 3, 3, 2]
    assert Part("deep", 5, 14, 8).ends_epoch(3) == [True, False, False, True, False]


@every_session
def test_readings_cost_what_they_may(workload: Workload, batch_size: int) -> None:
    made = [parts(workload, batch_size, seed) for seed in SEEDS]
    ranged = 1 if reading.is_steady(workload) else 1 + 2 * ROUNDING_PAIRS
    trainings = {"deep": 1, "short": ranged, "first": ranged, "masks": MASK_DRAWS}
    steps = max(
        sum(trainings[part.kind] * part.steps for part in parts_recomputed(one)) for one in made
    )
    most = recomputed_samples(workload)
    if not any(part.kind == "short" for part in made[0]):
        most *= reading.MOST_TIMES
    assert steps * reading.distinct(workload, batch_size) <= most


def test_a_session_of_a_large_batch_is_not_recomputed() -> None:
    vgg = workload_named("cifar100-vgg16")
    limit = reading.MOST_TIMES * recomputed_samples(vgg)
    assert is_affordable(vgg, limit)
    assert not is_affordable(vgg, limit + 1)
    dense = workload_named("mnist-dense")  # more samples could be paid than there are
    samples = dense.data_set.train_samples
    assert is_affordable(dense, samples)
    assert not is_affordable(dense, samples + 1)


@pytest.mark.parametrize("name", ["mnist-dense", "mnist-cnn", "fashion-lstm", "fashion-mlp"])
def test_the_seed_draws_length_and_position(name: str) -> None:
    """Nobody knows before which steps are read."""
    workload = workload_named(name)
    made = [parts(workload, workload.batch_size, seed)[0] for seed in SEEDS]
    lengths = [part.steps for part in made]
    assert max(lengths) - max(lengths) // DRAWN_PART <= min(lengths) < max(lengths)
    assert len(set(lengths)) >= 4
    assert len({part.first for part in made}) >= 4


def test_readings_of_one_session_end_at_different_steps() -> None:
    made = [parts(workload_named("fashion-mlp"), 128, seed) for seed in SEEDS]
    assert any(one[0].steps != one[3].steps for one in made)
    assert {one[1].first - one[2].first for one in made} == {-1, 1}


@pytest.mark.parametrize(
    ("steps", "per_call", "calls"),
    [(7, 3, [3, 3, 1]), (6, 3, [3, 3]), (2, 3, [2]), (3, 1, [1, 1, 1])],
)
def test_calls_are_as_long_as_blocks(steps: int, per_call: int, calls: list[int]) -> None:
    assert Part("deep", 1, steps, 16).calls(per_call) == calls


def test_a_part_of_several_epochs() -> None:
    assert [Part("deep", 1, steps, 2).epochs for steps in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]
    made = parts(TINY, 128, SEEDS[0])[0]
    assert made.epochs == math.ceil((made.first + made.steps) / 2) > 100


def test_dropout_and_convolutions_of_frozen_layers_do_not_count() -> None:
    resnet, vgg = workload_named("resnet50-transfer"), workload_named("cifar100-vgg16")
    assert not reading.convolves(resnet)
    assert reading.convolves(variant(resnet, frozen_layers=0))
    assert reading.convolves(vgg)


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_the_trained_tensors_are_those_of_the_weights(workload: Workload) -> None:
    weights = initial_weights(workload)
    tensors = list(trained_tensors(workload))
    assert all(weights[t.index][t.name].shape == t.shape for t in tensors)
    assert sum(weights[t.index][t.name].size for t in tensors) == workload.trained_parameter_count
    assert {(t.index, t.name) for t in tensors} <= {
        (index, name) for index, values in enumerate(weights) for name in values
    }


def test_a_residual_blocks_tensors_are_main_then_shortcut() -> None:
    resnet = workload_named("resnet50-transfer")
    fields = {name: getattr(resnet, name) for name in Workload.model_fields}
    trained = list(trained_tensors(Workload(**fields | {"frozen_layers": 0})))
    names = [tensor.name for tensor in trained if tensor.index == trained[4].index]
    assert names[:4] == ["main.0.kernel", "main.0.bias", "main.1.gamma", "main.1.beta"]
    assert names[-2:] == ["shortcut.1.gamma", "shortcut.1.beta"]
    assert len(trained) == 214
