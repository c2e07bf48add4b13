"""Classify an exception as a kind of failure."""

import re
import sys
import traceback

from bench_protocol.base.units import plain_text
from bench_protocol.payload.result import Failed, FailureKind, Measurement, Phase

from ..base.errors import DataProblem
from ..engines.seam import WrongResult

# TensorFlow's ResourceExhaustedError, Torch's OutOfMemoryError, JAX's and MLX's plain RuntimeError.
OUT_OF_MEMORY_CLASS = re.compile(r"ResourceExhausted|OutOfMemory")
OUT_OF_MEMORY_TEXT = re.compile(
    r"RESOURCE_EXHAUSTED|out of memory|OOM when allocating|unable to allocate"
    r"|\[(?:\w+::)?malloc\w*\]|insufficient memory|cudaErrorMemoryAllocation"
    r"|DefaultCPUAllocator|CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED|std::bad_alloc",
    re.IGNORECASE,
)


def failed(error: Exception, phase: Phase, measurement: Measurement | None = None) -> Failed:
    """The outcome of an exception, which is also printed to the log."""
    traceback.print_exception(error)
    return Failed(
        kind=kind_of(error, phase),
        phase=phase,
        exception_class=class_of(error),
        measurement=measurement,
    )


def kind_of(error: BaseException, phase: Phase) -> FailureKind:
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    if any(_is_out_of_memory(link) for link in chain):
        return "out_of_memory"
    if any(isinstance(link, WrongResult) for link in chain):
        return "wrong_result"
    if isinstance(error, DataProblem):
        return "unavailable"
    # LookupError: the engine's word for a device that is not there.
    missing = (ImportError, LookupError) if phase in ("start", "import") else ImportError
    if isinstance(error, missing):
        return "unavailable"
    return "crashed"


def class_of(error: BaseException) -> str:
    kind = type(error)
    return plain_text(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."))


def host_peak_memory_bytes() -> int | None:
    """Peak memory of this process in bytes, as the operating system counts it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _is_out_of_memory(error: BaseException) -> bool:
    return (
        isinstance(error, MemoryError)
        or OUT_OF_MEMORY_CLASS.search(type(error).__name__) is not None
        or OUT_OF_MEMORY_TEXT.search(str(error)[:10_000]) is not None
    )
