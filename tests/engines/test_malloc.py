"""Memory allocation: freed memory is reused, not returned to the system."""

import subprocess
import sys

import pytest

# Pages (minor faults) that ten blocks of 16 MB take, one after the other.
FAULTS = """
import resource
import numpy as np
from bench_agent.engines.cpu import malloc

kept = {keep} and malloc.keep()
def use():
    np.ones(2**21).sum()
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    use()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _run(keep: bool, **environment: str) -> tuple[bool, int]:
    script = FAULTS.format(keep=keep)
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "NUMPY_MADVISE_HUGEPAGE": "0", **environment},
    )
    keeps, faults = done.stdout.split()
    return keeps == "True", int(faults)


@pytest.mark.only_on("linux")
def test_a_process_keeps_what_it_frees() -> None:
    keeps, faults = _run(keep=True)
    assert keeps
    _, usual = _run(keep=False)
    assert faults < 100
    assert usual > 1000


def test_a_users_choice_stays() -> None:
    assert _run(keep=True, MALLOC_MMAP_THRESHOLD_="65536")[0] is False
