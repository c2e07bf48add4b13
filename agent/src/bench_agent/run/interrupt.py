"""Ctrl-C once: finish this repeat, or end a wait for one, then stop. Ctrl-C twice: stop now."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

ENDS_REPEAT = "finishing this repeat; Ctrl-C again stops now and loses this repeat"
ENDS_WAIT = "no longer waiting for an idle machine; the run stops before the next repeat"


@dataclass
class Stop:
    """Whether the user asked to stop. ``waiting``: no repeat is under way."""

    requested: bool = False
    waiting: bool = False

    def check(self) -> None:
        if self.requested:
            raise KeyboardInterrupt


@contextmanager
def waiting(stop: Stop) -> Iterator[None]:
    """Inside the block the run waits, so that an interrupt ends no repeat."""
    stop.waiting = True
    try:
        yield
    finally:
        stop.waiting = False


@contextmanager
def gentle_interrupt(say: Callable[[str], None]) -> Iterator[Stop]:
    """Turn the first interrupt inside the block into a request; the second one raises."""
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.requested:
            raise KeyboardInterrupt
        stop.requested = True
        say(ENDS_WAIT if stop.waiting else ENDS_REPEAT)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
