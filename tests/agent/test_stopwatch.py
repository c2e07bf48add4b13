"""The stopwatch, with a clock that advances only on command."""

from itertools import chain, cycle, repeat
from typing import Any

import pytest
from tests.fakes.engine import FakeClock, FakeSession

from bench_agent.base.messages import Timing
from bench_agent.worker.stopwatch import measure

MS = 1_000_000


def timed(
    step_ns: Any, steps_per_epoch: int = 1000, **timing: Any
) -> tuple[Any, FakeSession, list[tuple[int, float]]]:
    clock = FakeClock()
    session = FakeSession(clock, iter(step_ns))
    heard: list[tuple[int, float]] = []
    blocks = measure(
        session,
        Timing(**timing),
        steps_per_epoch,
        clock=clock,
        on_block=lambda ns, steps, share: heard.append((ns, share)),
    )
    return blocks, session, heard


def test_steady_steps_settle_at_the_least_number_of_blocks() -> None:
    blocks, session, heard = timed(repeat(2 * MS), warm_up_seconds=0.05, block_seconds=0.2)
    assert blocks.steps_per_block == 100
    assert blocks.durations_ns == (200 * MS,) * 10
    assert blocks.stop_reason == "settled"
    assert blocks.warm_up_ns == 2 * MS * blocks.warm_up_steps >= 50 * MS
    assert sum(session.blocks) == blocks.warm_up_steps + 1000
    assert [ns for ns, _ in heard] == [200 * MS] * 10
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert all(0 < share <= 1 for share in shares)


def test_warm_up_grows_its_blocks_to_those_that_are_timed() -> None:
    blocks, session, _ = timed(repeat(MS), warm_up_seconds=0.5)
    assert session.blocks[:10] == [1, 2, 4, 8, 16, 32, 64, 128, 200, 200]
    assert blocks.warm_up_steps == 455 + 200


@pytest.mark.parametrize("cold_ms", [[900], [400, 900], [3, 900], [1, 1, 900]])
def test_the_block_size_comes_from_warm_steps(cold_ms: list[int]) -> None:
    """A late initialisation that is as long as the whole warm-up is still one step."""
    cold_then_warm = chain([ms * MS for ms in cold_ms], repeat(MS))
    blocks, _, _ = timed(cold_then_warm, warm_up_seconds=0.5, block_seconds=0.05)
    assert blocks.steps_per_block == 50


def test_a_step_of_seconds_is_not_waited_for_twice() -> None:
    blocks, _, _ = timed(repeat(6_000 * MS), min_blocks=2)
    assert blocks.warm_up_steps == 1


def test_a_step_longer_than_a_block_is_a_block() -> None:
    blocks, _, _ = timed(repeat(700 * MS), block_seconds=0.2, min_blocks=3)
    assert blocks.steps_per_block == 1
    assert blocks.durations_ns == (700 * MS,) * 3


def test_a_block_is_at_most_an_epoch() -> None:
    blocks, _, _ = timed(repeat(MS), steps_per_epoch=30, block_seconds=0.2)
    assert blocks.steps_per_block == 30


def test_an_unsteady_machine_stops_at_the_budget() -> None:
    unsteady = cycle([MS, 3 * MS])
    blocks, _, heard = timed(
        unsteady, steps_per_epoch=1, warm_up_seconds=0.0, budget_seconds=0.1, target_spread=0.03
    )
    assert blocks.stop_reason == "budget"
    assert 100 * MS <= sum(blocks.durations_ns) < 104 * MS
    assert heard[-1][1] == 1.0


def test_the_budget_leaves_two_blocks() -> None:
    blocks, _, _ = timed(repeat(5_000 * MS), warm_up_seconds=0.0, budget_seconds=1.0)
    assert blocks.durations_ns == (5_000 * MS,) * 2
    assert blocks.stop_reason == "budget"


@pytest.mark.parametrize(
    ("steps_per_epoch", "block_steps"),
    [(390, 195), (937, 200), (400, 200), (60, 60)],
)
def test_whole_epochs(steps_per_epoch: int, block_steps: int) -> None:
    """Blocks fill an epoch exactly where a divisor is near; the rest is trained, not timed."""
    blocks, session, heard = timed(
        repeat(MS), steps_per_epoch, warm_up_seconds=0.0, block_seconds=0.2, epochs=3
    )
    total = 3 * steps_per_epoch
    assert blocks.stop_reason == "epochs"
    assert blocks.steps_per_block == block_steps
    assert len(blocks.durations_ns) == total // block_steps
    assert sum(session.blocks) - blocks.warm_up_steps == total
    assert heard[-1][1] == pytest.approx(total // block_steps * block_steps / total)


def test_on_timing_is_called_between_warm_up_and_first_block() -> None:
    clock = FakeClock()
    session = FakeSession(clock)
    seen: list[int] = []
    blocks = measure(
        session,
        Timing(warm_up_seconds=0.01),
        100,
        clock=clock,
        on_timing=lambda: seen.append(sum(session.blocks)),
    )
    assert seen == [blocks.warm_up_steps]


def test_a_listener_is_not_timed() -> None:
    clock = FakeClock()
    session = FakeSession(clock)

    def slow(duration_ns: int, steps: int, share_done: float) -> None:
        clock.now_ns += 10_000 * MS

    blocks = measure(session, Timing(block_seconds=0.1), 1000, clock=clock, on_block=slow)
    assert set(blocks.durations_ns) == {100 * MS}


def test_work_left_over_by_a_listener_is_waited_for_before_a_block() -> None:
    """The first reading of a block needs its synchronisation as much as the second."""
    clock = FakeClock()
    session = FakeSession(clock)

    def trains(duration_ns: int, steps: int, share_done: float) -> None:
        clock.busy_ns += 50 * MS

    blocks = measure(session, Timing(block_seconds=0.1), 1000, clock=clock, on_block=trains)
    assert set(blocks.durations_ns) == {100 * MS}


def test_a_clock_that_stands_still_gives_no_zero() -> None:
    blocks, _, _ = timed(
        chain([MS], repeat(0)),
        steps_per_epoch=5,
        warm_up_seconds=0.0,
        epochs=2,
        block_seconds=0.001,
    )
    assert set(blocks.durations_ns) == {1}
