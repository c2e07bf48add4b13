"""The window: the timed part as the parent process saw it, and whether the blocks fill it.

A worker's blocks follow each other without a gap: each begins at the reading of the clock that
ended the one before. So the time between two receipts of the parent is that of the blocks between
them, but for the delay of the two messages. Delays only add, and the least of several is close to
none: the message of least delay among the first third is compared with that among the last third
(Paxson 1998, On calibrating measurements of packet transit times).
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from ..base.units import OffsetNs, Wire

MOST_RECEIPTS = 20_002  # timing began, the blocks of a result, its last block
# Blocks that claim less than the time that passed, by more than this, leave time out. Both clocks
# are one on Linux and macOS. Measured in 44 honest timings of mnist-dense, 2 s each, in four
# frameworks at a load of 7 to 25 on two cores (also at nice 19, with four other processes on the
# core, and stopped for half of each 0.1 s). In the 32 of 8 blocks or more, the least delays differ
# by -6 to 3 ms, and the last message is at most 26 ms late. One of 44 is refused: it has 6 blocks,
# and its last message is 1.1 s late.
MISSING_SHARE = 0.005
LEAST_DELAYS_NS, ONE_DELAY_NS = 10_000_000, 100_000_000
# Receipts of a third from which on one of them is taken to be on time.
ENOUGH_RECEIPTS = 3
# Blocks that claim more make nobody faster. Those that claim twice the time took none: they were
# not timed at all.
MOST_OF_WINDOW, LEAST_SEEN = 1.01, 0.5

Verdict = Literal["other_blocks", "longer", "unseen", "shorter", "filled"]


class Window(Wire):
    """The timed part as the parent process saw it, on the clock of :class:`.result.Clocks`.

    ``received_ns``: when the parent received the message that timing began, and each block's.
    ``blocks_agree``: whether the result's blocks equal those received.
    """

    received_ns: tuple[OffsetNs, ...] = Field(min_length=2, max_length=MOST_RECEIPTS)
    blocks_agree: bool

    @model_validator(mode="after")
    def _in_order(self) -> "Window":
        if list(self.received_ns) != sorted(self.received_ns):
            raise ValueError("received_ns must not fall")
        return self

    @property
    def started_ns(self) -> int:
        return self.received_ns[0]

    @property
    def finished_ns(self) -> int:
        return self.received_ns[-1]


class Fill(NamedTuple):
    """The verdict, and the time of the blocks and of the parent's clock that it follows from.

    ``longer``: the parent saw more time than the blocks claim; ``shorter``: less; ``unseen``: less
    than half; ``other_blocks``: the blocks are not those that it received.
    """

    verdict: Verdict
    blocks_ns: int
    window_ns: int


def judge(durations_ns: Sequence[int], window: Window) -> Fill:
    """Whether blocks fill the time that the parent process saw.

    Args:
        durations_ns: of all blocks, the last one included.
    """
    received_ns = window.received_ns
    ends_ns = [0, *accumulate(durations_ns)]
    whole = ends_ns[-1], received_ns[-1] - received_ns[0]
    if not window.blocks_agree or len(received_ns) != len(ends_ns):
        return Fill("other_blocks", *whole)
    between, delay_ns = _least_delayed(ends_ns, received_ns), LEAST_DELAYS_NS
    if len(ends_ns) // 3 < ENOUGH_RECEIPTS:
        between, delay_ns = whole, ONE_DELAY_NS
    for (blocks_ns, window_ns), slack_ns in ((between, delay_ns), (whole, ONE_DELAY_NS)):
        if blocks_ns < (1 - MISSING_SHARE) * window_ns - slack_ns:
            return Fill("longer", blocks_ns, window_ns)
    blocks_ns, window_ns = between
    if LEAST_SEEN * (blocks_ns - ONE_DELAY_NS) > window_ns:
        return Fill("unseen", *between)
    if blocks_ns > MOST_OF_WINDOW * window_ns + ONE_DELAY_NS:
        return Fill("shorter", *between)
    return Fill("filled", *whole)


def _least_delayed(ends_ns: Sequence[int], received_ns: Sequence[int]) -> tuple[int, int]:
    """Time of the blocks and of the window between the least delayed messages of both thirds."""
    third = max(1, len(ends_ns) // 3)

    def delay_ns(number: int) -> int:
        return received_ns[number] - ends_ns[number]

    first = min(range(third), key=delay_ns)
    last = min(range(len(ends_ns) - third, len(ends_ns)), key=delay_ns)
    return ends_ns[last] - ends_ns[first], received_ns[last] - received_ns[first]
