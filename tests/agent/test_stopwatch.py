"""The stopwatch, with a clock that advances only on command."""

import math
from itertools import chain, cycle, pairwise, repeat
from typing import Any

import pytest
from tests.fakes.engine import FakeClock, FakeSession

from bench_agent.base.messages import Timing
from bench_agent.worker.lockstep import LockstepClock
from bench_agent.worker.stopwatch import measure
from bench_protocol.payload.witness import LastBlock

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
    assert (blocks.steps_per_block, blocks.durations_ns) == (100, (200 * MS,) * 10)
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


@pytest.mark.parametrize(
    ("step_ms", "timing", "expected"),
    [
        (6_000, {"min_blocks": 2}, {"warm_up_steps": 1}),
        (1, {"steps_per_epoch": 30, "block_seconds": 0.2}, {"steps_per_block": 30}),
        (
            700,
            {"block_seconds": 0.2, "min_blocks": 3},
            {"steps_per_block": 1, "durations_ns": (700 * MS,) * 3},
        ),
        (
            5_000,
            {"warm_up_seconds": 0.0, "budget_seconds": 1.0},
            {"durations_ns": (5_000 * MS,) * 2, "stop_reason": "budget"},
        ),
    ],
    ids=["slow step", "short epoch", "step longer than a block", "budget of less than two blocks"],
)
def test_limits_of_a_block(
    step_ms: int, timing: dict[str, Any], expected: dict[str, object]
) -> None:
    blocks, _, _ = timed(repeat(step_ms * MS), **timing)
    assert {name: getattr(blocks, name) for name in expected} == expected


def test_an_unsteady_machine_stops_at_the_budget() -> None:
    unsteady = cycle([MS, 3 * MS])
    blocks, _, heard = timed(
        unsteady, steps_per_epoch=1, warm_up_seconds=0.0, budget_seconds=0.1, target_spread=0.03
    )
    assert blocks.stop_reason == "budget"
    assert 100 * MS <= sum(blocks.durations_ns) < 104 * MS
    assert heard[-1][1] == 1.0


@pytest.mark.parametrize(
    ("steps_per_epoch", "block_steps"), [(390, 78), (937, 200), (400, 100), (60, 15)]
)
def test_whole_epochs(steps_per_epoch: int, block_steps: int) -> None:
    """Ten blocks or more fill epochs exactly where a divisor is near; else the last is shorter."""
    blocks, session, heard = timed(
        repeat(MS), steps_per_epoch, warm_up_seconds=0.0, block_seconds=0.2, epochs=3
    )
    total = 3 * steps_per_epoch
    assert (blocks.stop_reason, blocks.steps_per_block) == ("epochs", block_steps)
    assert len(blocks.durations_ns) == total // block_steps
    assert sum(session.blocks) - blocks.warm_up_steps == total
    assert (blocks.steps, blocks.total_ns) == (total, total * MS)
    rest = total % block_steps
    last = LastBlock(steps=rest, duration_ns=rest * MS) if rest else None
    assert blocks.last_block == last
    assert heard[-1] == ((rest or block_steps) * MS, 1.0)


@pytest.mark.parametrize("least_seconds", [0.0, 1.0, 5.0, 7.1])
def test_whole_epochs_fill_the_least_seconds(least_seconds: float) -> None:
    blocks, _, _ = timed(repeat(MS), 1000, epochs=2, least_seconds=least_seconds)
    assert blocks.steps == max(2, math.ceil(least_seconds)) * 1000


@pytest.mark.parametrize("steps_per_epoch", [1000, 999])
def test_epochs_are_added_where_the_warm_up_was_slower(steps_per_epoch: int) -> None:
    """Whole blocks alone fill the least seconds, so no repeat of such a preset is short."""
    steps_ns = chain(repeat(2 * MS, 700), repeat(MS))
    blocks, _, _ = timed(steps_ns, steps_per_epoch, epochs=2, least_seconds=8.0)
    assert sum(blocks.durations_ns) >= 8_000 * MS
    assert blocks.steps % steps_per_epoch == 0
    assert blocks.steps - steps_per_epoch < 8_000


def test_steady_blocks_settle_only_after_the_least_seconds() -> None:
    blocks, _, _ = timed(repeat(MS), block_seconds=0.1, least_seconds=4.0)
    assert (blocks.stop_reason, len(blocks.durations_ns)) == ("settled", 40)
    early, _, _ = timed(repeat(MS), block_seconds=0.1, least_seconds=4.0, budget_seconds=2.0)
    assert (early.stop_reason, len(early.durations_ns)) == ("budget", 20)


@pytest.mark.parametrize("slow_step", [1, 2, 3, 5, 10, 22, 23, 24, 40, 62, 63, 100, 300, 600])
@pytest.mark.parametrize("seconds", [0.3, 60])
def test_one_slow_warm_up_block_does_not_set_the_block_size(slow_step: int, seconds: float) -> None:
    """A suspended process makes one step slow: 3,933 blocks of one step were seen."""
    clock = FakeClock()
    steps_ns = chain(repeat(MS, slow_step), [round(seconds * 1000) * MS], repeat(MS))
    assert measure(FakeSession(clock, steps_ns), Timing(), 1000, clock=clock).steps_per_block == 200


class TurnsClock(LockstepClock[int]):
    """The clock of a worker that times in turns, whose turn always comes at once."""

    def __init__(self, clock: FakeClock) -> None:
        self._fake = clock

    def __call__(self) -> int:
        return self._fake()


@pytest.mark.parametrize("in_turns", [False, True])
def test_no_work_is_outside_of_the_clock(in_turns: bool) -> None:
    """What a listener takes, and the work that it leaves, is in the next block: all blocks together
    take what passed. Workers in turns wait between two blocks, so there it is in none."""
    clock = FakeClock()
    session = FakeSession(clock)
    heard_ns: list[int] = []

    def trains(duration_ns: int, steps: int, share_done: float) -> None:
        heard_ns.append(clock.now_ns)
        clock.now_ns += 10 * MS
        clock.busy_ns += 50 * MS

    blocks = measure(
        session,
        Timing(block_seconds=0.1),
        1000,
        clock=TurnsClock(clock) if in_turns else clock,
        on_block=trains,
        on_timing=lambda: heard_ns.append(clock.now_ns),
    )
    between = 0 if in_turns else 60 * MS
    assert blocks.durations_ns == (100 * MS, *[100 * MS + between] * 9)
    passed_ns = [later - earlier for earlier, later in pairwise(heard_ns)]
    assert in_turns or passed_ns == list(blocks.durations_ns)


def test_a_clock_that_stands_still_gives_no_zero() -> None:
    short = {"warm_up_seconds": 0.0, "epochs": 2, "block_seconds": 0.001}
    blocks, _, _ = timed(chain([MS], repeat(0)), steps_per_epoch=5, **short)
    assert set(blocks.durations_ns) == {1}
