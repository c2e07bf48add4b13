"""Memory that a process keeps.

glibc gives large blocks back to the system as soon as they are freed and asks for them anew, zeroed
page by page, at the next step. A loop whose activations take megabytes spends up to half its time
so.
"""

import ctypes
import os
import sys

# mallopt(3): no block by a mapping of its own, nothing given back, and 64 MB more at a time.
KEEP = {"M_MMAP_MAX": (-4, 0), "M_TRIM_THRESHOLD": (-1, 2**31 - 1), "M_TOP_PAD": (-2, 2**26)}
CHOICES = ("MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


def keep() -> bool:
    """Whether this process will keep the memory it frees: glibc can. A user's choice stays."""
    if sys.platform != "linux" or any(name in os.environ for name in CHOICES):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(*option) for option in KEEP.values())
