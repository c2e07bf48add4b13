"""Lockstep: workers time their blocks in turns; the idle ones are stopped.

A worker reads its clock at the beginning and at the end of all that it times.
:class:`LockstepClock` makes the first reading wait for the worker's turn and gives the turn up at
the second. :class:`Lockstep` passes the turn on. Imports and warm-up take turns too, and one side
takes longer than the other. The side that is ready first waits before its first counted block, so
that the compared blocks are timed together.

A signal stops the idle workers: a library may fetch the next batches while it waits (TensorFlow's
``fit``), or its threads may spin in search of work. A worker does its untimed work during its own
turn.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from threading import Thread
from typing import Generic, TypeVar

Time = TypeVar("Time", bound=float)
# Only Linux ends a stopped process with its parent (see :mod:`.parent_watch`). On other systems
# the sides wait without a signal.
CAN_STOP = sys.platform.startswith("linux")
# Threads of a library spin for a while before they sleep: OpenBLAS' for 2**26 ticks of the
# processor's counter, up to 30 ms. They must not take time of the next side.
PAUSE_SECONDS = 0.0 if CAN_STOP else 0.05
# Messages of a worker: it wants its turn or gives it up, and its next block counts.
TURN, READY = b"", b"ready"


class TimedWorker:
    def __init__(self, line: Connection) -> None:
        """Raises ``EOFError`` where it has ended already."""
        self.line = line
        self.ready = False
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
        """Resume the worker until it finishes its next timed block or reports that its warm-up is
        over. Return False if it exited."""
        self.go_on()
        try:
            if self.line.recv_bytes() == READY:
                self.ready = True
            else:
                self.line.send_bytes(TURN)  # has it
                self.line.recv_bytes()  # gives it up
        except (EOFError, OSError):
            return False
        self.stop()
        time.sleep(PAUSE_SECONDS)
        return True


class Lockstep:
    """Passes the turn among N workers, each of which connects to ``address``; a context manager.
    A worker that has ended is left out."""

    def __init__(self, sides: int) -> None:
        self._sides = sides
        # A backlog for the workers' connections and for those of `end`, which may stay unanswered.
        self._listener = Listener(backlog=2 * sides)
        self._ended = False
        self._thread = Thread(target=self._hand_round, name="turns", daemon=True)

    @property
    def address(self) -> str:
        return str(self._listener.address)

    def __enter__(self) -> "Lockstep":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._thread.join()
        self._listener.close()

    def end(self) -> None:
        """Give no more turns: a worker that waits for one ends with ``EOFError``."""
        self._ended = True
        for _ in range(self._sides):
            # Connect in place of the workers that never connected.
            with suppress(OSError):
                Client(self.address).close()

    def _hand_round(self) -> None:
        called: list[TimedWorker] = []
        try:
            for _ in range(self._sides):
                with suppress(EOFError, OSError):
                    called.append(TimedWorker(self._listener.accept()))
                    called[-1].stop()
            waiting = list(called)
            while waiting and not self._ended:
                behind = [side for side in waiting if not side.ready]
                for side in behind or tuple(waiting):
                    if not side.has_had_a_turn():
                        waiting.remove(side)
        finally:
            for side in called:
                side.line.close()
                side.go_on()


class LockstepClock(Generic[Time]):
    """A clock whose odd readings wait for the turn, and whose even readings give it up, after the
    time is read: no wait is timed."""

    def __init__(self, clock: Callable[[], Time], address: str) -> None:
        self._clock = clock
        self._has_turn = False
        self._line = Client(address)
        self._line.send_bytes(str(os.getpid()).encode())

    def __call__(self) -> Time:
        self._has_turn = not self._has_turn
        if self._has_turn:
            self._line.send_bytes(TURN)
            self._line.recv_bytes()
            return self._clock()
        now = self._clock()
        self._line.send_bytes(TURN)
        return now

    def meet(self) -> None:
        """Wait until all other workers have called this too, or have ended."""
        self._line.send_bytes(READY)
