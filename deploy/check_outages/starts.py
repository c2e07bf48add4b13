"""The cost of a server's start in processor time, compared with a reference on the same machine.

A start takes longer on a busy machine, its processor time hardly so. The reference is a bare
interpreter that imports the packages a server cannot do without; its processor time bounds the
server's, whatever the machine is.
"""

import subprocess
import sys
from collections.abc import Sequence
from statistics import median

import psutil

REFERENCE = (
    "import fastapi, sqlmodel, uvicorn, pydantic_settings, cryptography.x509, time; "
    "print(time.process_time())"
)
TIMES = 3
# The reference takes about half a second of a core: a start without delays takes 2 s at most.
MOST = 4.0


def reference_seconds() -> float:
    """Processor seconds of the reference: the median of a few."""
    command = [sys.executable, "-c", REFERENCE]
    runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(TIMES)]
    return median(float(run.stdout) for run in runs)


def processor_seconds(pid: int) -> float | None:
    """Processor seconds of a process since its start; None if it has ended."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system)


def too_slow(starts: Sequence[float], reference: float) -> str | None:
    """What is wrong with the starts, if anything.

    Args:
        starts: processor seconds of each start.
        reference: of :func:`reference_seconds`, taken beside them.
    """
    if not starts or median(starts) <= MOST * reference:
        return None
    return (
        f"a start took {median(starts):.2f} processor seconds in the median, more than {MOST:g} "
        f"times the {reference:.2f} of the packages it needs"
    )
