"""Memory allocation: make glibc reuse freed memory instead of returning it to the system.

glibc returns large blocks to the system as soon as they are freed, and requests them again, zeroed
page by page, at the next step. A loop with megabytes of activations spends up to half its time on
this.
"""

import ctypes
import os
import sys

# mallopt(3): no separate mapping for large blocks, no trimming, and growth by 64 MB.
KEEP = {"M_MMAP_MAX": (-4, 0), "M_TRIM_THRESHOLD": (-1, 2**31 - 1), "M_TOP_PAD": (-2, 2**26)}
CHOICES = ("MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")


def keep() -> bool:
    """Make this process reuse freed memory, if glibc is its allocator and the user chose nothing;
    returns whether it will."""
    if sys.platform != "linux" or any(name in os.environ for name in CHOICES):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(*option) for option in KEEP.values())
