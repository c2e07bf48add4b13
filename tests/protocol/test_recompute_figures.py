"""The figures of a recomputation: which ranges of losses and movements an honest session has."""

import importlib
import math
from functools import partial

import numpy as np
import pytest
from tests.fakes.workloads import TINY, dropped, variant

from bench_protocol.catalogue import nonces, seeded
from bench_protocol.catalogue.layers import Dense, Flatten
from bench_protocol.catalogue.workloads import SGD, Workload
from bench_protocol.recompute import Job, Training
from bench_protocol.recompute.figures import MISSED, figures
from bench_protocol.statistics.student_t import quantile
from bench_protocol.training.reading import MASK_DRAWS, Part, parts, parts_recomputed
from bench_protocol.training.recomputed import Recomputed

# The package has a function of the module's name.
recompute_figures = importlib.import_module("bench_protocol.recompute.figures")
SEED, NONCE, BATCH = "0123456789abcdef" * 2, "ab" * 32, 16
PER_EPOCH = TINY.steps_per_epoch(BATCH)


def by_part(workload: Workload) -> list[tuple[Part, Recomputed]]:
    done = parts_recomputed(parts(workload, BATCH, job_of(workload).seed))
    return list(zip(done, figures(workload, NONCE, BATCH).readings, strict=True))


def job_of(workload: Workload) -> Job:
    return Job(workload, BATCH, nonces.seed_of(NONCE, workload.digest))


def right_of(workload: Workload, part: Part) -> tuple[float, ...]:
    again = Training(job_of(workload), part)
    return again.train(), *again.movements()


def ranges(made: Recomputed) -> list[tuple[float, float]]:
    return [made.loss_range, *made.movement_ranges]


def test_the_figures_of_a_session() -> None:
    """Losses of deep readings are exact, their movements but for rounding; short readings are in a
    narrow range around the right value; those that show masks have none."""
    workload = variant(TINY, layers=(Flatten(), Dense(units=64), Dense(units=10)))
    made = by_part(workload)
    assert [part.kind for part, _ in made] == ["deep", "short", "first"]
    for part, found in made:
        right = right_of(workload, part)
        for (low, high), value in zip(ranges(found), right, strict=True):
            if part.kind == "deep":
                assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
            else:
                assert low < value < high
            assert high - low < 1e-3 * value
        if part.kind == "deep":
            assert found.loss_range == (pytest.approx(right[0], rel=1e-9),) * 2
    assert [part.kind for part, _ in by_part(dropped())] == [
        *("deep", "short", "first", "masks"),
    ]


def test_a_movement_that_float32_cannot_add_is_in_its_range() -> None:
    """An engine's float32 weights stay where they are, and those of float64 move."""
    workload = variant(TINY, optimizer=SGD(learning_rate=1e-9, momentum=0.0))
    (part, found), *_ = by_part(workload)
    made = Training(job_of(workload), part)
    for _ in range(part.steps):
        made.step()
        for values in made.weights:
            for value in values.values():
                value[:] = value.astype(np.float32)
    kernels = [0, 2]
    moved, right = made.movements(), right_of(workload, part)[1:]
    for index in kernels:
        low, high = found.movement_ranges[index]
        assert low <= moved[index] <= high
        assert abs(moved[index] / right[index] - 1) > 0.1


def test_the_start_loss_is_that_of_the_first_batch() -> None:
    expected = Training(job_of(TINY), Part("deep", 0, 1, PER_EPOCH)).loss()
    assert figures(TINY, NONCE, BATCH).start_loss == pytest.approx(expected, rel=1e-9)
    assert figures(TINY, "cd" * 32, BATCH) != figures(TINY, NONCE, BATCH)


def test_what_rounding_decides_is_in_the_range_of_a_short_reading() -> None:
    """An input of a ReLU within a rounding of zero: the bias that follows may move or not."""

    class OnEdge:
        """A training whose loss jumps with the least change of a weight."""

        def __init__(self) -> None:
            self.restart()

        def restart(self) -> None:
            self.weights = [{"kernel": np.ones(4)}]

        def train(self) -> float:
            return 2.0 if self.weights[0]["kernel"].min() >= 1 else 2.001

        def movements(self) -> tuple[float, ...]:
            return (1.0,)

    made = recompute_figures._short(OnEdge(), Job(TINY, BATCH, SEED))
    assert made.loss_range == pytest.approx((2 - 4e-3, 2 + 4e-3))
    assert made.movement_ranges == [(1.0, 1.0)]


def test_masks_and_steps_have_streams_of_their_own() -> None:
    workload = dropped()
    job = Job(workload, BATCH, SEED)
    streams = [(draw, step) for draw in range(2) for step in range(2)]
    made = [recompute_figures._masks(job, *stream)(1, (BATCH, 64)) for stream in streams]
    assert len({mask.tobytes() for mask in made}) == 4
    shown = Training(job, Part("masks", 0, 2, PER_EPOCH))
    runs = []
    for draw in (0, 1, 0):
        shown.restart()
        runs.append(shown.train(partial(recompute_figures._masks, job, draw)))
    assert runs[0] == runs[2] != runs[1]


@pytest.mark.parametrize("rate", [2**-25, 0.2, 0.3, 0.5, 1 - 2**-25])
def test_a_mask_keeps_the_numbers_that_reach_its_rate(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(dropped(rate=rate), BATCH, SEED)
    nearest = np.clip(int(rate * 2**24) + np.arange(-2, 3), 0, 2**24 - 1).astype(np.uint64)
    words = (nearest << np.uint64(40)) + np.uint64(2**40 - 1)
    monkeypatch.setattr(seeded, "raw_words", lambda stream, seed, count: words)
    kept = recompute_figures._masks(job, 2, 1)(1, (len(words),))
    numbers = seeded.unit_interval(words)
    np.testing.assert_array_equal(kept, np.where(numbers >= rate, 1 / (1 - rate), 0.0))


def test_another_draw_of_masks_lies_in_the_range() -> None:
    workload = dropped(Dense(units=64))
    (part, found) = by_part(workload)[-1]
    job = job_of(workload)
    again = Training(job, part)
    draw = partial(recompute_figures._masks, job, MASK_DRAWS)
    other = again.train(draw), *again.movements()
    for (low, high), value in zip(ranges(found), other, strict=True):
        assert low < value < high < 3 * low


def test_all_movements_together_are_missed_as_seldom_as_one_loss() -> None:
    """Four movements that are as spread as the loss have a wider range each."""

    values = iter((1.0, 1.1, 0.9, 1.2, 1.0, 0.8) * 2)

    class Drawn:
        def restart(self) -> None:
            self.value = next(values)

        def train(self, masks: object) -> float:
            return self.value

        def movements(self) -> tuple[float, ...]:
            return (self.value,) * 4

    found = recompute_figures._dropping(Drawn(), Job(dropped(), BATCH, SEED))
    loss, *moved = (math.log(high / low) for low, high in ranges(found))
    wider = quantile(11, 1 - MISSED / 4) / quantile(11, 1 - MISSED)
    assert moved == pytest.approx([wider * loss] * 4)
