"""Whether ``sync`` leaves work undone.

The timed session trains some calls last of all, each as long as a timed block.
"""

from collections import deque
from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ..engines.seam import Session
from .witness import Timed

# Preemption makes single tries long and hides remaining work, so the median counts.
TRIES = 5
LONG_ENOUGH_NS = 500_000_000
# Two readings of a value differ by this; no step is as short.
NOISE_NS = 50_000
# Share of a call's time that may be left when ``sync`` has returned. Seen in eight cells on loaded
# cores: at most 0.03; without synchronisation 0.49 to 1.
MOST_LEFT = 0.2


def share_left(session: Session, steps: int, timed: Timed) -> float:
    """The share of a call that was still to do after ``sync``: the median of some tries, fewer
    where a call is long and nothing was left."""
    shares: list[float] = []
    spent_ns = 0

    def call() -> None:
        session.train_block(steps)
        session.sync()

    while len(shares) < TRIES and (spent_ns < LONG_ENOUGH_NS or median(shares) > MOST_LEFT):
        call_ns, left_ns = left_after(call, lambda: _last_tensor(session), timed)
        shares.append(left_ns / (call_ns + left_ns))
        spent_ns += call_ns + left_ns
    return median(shares)


def left_after(
    call: Callable[[], object], read: Callable[[], object], timed: Timed
) -> tuple[int, int]:
    """Nanoseconds of a call, at least 1, and of what its synchronisation left until ``read`` has a
    value that the call computed."""
    call_ns = max(1, timed(call))
    # The first reading waits for what is left, the second costs the reading alone.
    reading_ns, again_ns = timed(read), timed(read)
    return call_ns, max(0, reading_ns - again_ns - NOISE_NS)


def _last_tensor(session: Session) -> NDArray[np.float32]:
    """The trained tensor nearest to the loss, usually a small bias."""
    return np.array(deque(session.trained_parameters(), maxlen=1)[0])
