"""The pace of a session: the time of a step when it is read over that when it was timed.

The agent judges it before it signs, so that it can read again; the server judges alike.
"""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ..catalogue.matrix import Cell
from ..payload.result import Blocks
from .reading import PACED, STEPS_PER_LOOP, Part

DOUBTFUL_PACE, WRONG_PACE = 1.3, 2.0
# A shorter call says little of longer blocks: its start, the wait for its end and the copy of an
# epoch's order to the device are no training, and on a fast GPU take as long as many steps.
ENOUGH_NS = 10_000_000


class Pace(NamedTuple):
    """The time of a step in the fastest call of a reading and in the median block, and their ratio.
    ``calls``: the number of calls that can be compared with blocks."""

    reading_ns: float
    block_ns: float
    ratio: float
    calls: int


def compared(parts: Sequence[Part]) -> int:
    """The number of the reading whose pace counts: the last one that is long enough, with dropout
    where layers drop, because a step takes less time without it."""
    long = (
        one for one, part in enumerate(parts) if part.kind in PACED and part.steps >= STEPS_PER_LOOP
    )
    return max(long, default=0)


def pace_of(cell: Cell, blocks: Blocks, part: Part, durations_ns: Sequence[int]) -> Pace | None:
    """The pace of a reading by the times of its calls; None where none can be compared."""
    size = blocks.steps_per_block
    least = min(size, STEPS_PER_LOOP)
    # In a reading by ``model.fit`` each order is a call of its own, which gathers its samples: an
    # epoch's end takes as long as many steps, and in the timing it does not.
    fits = cell.framework == "tensorflow" and cell.recipe != "tuned"
    calls = zip(part.calls(size), part.ends_epoch(size), durations_ns, strict=False)
    times = [
        duration_ns / steps
        for steps, ends_epoch, duration_ns in calls
        if steps >= least and duration_ns >= ENOUGH_NS and not (fits and ends_epoch)
    ]
    reading_ns, block_ns = min(times, default=0), median(blocks.durations_ns) / size
    return Pace(reading_ns, block_ns, reading_ns / block_ns, len(times)) if times else None
