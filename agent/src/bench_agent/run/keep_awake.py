"""Keep a Mac awake while it measures."""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def awake(system: str = platform.system()) -> Iterator[None]:
    """Prevent sleep inside the block (``caffeinate`` on macOS; elsewhere nothing is needed).

    caffeinate also ends with this process (``-w``), however that ends. It has its own session, so
    that a Ctrl-C does not end it while the last repeat is finished.
    """
    command = shutil.which("caffeinate") if system == "Darwin" else None
    options = ["-i", "-m", "-s", "-w", str(os.getpid())]
    holder = subprocess.Popen([command, *options], start_new_session=True) if command else None
    try:
        yield
    finally:
        if holder:
            holder.terminate()
            holder.wait()
