"""Processes that time in turns, block by block, so that what else the machine does meets them all.

A worker reads its clock at the beginning and at the end of whatever it times.
:func:`clock_in_turn` makes such a clock wait for the worker's turn at the first reading and give it
up at the second. :class:`Turns` hands the turn round.

Who has no turn is stopped by a signal, so that it does nothing meanwhile: a library may fetch the
next batches while it waits (TensorFlow's ``fit``), or its threads may look out for more work. What
a worker does between what it times, it does when the turn comes to it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from threading import Thread
from typing import TypeVar

Time = TypeVar("Time", int, float)
# Only Linux ends a stopped process with its parent (see :mod:`.orphan`). Elsewhere sides just wait.
CAN_STOP = sys.platform.startswith("linux")
# Threads of a library look out for more work for a while before they sleep: OpenBLAS' for 2**26
# ticks of the processor's counter, up to 30 ms. They must not take the next side's time.
PAUSE_SECONDS = 0.0 if CAN_STOP else 0.05


class Side:
    """A worker that has called."""

    def __init__(self, line: Connection) -> None:
        """
        Raises:
            EOFError: it has ended already.
        """
        self.line = line
        self._process = int(line.recv_bytes())

    def stop(self) -> None:
        self._signal("SIGSTOP")

    def go_on(self) -> None:
        self._signal("SIGCONT")

    def _signal(self, name: str) -> None:
        if CAN_STOP and self._process != os.getpid():
            with suppress(ProcessLookupError):
                os.kill(self._process, getattr(signal, name))

    def has_had_a_turn(self) -> bool:
        """Let it go on until it has given up its next turn; False where it ended instead."""
        self.go_on()
        try:
            self.line.recv_bytes()  # wants its turn
            self.line.send_bytes(b"")  # has it
            self.line.recv_bytes()  # gives it up
        except (EOFError, OSError):
            return False
        self.stop()
        time.sleep(PAUSE_SECONDS)
        return True


class Turns:
    """Hands the turn round among so many workers, each of which calls at ``address``; a context
    manager. One that has ended is left out."""

    def __init__(self, sides: int) -> None:
        self._sides = sides
        # Room for those that call, and for the calls of `end`, which nobody may answer any more.
        self._listener = Listener(backlog=2 * sides)
        self._ended = False
        self._thread = Thread(target=self._hand_round, name="turns", daemon=True)

    @property
    def address(self) -> str:
        """Where :func:`clock_in_turn` calls."""
        return str(self._listener.address)

    def __enter__(self) -> "Turns":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._thread.join()
        self._listener.close()

    def end(self) -> None:
        """Hand out no more turns: a worker that waits for one ends with ``EOFError``."""
        self._ended = True
        for _ in range(self._sides):
            # In the place of those that never called.
            with suppress(OSError):
                Client(self.address).close()

    def _hand_round(self) -> None:
        called: list[Side] = []
        try:
            for _ in range(self._sides):
                with suppress(EOFError, OSError):
                    called.append(Side(self._listener.accept()))
                    called[-1].stop()
            waiting = list(called)
            while waiting and not self._ended:
                for side in tuple(waiting):
                    if not side.has_had_a_turn():
                        waiting.remove(side)
        finally:
            for side in called:
                side.line.close()
                side.go_on()


def clock_in_turn(clock: Callable[[], Time], address: str) -> Callable[[], Time]:
    """A clock whose first, third, ... reading waits for the turn that the next one gives up.

    It is read when the turn is there, and before it is given up: no waiting is timed.
    """
    line = Client(address)
    line.send_bytes(str(os.getpid()).encode())
    has_turn = False

    def read() -> Time:
        nonlocal has_turn
        has_turn = not has_turn
        if has_turn:
            line.send_bytes(b"")
            line.recv_bytes()
            return clock()
        now = clock()
        line.send_bytes(b"")
        return now

    return read
