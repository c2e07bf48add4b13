"""Steps after the timing: ``sync`` leaves no work undone, and the session still trains.

The timed session trains them last, just before it is rewound. They detect a loop whose ``sync``
does not wait, and a loop that stopped training after its first steps. :mod:`.witness` checks the
number of steps.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ..engines.seam import Session

# Steps of a call: MLX evaluates every eighth step by itself, JAX waits for short programs.
CALLS = (1, 25)
# Preemption makes single tries long and hides remaining work, so the median counts. One try of
# a long call is enough.
TRIES = 5
LONG_ENOUGH_NS = 500_000_000
# Two readings of a value differ by this; no step is as short.
NOISE_NS = 50_000
# Share of a call's time that may be left when ``sync`` has returned. Seen in eight cells on loaded
# cores: at most 0.03; without synchronisation 0.49 to 1.
MOST_LEFT = 0.2

Timed = Callable[[Callable[[], object]], int]


@dataclass(frozen=True)
class StepsAfter:
    """The findings of the steps after the timing.

    ``left``: the share of a call that was still to do after ``sync``, the median of some tries, of
    the worse kind of call. ``moved``: whether a call changed the last trained tensor; not each
    must, because a gradient may vanish where the loss does.
    """

    left: float
    moved: bool

    @property
    def right(self) -> bool:
        return self.moved and self.left <= MOST_LEFT


def train(session: Session, timed: Timed) -> StepsAfter:
    """Train calls of one step, and of many where a step is short.

    Args:
        timed: runs a function and returns its nanoseconds.
    """
    tensors = deque([_last_tensor(session)], maxlen=1)
    left, moved, spent_ns = [], False, 0
    for steps in CALLS:
        if spent_ns >= LONG_ENOUGH_NS:
            break

        def call(steps: int = steps) -> None:
            session.train_block(steps)
            session.sync()

        shares = []
        for _ in range(TRIES):
            before = tensors[-1]
            call_ns, left_ns = left_after(
                call, lambda: tensors.append(_last_tensor(session)), timed
            )
            shares.append(left_ns / (call_ns + left_ns))
            moved = moved or not np.array_equal(before, tensors[-1])
            spent_ns += call_ns + left_ns
            if spent_ns >= LONG_ENOUGH_NS:
                break
        left.append(median(shares))
    return StepsAfter(max(left), moved)


def left_after(
    call: Callable[[], object], read: Callable[[], object], timed: Timed
) -> tuple[int, int]:
    """Nanoseconds of a call, at least 1, and of what its synchronisation left.

    Args:
        read: reads a value that the call computed.
    """
    call_ns = max(1, timed(call))
    # The first reading waits for what is left, the second costs the reading alone.
    reading_ns, again_ns = timed(read), timed(read)
    return call_ns, max(0, reading_ns - again_ns - NOISE_NS)


def _last_tensor(session: Session) -> NDArray[np.float32]:
    """The trained tensor nearest to the loss, usually a small bias."""
    return np.array(deque(session.trained_parameters(), maxlen=1)[0])
