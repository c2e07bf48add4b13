"""Ctrl-C once: finish this repeat, then stop. Ctrl-C twice: stop now."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stop:
    """Whether the user asked to stop."""

    requested: bool = False


@contextmanager
def gentle_interrupt(say: Callable[[str], None]) -> Iterator[Stop]:
    """Turn the first interrupt inside the block into a request; the second one raises.

    Args:
        say: shows the user what the first interrupt did.
    """
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.requested:
            raise KeyboardInterrupt
        stop.requested = True
        say("finishing this repeat; Ctrl-C again stops now")

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
