"""A server's process: Python's garbage collector and threads, the C library's arenas."""

import ctypes
import gc
import os
import sys

M_ARENA_MAX = -8  # mallopt(3)
ARENAS = 2
SWITCH_SECONDS = 0.001


def tune_collector() -> None:
    """Freeze start-up objects so that the collector skips them: scanning them took as long as a
    request. Requests create few cycles, so collect every 10,000 allocations instead of 700.

    No collection comes first: it would take 0.1 s and find next to nothing.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


def switch_threads_often() -> None:
    """Let a thread that computes yield after 1 ms instead of Python's 5: the event loop waits for
    it several times in each request."""
    sys.setswitchinterval(SWITCH_SECONDS)


def limit_arenas() -> None:
    """Let all threads share ``ARENAS`` arenas of glibc, unless the operator chose a number. Call it
    before the process has threads.

    By default each thread gets an arena of its own, which keeps the memory of its largest request.
    What this saves is in docs/results.md.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)
