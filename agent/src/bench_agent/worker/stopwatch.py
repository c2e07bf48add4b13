"""The stopwatch: the only place that times training.

A block is a number of steps between two synchronisations; the result contains every block's time.
This module decides when to stop; ``bench_protocol.payload.figures`` derives figures from the times.
"""

import math
import time
from collections.abc import Callable

from bench_protocol.payload.figures import relative_spread
from bench_protocol.payload.result import Blocks, StopReason
from bench_protocol.payload.witness import LastBlock

from ..base.messages import Timing
from ..engines.seam import Session
from .lockstep import LockstepClock

# Largest number of blocks, below the limit of a result.
MOST_BLOCKS = 10_000
NS_PER_SECOND = 1_000_000_000
# Share of the wanted duration: a step that takes seconds is not repeated.
LONGEST_WARM_UP = 10
# One slow block among the last ones does not set the block size.
BLOCKS_FOR_A_STEP = 3

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
        on_block: receives each block's duration and steps and the estimated share done. The next
            block's time includes this call.
        on_timing: called when the warm-up is over, within the first block.

    Returns:
        Raw block times. ``stop_reason`` is ``epochs`` with ``timing.epochs`` set; else ``settled``
        once the relative spread of at least ``min_blocks`` blocks is at most ``target_spread``,
        or ``budget``. In ``epochs`` mode there are ``min_blocks`` blocks too, unless there are
        fewer steps, and the steps that do not fill a block are the last block.
    """
    stopwatch = _Stopwatch(session, clock)
    warm_up = _WarmUp(stopwatch, timing, steps_per_epoch)
    warm_up.until_settled()
    step_ns = warm_up.step_ns
    wanted = timing.block_seconds * NS_PER_SECOND / step_ns
    steps = max(1, min(round(wanted), steps_per_epoch))
    stopwatch.chain()
    on_timing()
    stop_reason: StopReason
    last_block: LastBlock | None = None
    least_ns = round(timing.least_seconds * NS_PER_SECOND)
    if timing.epochs is not None:
        epochs = max(timing.epochs, math.ceil(least_ns / (steps_per_epoch * step_ns)))
        steps = _epoch_block(steps, steps_per_epoch, epochs * steps_per_epoch, timing.min_blocks)
        durations, last_block = _time_epochs(
            stopwatch, steps, epochs, steps_per_epoch, least_ns, on_block
        )
        stop_reason = "epochs"
    else:
        durations, stop_reason = _time_until_settled(stopwatch, steps, timing, least_ns, on_block)
    return Blocks(
        steps_per_block=steps,
        durations_ns=tuple(durations),
        stop_reason=stop_reason,
        warm_up_steps=warm_up.steps,
        warm_up_ns=warm_up.total_ns,
        last_block=last_block,
    )


def step_ns(
    session: Session, timing: Timing, steps_per_epoch: int, clock: Clock = time.perf_counter_ns
) -> float:
    """The time of a step in nanoseconds, after a warm-up. See :func:`measure` for the arguments."""
    warm_up = _WarmUp(_Stopwatch(session, clock), timing, steps_per_epoch)
    warm_up.until_settled()
    return warm_up.step_ns


class _Stopwatch:
    """Times blocks of a session. The device is idle at both readings of the clock."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._last_ns: int | None = None  # end of the last block, where blocks are chained

    def chain(self) -> None:
        """From now on each block begins at the reading that ended the one before, so that no work
        is outside of the clock. Workers that time in turns wait between two blocks instead."""
        if not isinstance(self._clock, LockstepClock):
            self._last_ns = self.now()

    def now(self) -> int:
        self._session.sync()
        return self._clock()

    def block(self, steps: int) -> int:
        """Duration of the next ``steps`` steps in nanoseconds, at least 1."""
        started_ns = self.now() if self._last_ns is None else self._last_ns
        self._session.train_block(steps)
        ended_ns = self.now()
        if self._last_ns is not None:
            self._last_ns = ended_ns
        return max(1, ended_ns - started_ns)


