"""Keep the machine awake while it measures."""

import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def awake(system: str = platform.system()) -> Iterator[None]:
    """Prevent sleep inside the block, with ``caffeinate`` on macOS and ``systemd-inhibit`` where
    systemd is; elsewhere nothing is done.

    Both also end with this process, however that ends. They have their own session, so that a
    Ctrl-C does not end them while the last repeat is finished. Without a login manager, as in a
    container, systemd-inhibit ends at once: such a system does not fall asleep.
    """
    command = _command(system, os.getpid())
    holder = None
    if command:
        holder = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        if holder:
            with suppress(ProcessLookupError):
                os.killpg(holder.pid, signal.SIGTERM)
            holder.wait()


def _command(system: str, agent: int) -> list[str] | None:
    """The command that keeps the system awake until the process with this id ends."""
    if system == "Darwin":
        name, options = "caffeinate", ["-i", "-m", "-s", "-w", str(agent)]
    else:
        name = "systemd-inhibit"
        options = ["--what=idle:sleep", "--who=bench-agent", "--why=a benchmark runs"]
        options += ["sh", "-c", f"while kill -0 {agent}; do sleep 1; done"]
    program = shutil.which(name)
    return [program, *options] if program else None
