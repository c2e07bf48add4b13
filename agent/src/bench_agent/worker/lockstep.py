"""Workers that time their blocks in turns, the others stopped meanwhile.

A worker reads its clock at the beginning and at the end of all that it times.
:class:`LockstepClock` makes the first reading wait for the worker's turn and gives the turn up at
the second. :class:`Lockstep` hands the turn round. Imports and warm-up take turns too, more on one
side than on the other; the side that is ready first waits at its first block that counts, so that
the compared blocks are timed together.

A signal stops the idle workers: a library may fetch the next batches while it waits (TensorFlow's
``fit``), or its threads may spin in search of work. What a worker does between two timed blocks, it
does during its own turn.
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
# Only Linux ends a stopped process with its parent (see :mod:`.parent_watch`). Elsewhere sides
# just wait.
CAN_STOP = sys.platform.startswith("linux")
# Threads of a library look out for more work for a while before they sleep: OpenBLAS' for 2**26
# ticks of the processor's counter, up to 30 ms. They must not take the next side's time.
PAUSE_SECONDS = 0.0 if CAN_STOP else 0.05
# What a worker says: that it wants its turn or gives it up, and that its next block counts.
TURN, READY = b"", b"ready"


class Side:
    """A worker that has called."""

    def __init__(self, line: Connection) -> None:
        """
        Raises:
            EOFError: it has ended already.
        """
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
        """Let it go on until it has given up its next turn, or is ready for the first that counts;
        False where it ended instead."""
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
        """Where :class:`LockstepClock` calls."""
        return str(self._listener.address)

    def __enter__(self) -> "Lockstep":
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
                behind = [side for side in waiting if not side.ready]
                for side in behind or tuple(waiting):
                    if not side.has_had_a_turn():
                        waiting.remove(side)
        finally:
            for side in called:
                side.line.close()
                side.go_on()


class LockstepClock(Generic[Time]):
    """A clock whose first, third, ... reading waits for the turn that the next one gives up.

    It is read when the turn is there, and before it is given up: no waiting is timed.
    """

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
        """The next turn is to come when all others have said so too, or have ended."""
        self._line.send_bytes(READY)
