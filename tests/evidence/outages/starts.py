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
# Above 2.5 to 3.0, the quotients measured in docs/results.md (outages).
MOST = 4.0
# One start may be dear: with 200 agents that wait for it, the server works for them before it has
# answered the first question.
LEAST_STARTS = 3


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
    """What is wrong with the starts, if anything; fewer than three are not judged.

    Args:
        starts: processor seconds of each start.
        reference: of :func:`reference_seconds`, taken beside them.
    """
    if len(starts) < LEAST_STARTS or median(starts) <= MOST * reference:
        return None
    return (
        f"a start took {median(starts):.2f} processor seconds in the median, more than {MOST:g} "
        f"times the {reference:.2f} of the packages it needs"
    )
