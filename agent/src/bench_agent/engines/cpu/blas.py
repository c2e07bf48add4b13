"""A fast BLAS for MLX on Linux CPUs.

The mlx-cpu wheel contains a reference BLAS, some twenty times slower than the processor allows. A
library that is loaded before MLX with global symbols replaces its functions: one that the user
preloaded, else one of the machine, else the OpenBLAS in NumPy's wheel. The last has its own
function names and integer size, so a shim of one function is compiled for it.
"""

import ctypes
import ctypes.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

BUNDLED = "bundled reference BLAS"
# Libraries with C names for their matrix products, best first.
NAMES = ("openblas", "mkl_rt", "blis")
SET_THREADS = ("openblas_set_num_threads", "scipy_openblas_set_num_threads64_")
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
COMPILE_SECONDS = 30
# NumPy's build: 64-bit integers, names with a prefix and a suffix.
SHIM = """
#include <stdint.h>
void scipy_cblas_sgemm64_(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t,
                          const float *, int64_t, float, float *, int64_t);
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
  scipy_cblas_sgemm64_(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
"""


def preload() -> str:
    """Load a fast BLAS if there is one. Return the name of the one that MLX will use."""
    return _preloaded() or _of_the_machine() or _of_numpy() or BUNDLED


def set_threads(count: int) -> bool:
    """Make the loaded OpenBLAS use ``count`` threads, unless the user chose; returns if it will."""
    if any(name in os.environ for name in THREADS):
        return False
    loaded = ctypes.CDLL(None)
    setters = [getattr(loaded, name) for name in SET_THREADS if hasattr(loaded, name)]
    for function in setters:
        function(ctypes.c_int(count))
    return bool(setters)


def _preloaded() -> str | None:
    """A BLAS that the user loaded before all others (LD_PRELOAD)."""
    process = ctypes.CDLL(None)
    if not hasattr(process, "cblas_sgemm"):
        return None
    return _file_of(ctypes.cast(process.cblas_sgemm, ctypes.c_void_p)) or "preloaded BLAS"


def _of_the_machine() -> str | None:
    for library in filter(None, map(ctypes.util.find_library, NAMES)):
        if _load(library):
            return Path(library).name
    return None


def _of_numpy() -> str | None:
    """NumPy's own OpenBLAS, through a shim, if there is a C compiler."""
    libraries = Path(np.__file__).parent.with_name("numpy.libs")
    paths = sorted(libraries.glob("libscipy_openblas64_*.so"))
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
    if not (paths and compiler):
        return None
    with tempfile.TemporaryDirectory(prefix="trainmark-") as folder:
        shim = Path(folder) / "shim.so"
        command = [compiler, "-O2", "-shared", "-fPIC", "-x", "c", "-", "-x", "none"]
        try:
            subprocess.run(
                [*command, str(paths[0]), "-o", str(shim)],
                input=SHIM.encode(),
                check=True,
                timeout=COMPILE_SECONDS,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        # A loaded library no longer needs its file.
        return f"OpenBLAS of NumPy {np.__version__}" if _load(str(shim)) else None


def _load(library: str) -> bool:
    try:
        loaded = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return hasattr(loaded, "cblas_sgemm")


def _file_of(address: ctypes.c_void_p) -> str | None:
    """File name of the library that holds a function (dladdr)."""

    class Info(ctypes.Structure):
        _fields_ = (
            ("file", ctypes.c_char_p),
            ("base", ctypes.c_void_p),
            ("symbol", ctypes.c_char_p),
            ("symbol_address", ctypes.c_void_p),
        )

    info = Info()
    if not ctypes.CDLL(None).dladdr(address, ctypes.byref(info)) or not info.file:
        return None
    return Path(info.file.decode(errors="replace")).name
