"""What the worker reads from the timed session: steps, movements, parts that it trains again."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pytest
from tests.fakes.engine import FakeEngine, answer, failed, measured
from tests.fakes.workloads import TINY, job_of, variant

from bench_agent.worker import main as worker
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.layers import Dense, Dropout, Flatten
from bench_protocol.payload.witness import Witness
from bench_protocol.training.reading import PACED, parts

LAYERS = (Flatten(), Dropout(rate=1 / 3), Dense(units=10, activation="linear"))
WITH_DROPOUT = variant(TINY, layers=LAYERS)
PARTS = parts(TINY, TINY.batch_size, job_of(TINY).seed)
TRIES = 5  # of steps_after, after the readings


def told(engine: FakeEngine) -> Witness:
    witness = measured(answer(engine)[0]).witness
    assert witness is not None
    return witness


def test_the_timed_session_tells_of_its_training(engine: FakeEngine) -> None:
    """It is read after the last block, before any reading. Every tiny weight moved by one."""
    measurement = measured(answer(engine)[0])
    witness, blocks = measurement.witness, measurement.blocks
    assert witness is not None
    assert witness.step_count == 1 + blocks.warm_up_steps + blocks.steps
    assert witness.counted_by == "loop"
    sizes = (64 * 16, 16, 16 * 10, 10)
    assert witness.movements == pytest.approx([math.sqrt(size) for size in sizes], rel=1e-6)


def test_the_parts_are_trained_in_calls_as_long_as_blocks(engine: FakeEngine) -> None:
    measurement = measured(answer(engine)[0])
    assert measurement.witness is not None
    per_call = measurement.blocks.steps_per_block
    readings = measurement.witness.readings
    calls = [part.calls(per_call) for part in PARTS]
    assert [len(one.durations_ns) for one in readings] == [len(one) for one in calls]
    for one, steps in zip(readings, calls, strict=True):
        assert list(one.durations_ns) == [count * 1_000_000 for count in steps]
    # Before each deep reading a step compiles what the restart has changed, and a tenth of a second
    # warms up, or a block; neither is timed.
    warm = min(100, per_call)
    first = [[1, warm] if part.kind in PACED else [] for part in PARTS]
    read = zip(first, calls, strict=True)
    trained = [*chain.from_iterable([*one, *more] for one, more in read), *[per_call] * TRIES]
    assert engine.session.blocks[-len(trained) :] == trained


def test_each_part_begins_where_the_seed_says(engine: FakeEngine) -> None:
    seed = job_of(TINY).seed
    told(engine)
    weights = seeded.initial_weights(TINY, seed)
    begun = [part for part in PARTS for _ in range(1 + (part.kind in PACED))]
    for part, start in zip(begun, engine.session.restarts, strict=True):
        assert (start.first, start.dropout, start.first_steps) == (
            part.first,
            False,
            part.kind == "first",
        )
        orders = [seeded.order(TINY.data_set.train_samples, n, seed) for n in range(part.epochs)]
        np.testing.assert_array_equal(start.orders, orders)
        np.testing.assert_array_equal(start.weights[1]["kernel"], weights[1]["kernel"])


def slowed(engine: FakeEngine, *times: float, restarts: int = 0) -> None:
    """A step of each attempt of a reading takes that many times as long as one of a block, of other
    attempts as long. ``restarts``: before the first attempt, each of which has two."""
    session = engine.session

    def step_ns() -> Iterator[int]:
        while True:
            attempt = (len(session.restarts) - restarts - 1) // 2
            yield round(1e6 * (times[attempt] if 0 <= attempt < len(times) else 1))

    session.step_ns = step_ns()


@pytest.mark.parametrize(
    ("times", "sent"),
    [
        ((1.29, 1.0), 0),
        ((5.0, 1.2), 1),
        ((5.0, 3.0, 4.0, 1.0), 1),  # also what sleeps in its blocks stays as slow as it is
        ((100.0, 1.0), 0),  # it takes minutes where nothing may be silent for long
    ],
)
def test_a_deep_reading_that_a_busy_machine_slows_is_made_again(
    engine: FakeEngine, times: Sequence[float], sent: int
) -> None:
    """The fastest of at most three is sent, with its own movements."""
    slowed(engine, *times)
    measurement = measured(answer(engine)[0])
    assert measurement.witness is not None
    reading = measurement.witness.readings[0]
    calls = PARTS[0].calls(measurement.blocks.steps_per_block)
    assert list(reading.durations_ns) == [count * round(times[sent] * 1e6) for count in calls]
    # Weights move on by one each time that they are read, first for the timing.
    assert reading.movements[-1] == pytest.approx(math.sqrt(10) * (2 + sent))


@pytest.mark.parametrize(("times", "restarts", "dropping"), [((5.0,), 0, 4), ((5.0,) * 3, 4, 8)])
def test_of_two_deep_readings_the_one_with_dropout_is_made_again(
    engine: FakeEngine, times: Sequence[float], restarts: int, dropping: int
) -> None:
    slowed(engine, *times, restarts=restarts)
    worker.work(job_of(WITH_DROPOUT), lambda message: None, engine.clock)
    assert [start.dropout for start in engine.session.restarts] == [False] * 4 + [True] * dropping


def test_the_start_loss_is_that_of_the_first_step(engine: FakeEngine) -> None:
    losses = iter([0.25])
    engine.session.loss = lambda: next(losses, 0.5)  # type: ignore[method-assign]
    assert told(engine).start_loss == 0.25


def test_where_layers_drop_the_start_loss_is_evaluated_before_a_step(engine: FakeEngine) -> None:
    seen: list[np.ndarray] = []

    def evaluate(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        if not seen:
            assert (engine.session.step_count(), engine.session.restarts) == (0, [])
        seen.append(y)
        return (0.125, 0.5) if len(seen) == 1 else (0.5, 0.5)

    engine.session.evaluate = evaluate  # type: ignore[method-assign]
    job = job_of(WITH_DROPOUT)
    witness = measured(worker.work(job, lambda message: None, engine.clock)).witness
    assert witness is not None
    assert witness.start_loss == 0.125
    rows = seeded.order(TINY.data_set.train_samples, 0, job.seed)[:16]
    assert engine.opened_with is not None
    np.testing.assert_array_equal(seen[0], engine.opened_with.train_y[rows])


def test_epochs_in_the_order_of_the_one_before_are_a_wrong_result(engine: FakeEngine) -> None:
    assert measured(answer(engine)[0])
    engine.session.repeated_epochs = 1
    outcome = failed(answer(engine)[0])
    assert (outcome.kind, outcome.phase) == ("wrong_result", "timing")


def test_a_dynamic_loss_scale_may_leave_out_updates(engine: FakeEngine) -> None:
    engine.session.settings = {"loss_scale": "dynamic"}
    engine.session.uncounted = 2
    assert measured(answer(engine)[0])
    engine.session.uncounted = -1
    assert failed(answer(engine)[0])


def test_a_weight_that_is_no_number_moved_by_nothing_known(engine: FakeEngine) -> None:
    engine.session.weights = [np.full(1, np.nan, np.float32)] * 4
    witness = told(engine)
    assert witness.movements == (None,) * 4
    assert [one.movements for one in witness.readings] == [(None,) * 4] * len(PARTS)
