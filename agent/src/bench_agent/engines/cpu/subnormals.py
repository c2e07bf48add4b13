"""Subnormal numbers: too small for a processor's fast path, so flush them to zero.

Adam's mean of gradients that became zero, such as those of a unit that no longer fires, falls by a
tenth each step. After some 800 steps it is subnormal (below 2**-126 in float32) and stays so,
because its last bits round up. An x86 processor computes slowly with such numbers unless it flushes
them to zero. TensorFlow and XLA set this mode in their threads; MLX does not.
"""

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# <fenv.h> on x86-64, in glibc and musl: the environment ends with the control register MXCSR.
ENVIRONMENT_BYTES, MXCSR_AT = 32, 28
FLUSH_RESULTS, FLUSH_OPERANDS = 1 << 15, 1 << 6


@contextmanager
def flushed() -> Iterator[None]:
    """Flush subnormal numbers in this thread, and in threads that start inside the block.

    Only on Linux on x86-64, where a measurement showed a gain; no effect on other systems.
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
