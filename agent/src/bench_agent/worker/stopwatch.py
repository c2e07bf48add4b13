"""The stopwatch: the only place that times training.

A block is a number of steps between two synchronisations; the result contains every block's time.
This module decides when to stop; ``bench_protocol.figures`` derives figures from the times.
"""

import math
import time
from collections.abc import Callable

from bench_protocol.figures import relative_spread
from bench_protocol.result import Blocks, StopReason

from ..base.messages import Timing
from ..engines.seam import Session

# Below the limit of a result.
MOST_BLOCKS = 10_000
NS_PER_SECOND = 1_000_000_000
# As a share of the wanted duration: a step that takes seconds is not repeated.
LONGEST_WARM_UP = 10

Clock = Callable[[], int]
BlockListener = Callable[[int, int, float], None]


def measure(
    session: Session,
    timing: Timing,
    steps_per_epoch: int,
    clock: Clock = time.perf_counter_ns,
    on_block: BlockListener = lambda duration_ns, steps, share_done: None,
    on_timing: Callable[[], None] = lambda: None,
) -> Blocks:
    """Warm up, choose the block size, and time blocks until the timing's end.

    Args:
        session: has trained at least one step, so that compilation is over.
        steps_per_epoch: full batches in an epoch, 1 or more.
        clock: monotonic, in nanoseconds.
        on_block: receives each block's duration and steps and the estimated share done, outside
            the timing.
        on_timing: called when the warm-up is over.

    Returns:
        Raw block times. ``stop_reason`` is ``epochs`` with ``timing.epochs`` set; else ``settled``
        once the relative spread of at least ``min_blocks`` blocks is at most ``target_spread``,
        or ``budget``. In ``epochs`` mode the steps that do not fill a last block are trained but
        not timed.
    """
    stopwatch = _Stopwatch(session, clock)
    warm_up_steps, warm_up_ns, step_ns = _warm_up(stopwatch, timing, steps_per_epoch)
    wanted = timing.block_seconds * NS_PER_SECOND / step_ns
    steps = max(1, min(round(wanted), steps_per_epoch))
    on_timing()
    stop_reason: StopReason
    if timing.epochs is not None:
        total = timing.epochs * steps_per_epoch
        steps = _epoch_block(steps, steps_per_epoch, total)
        durations = _time_steps(stopwatch, steps, total, on_block)
        stop_reason = "epochs"
    else:
        durations, stop_reason = _time_until_settled(stopwatch, steps, timing, on_block)
    return Blocks(
        steps_per_block=steps,
        durations_ns=tuple(durations),
        stop_reason=stop_reason,
        warm_up_steps=warm_up_steps,
        warm_up_ns=warm_up_ns,
        target_spread=None if timing.epochs else timing.target_spread,
        budget_ns=None if timing.epochs else round(timing.budget_seconds * NS_PER_SECOND) or None,
    )


class _Stopwatch:
    """Times blocks of a session. The device is idle at both readings of the clock."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    def now(self) -> int:
        self._session.sync()
        return self._clock()

    def block(self, steps: int) -> int:
        """Duration of the next ``steps`` steps in nanoseconds, at least 1."""
        started = self.now()
        self._session.train_block(steps)
        return max(1, self.now() - started)

    def train(self, steps: int) -> None:
        self._session.train_block(steps)


def _warm_up(stopwatch: _Stopwatch, timing: Timing, steps_per_epoch: int) -> tuple[int, int, float]:
    """Train for ``warm_up_seconds`` in growing blocks, until two agree on the time of a step.

    Otherwise one slow step, such as a library's late initialisation, could set the block size.

    Returns:
        Steps trained, their nanoseconds, and the nanoseconds of a step in the last block, which is
        the warmest, and about as long as a timed one.
    """
    wanted_ns = timing.warm_up_seconds * NS_PER_SECOND
    block_ns = timing.block_seconds * NS_PER_SECOND
    steps, total_steps, total_ns, before_ns = 1, 0, 0, math.inf
    while True:
        duration_ns = stopwatch.block(steps)
        total_steps += steps
        total_ns += duration_ns
        step_ns = duration_ns / steps
        agree = before_ns / 2 <= step_ns <= before_ns * 2
        long_enough = duration_ns >= block_ns / 2 or steps == steps_per_epoch
        settled = agree and long_enough and total_ns >= wanted_ns
        if settled or total_ns >= LONGEST_WARM_UP * wanted_ns:
            return total_steps, total_ns, step_ns
        before_ns = step_ns
        steps = max(1, min(2 * steps, math.ceil(block_ns / step_ns), steps_per_epoch))


def _epoch_block(steps: int, steps_per_epoch: int, total: int) -> int:
    """Steps of a block so that whole blocks fill an epoch, if that is close to ``steps``."""
    steps = max(steps, math.ceil(total / MOST_BLOCKS))
    near = range(steps - steps // 3, steps + steps // 2 + 1)
    divisors = [size for size in near if size and steps_per_epoch % size == 0]
    return min(divisors, key=lambda size: abs(size - steps), default=steps)


def _time_steps(
    stopwatch: _Stopwatch, steps: int, total: int, on_block: BlockListener
) -> list[int]:
    durations: list[int] = []
    blocks, rest = divmod(total, steps)
    for number in range(1, blocks + 1):
        durations.append(stopwatch.block(steps))
        on_block(durations[-1], steps, number * steps / total)
    if rest:
        stopwatch.train(rest)
    return durations


def _time_until_settled(
    stopwatch: _Stopwatch, steps: int, timing: Timing, on_block: BlockListener
) -> tuple[list[int], StopReason]:
    budget_ns = timing.budget_seconds * NS_PER_SECOND
    durations: list[int] = []
    spent_ns = 0
    while True:
        durations.append(stopwatch.block(steps))
        spent_ns += durations[-1]
        on_block(durations[-1], steps, min(1.0, spent_ns / budget_ns) if budget_ns else 1.0)
        enough = len(durations) >= max(2, timing.min_blocks)
        if enough and relative_spread(durations) <= timing.target_spread:
            return durations, "settled"
        if len(durations) >= 2 and (spent_ns >= budget_ns or len(durations) >= MOST_BLOCKS):
            return durations, "budget"
