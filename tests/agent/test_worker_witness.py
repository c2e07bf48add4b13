"""What the worker reads from the timed session: losses, steps, movements, masks."""

import math

import numpy as np
import pytest
from tests.fakes.engine import FakeEngine, answer, failed, measured
from tests.fakes.workloads import TINY, job_of, variant

from bench_agent.worker import conformance_trace
from bench_agent.worker import main as worker
from bench_protocol.catalogue.layers import Dense, Dropout, Flatten
from bench_protocol.payload.witness import Mask, Rewound

LAYERS = (Flatten(), Dropout(rate=1 / 3), Dense(units=10, activation="linear"))
WITH_DROPOUT = variant(TINY, layers=LAYERS)


def test_the_timed_session_tells_of_its_training(engine: FakeEngine) -> None:
    """Losses in the warm-up's first calls, the rest at the end. Every tiny weight moved by one."""
    ended, _ = answer(engine)
    measurement = measured(ended)
    assert engine.session.blocks[:3] == [1, 3, 4]  # an epoch has 16 steps
    blocks = measurement.blocks
    witness = measurement.witness
    assert witness is not None
    assert (witness.steps, witness.losses, witness.counted_by) == ((1, 4, 8), (0.5,) * 3, "loop")
    calls_after = 10 + len(witness.steps)  # steps after the timing, the rewound session
    assert witness.step_count == sum(engine.session.blocks[:-calls_after])
    assert witness.step_count == 1 + blocks.warm_up_steps + blocks.steps
    sizes = (64 * 16, 16, 16 * 10, 10)
    assert witness.movements == pytest.approx([math.sqrt(size) for size in sizes], rel=1e-6)
    assert witness.masks == ()


def test_the_session_is_rewound_and_trains_its_first_steps_again(engine: FakeEngine) -> None:
    told = measured(answer(engine)[0]).witness
    assert told
    again = told.rewound
    assert again
    assert again == Rewound(start_loss=0.5, losses=told.losses, movements=again.movements)
    assert len(again.movements) == len(told.movements)
    assert all(again.movements)
    assert engine.session.rewinds == 1


def test_a_dynamic_loss_scale_may_leave_out_updates(engine: FakeEngine) -> None:
    engine.session.settings = {"loss_scale": "dynamic"}
    engine.session.uncounted = 2
    assert measured(answer(engine)[0])
    engine.session.uncounted = -1
    assert failed(answer(engine)[0])


@pytest.mark.parametrize(
    ("after", "next_after", "zeros", "differ"),
    [
        ([0, 1.5, 0, 1.5], [1.5, 0, 0, 1.5], 1 / 3, True),
        ([0, 1.5, 0, 1.5], [0, 1.5, 0, 1.5], 1 / 3, False),
        ([1.5, 1.5, 0, 1.5], [1.5, 1.5, 0, 1.5], 0.0, False),
    ],
)
def test_masks_are_read_from_what_went_in_and_came_out(
    engine: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
    after: list[float],
    next_after: list[float],
    zeros: float,
    differ: bool,
) -> None:
    """The third value is zero already, so no mask shows there."""
    before = np.array([1, 1, 0, 1], np.float32)
    engine.session.dropped = [
        [(before, np.array(values, np.float32))] for values in (after, next_after)
    ]
    monkeypatch.setattr(conformance_trace, "masks_change", lambda *arguments: True)
    ended = worker.work(job_of(WITH_DROPOUT), lambda message: None, engine.clock)
    witness = measured(ended).witness
    assert witness
    assert witness.masks == (Mask(zeros=zeros, differ=differ),)


def test_dropout_that_does_not_scale_is_wrong(engine: FakeEngine) -> None:
    before, after = np.ones(4, np.float32), np.array([1, 0, 1, 0], np.float32)
    engine.session.dropped = [[(before, after)], [(before, after)]]
    ended = worker.work(job_of(WITH_DROPOUT), lambda message: None, engine.clock)
    assert (failed(ended).kind, failed(ended).phase) == ("wrong_result", "conformance")


def test_a_step_that_repeats_its_masks_is_seen(engine: FakeEngine) -> None:
    """The fake's loss is always the same."""
    cell = job_of(TINY).cell
    assert conformance_trace.masks_change(engine, TINY, cell)  # there is no dropout
    assert not conformance_trace.masks_change(engine, WITH_DROPOUT, cell)
    losses = iter((0.5, 0.51, 0.49, 0.52, 0.5))
    engine.session.loss = lambda: next(losses)  # type: ignore[method-assign]
    assert conformance_trace.masks_change(engine, WITH_DROPOUT, cell)


@pytest.mark.parametrize("spread", [5e-3, 3e-4])
def test_honest_masks_are_not_taken_for_repeated_ones(spread: float) -> None:
    """Relative spreads of the loss: of fashion-mlp, and of cifar100-vgg16, the smallest."""
    losses = np.random.default_rng(1).normal(4.6, 4.6 * spread, (10_000, 5))
    assert sum(not conformance_trace.losses_change(list(row)) for row in losses) <= 5


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param([4.6, 4.6, 4.6, 4.6, 4.6], id="one mask"),
        pytest.param([4.6, 4.6, 4.7, 4.7, 4.5], id="a mask for two steps"),
        pytest.param([4.6, 4.6000005, 4.6, 4.6000005, 4.6], id="rounding"),
    ],
)
def test_repeated_masks_are_seen(losses: list[float]) -> None:
    assert not conformance_trace.losses_change(losses)


def test_a_weight_that_is_no_number_moved_by_nothing_known(engine: FakeEngine) -> None:
    engine.session.weights = [np.full(1, np.nan, np.float32)] * 4
    measurement = failed(answer(engine)[0]).measurement
    assert measurement
    witness = measurement.witness
    assert witness
    assert witness.rewound
    assert witness.movements == witness.rewound.movements == (None,) * 4
