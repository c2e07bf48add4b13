"""Numbers too small for a processor's fast path.

Adam's mean of gradients that have become zero, as those of a unit that never fires again, falls by
a tenth a step and is subnormal (below 2**-126 in float32) after some 800 steps: for good, for its
last bits round up again. An x86 processor computes with such numbers slowly, unless it is told to
take them for zero. TensorFlow and XLA tell it so in their threads; MLX does not.
"""

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Of <fenv.h> on x86-64, in glibc and in musl: the control register MXCSR ends the environment.
ENVIRONMENT_BYTES, MXCSR_AT = 32, 28
FLUSH_RESULTS, FLUSH_OPERANDS = 1 << 15, 1 << 6


@contextmanager
def flushed() -> Iterator[None]:
    """Threads that begin meanwhile, and this one until the end, take subnormal numbers for zero.

    Only on Linux on x86-64, where it was measured to matter; elsewhere nothing changes.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        yield
        return
    process = ctypes.CDLL(None)
    before = ctypes.create_string_buffer(ENVIRONMENT_BYTES)
    process.fegetenv(before)
    flushing = ctypes.create_string_buffer(before.raw, ENVIRONMENT_BYTES)
    control = ctypes.c_uint32.from_buffer(flushing, MXCSR_AT)
    control.value |= FLUSH_RESULTS | FLUSH_OPERANDS
    process.fesetenv(flushing)
    try:
        yield
    finally:
        process.fesetenv(before)
