"""End a worker whose parent died, so that it does not keep the machine busy."""

import ctypes
import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1  # linux/prctl.h
POLL_SECONDS = 1.0


def die_with(parent: int) -> None:
    """End this process soon after its parent ends. Linux sends the signal itself; elsewhere, and if
    the parent ended before this call, a thread checks whether this process got a new parent."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent,), name="orphan watch", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)