class _WarmUp:
    """Trains for ``warm_up_seconds`` in growing blocks, until two agree on the time of a step."""

    def __init__(self, stopwatch: _Stopwatch, timing: Timing, steps_per_epoch: int) -> None:
        self.steps = 0
        self.total_ns = 0
        self._stopwatch = stopwatch
        self._steps_per_epoch = steps_per_epoch
        self._wanted_ns = timing.warm_up_seconds * NS_PER_SECOND
        self._block_ns = timing.block_seconds * NS_PER_SECOND
        self._step_times_ns: list[float] = []
        self._last_steps = self._last_ns = 0

    @property
    def step_ns(self) -> float:
        """The time of a step: the lower median of the last blocks, which are the warmest, so that
        one slow block, such as a library's late initialisation, does not set the block size."""
        last = sorted(self._step_times_ns[-BLOCKS_FOR_A_STEP:])
        return last[(len(last) - 1) // 2]

    def block(self, steps: int) -> None:
        self._last_steps, self._last_ns = steps, self._stopwatch.block(steps)
        self.steps += steps
        self.total_ns += self._last_ns
        self._step_times_ns.append(self._last_ns / steps)

    def until_settled(self) -> None:
        """Train blocks until the warm-up is long enough; at least one."""
        while not self._is_over():
            longest = math.ceil(self._block_ns / self.step_ns) if self.steps else 1
            self.block(max(1, min(2 * self._last_steps, longest, self._steps_per_epoch)))

    def _is_over(self) -> bool:
        if not self.steps:
            return False
        if self.total_ns >= LONGEST_WARM_UP * self._wanted_ns:
            return True
        before_ns, step_ns = [math.inf, *self._step_times_ns][-2:]
        agree = before_ns / 2 <= step_ns <= before_ns * 2
        long_enough = (
            self._last_ns >= self._block_ns / 2 or self._last_steps == self._steps_per_epoch
        )
        return agree and long_enough and self.total_ns >= self._wanted_ns


def _epoch_block(steps: int, steps_per_epoch: int, total: int, min_blocks: int) -> int:
    """Steps of a block so that whole blocks fill an epoch, if that is close to ``steps``, and there
    are at least ``min_blocks``, if there are as many steps."""
    longest = max(1, total // max(1, min_blocks))
    steps = max(min(steps, longest), math.ceil(total / MOST_BLOCKS))
    near = range(steps - steps // 3, min(steps + steps // 2, longest) + 1)
    divisors = [size for size in near if size and steps_per_epoch % size == 0]
    return min(divisors, key=lambda size: abs(size - steps), default=steps)


def _time_epochs(
    stopwatch: _Stopwatch,
    steps: int,
    epochs: int,
    steps_per_epoch: int,
    least_ns: int,
    on_block: BlockListener,
) -> tuple[list[int], LastBlock | None]:
    """Time these epochs, and further ones while whole blocks fill less than ``least_ns``: the
    number of epochs rests on the warm-up, which may be slower than what is timed."""
    durations: list[int] = []
    spent_ns, total = 0, epochs * steps_per_epoch
    while True:
        blocks, rest = divmod(total, steps)
        while len(durations) < blocks:
            durations.append(stopwatch.block(steps))
            spent_ns += durations[-1]
            on_block(durations[-1], steps, len(durations) * steps / total)
        if spent_ns >= least_ns or blocks >= MOST_BLOCKS:
            break
        total += steps_per_epoch
    if not rest:
        return durations, None
    last = LastBlock(steps=rest, duration_ns=stopwatch.block(rest))
    on_block(last.duration_ns, rest, 1.0)
    return durations, last


def _time_until_settled(
    stopwatch: _Stopwatch, steps: int, timing: Timing, least_ns: int, on_block: BlockListener
) -> tuple[list[int], StopReason]:
    budget_ns = timing.budget_seconds * NS_PER_SECOND
    durations: list[int] = []
    spent_ns = 0
    while True:
        durations.append(stopwatch.block(steps))
        spent_ns += durations[-1]
        on_block(durations[-1], steps, min(1.0, spent_ns / budget_ns) if budget_ns else 1.0)
        enough = len(durations) >= max(2, timing.min_blocks) and spent_ns >= least_ns
        if enough and relative_spread(durations) <= timing.target_spread:
            return durations, "settled"
        if len(durations) >= 2 and (spent_ns >= budget_ns or len(durations) >= MOST_BLOCKS):
            return durations, "budget"
