"""Keep a Mac awake while it measures."""

import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def awake(system: str = platform.system()) -> Iterator[None]:
    """Prevent sleep inside the block (``caffeinate`` on macOS; elsewhere nothing is needed)."""
    command = shutil.which("caffeinate") if system == "Darwin" else None
    holder = subprocess.Popen([command, "-i", "-m", "-s"]) if command else None
    try:
        yield
    finally:
        if holder:
            holder.terminate()
            holder.wait()
