"""Why a worker ended without an answer: out of memory, or another cause.

A process that the kernel killed for lack of memory and one that a user killed end alike (SIGKILL).
The kernel counts its own kills, so its count is read before and after.
"""

import os
import re
import signal
from pathlib import Path

from ..machine.text import file_text
from ..worker.failures import OUT_OF_MEMORY_TEXT

LOG_TAIL_BYTES = 64 * 1024
# Exit of a library that reports a failed allocation: an abort, or an uncaught exception.
AFTER_SAYING_SO = (-signal.SIGABRT, -signal.SIGSEGV, 1)


def memory_kills(root: Path = Path("/")) -> int:
    """How often Linux has killed a process because memory ran out, its own or its group's."""
    match = re.search(r"^oom_kill ([0-9]{1,18})$", file_text(root / "proc/vmstat"), re.MULTILINE)
    return int(match.group(1)) if match else 0


def ran_out_of_memory(exit_code: int | None, log: Path, kills: int) -> bool:
    """Whether a worker without an answer ended because memory ran out. ``exit_code``: negative for
    a signal, or unknown. ``kills``: by how much :func:`memory_kills` rose while it ran."""
    if exit_code == -signal.SIGKILL:
        return kills > 0
    return exit_code in AFTER_SAYING_SO and OUT_OF_MEMORY_TEXT.search(_tail(log)) is not None


def _tail(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
