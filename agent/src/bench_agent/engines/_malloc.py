"""Memory that a process keeps.

glibc gives large blocks back to the system as soon as they are freed and asks for them anew, zeroed
page by page, at the next step. A loop whose activations take megabytes spends up to half its time
so.
"""

import ctypes
import os
import sys

# mallopt(3). The first is the highest that glibc takes on a 64-bit machine.
M_MMAP_THRESHOLD, MOST_BYTES = -3, 32 * 2**20
M_TRIM_THRESHOLD, KEPT_BYTES = -1, 2**30
CHOICES = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


def keep() -> bool:
    """Whether this process will keep the memory it frees: glibc can. A user's choice stays."""
    if sys.platform != "linux" or any(name in os.environ for name in CHOICES):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(
        mallopt(M_MMAP_THRESHOLD, MOST_BYTES) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
    )
