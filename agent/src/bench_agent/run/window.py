"""The timed part by the parent's clock: the worker's blocks must fit into it."""

from collections.abc import Callable

from bench_protocol.payload.result import Blocks
from bench_protocol.payload.witness import Window

from ..base.messages import BlockDone, PhaseBegan, WorkerEvent


class BlockWindow:
    """Notes when timing began and when blocks ended, and which blocks they were.

    A worker whose clock is slow, or whose final list differs from what it reported block by block,
    does not fit into it.
    """

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        """``clock_ns``: monotonic nanoseconds since the run's start."""
        self._clock_ns = clock_ns
        self._started_ns: int | None = None
        self._finished_ns: int | None = None
        self._reported: list[tuple[int, int]] = []

    def heard(self, message: WorkerEvent) -> None:
        if isinstance(message, BlockDone):
            self._finished_ns = self._clock_ns()
            self._reported.append((message.steps, message.duration_ns))
        elif message == PhaseBegan(phase="timing"):
            self._started_ns = self._clock_ns()

    def window(self, blocks: Blocks) -> Window | None:
        """The window, beside the blocks of the worker's answer; None if no block was reported."""
        if self._started_ns is None or self._finished_ns is None:
            return None
        listed = [(blocks.steps_per_block, duration) for duration in blocks.durations_ns]
        if blocks.last_block:
            listed.append((blocks.last_block.steps, blocks.last_block.duration_ns))
        return Window(
            started_ns=self._started_ns,
            finished_ns=self._finished_ns,
            blocks_agree=listed == self._reported,
        )
