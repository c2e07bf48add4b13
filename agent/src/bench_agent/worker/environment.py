"""The software a repeat ran on: versions, libraries, and settings that change speed."""

import os
import platform
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from bench_protocol.base.units import plain_text
from bench_protocol.payload.machine import Environment

from ..engines.seam import Engine

# Distributions whose versions are recorded with every engine.
COMMON_DISTRIBUTIONS = ("bench-agent", "bench-protocol", "numpy")
# Environment variables known to change how fast training is.
CHANGES_SPEED = re.compile(
    r"(?:OMP|GOMP|KMP|OPENBLAS|GOTO|MKL|BLIS|VECLIB|ONEDNN|DNNL)_\w+"
    r"|TF_(?:ENABLE_ONEDNN_OPTS|NUM_\w+|XLA_FLAGS|CPU_\w+|GPU_\w+|FORCE_\w+|CUDNN_\w+)"
    r"|TF_USE_LEGACY_KERAS|XLA_\w+|JAX_(?:ENABLE_X64|PLATFORMS|DEFAULT_MATMUL_PRECISION)"
    r"|MLX_\w+|KERAS_(?:BACKEND|TORCH_DEVICE|NNX_ENABLED)|NVIDIA_TF32_OVERRIDE"
    r"|TORCH_(?:ALLOW_TF32_CUBLAS_OVERRIDE|CUDNN_\w+)|PYTORCH_\w+|CUDA_LAUNCH_BLOCKING"
    r"|CUBLAS_WORKSPACE_CONFIG|LD_PRELOAD|DYLD_INSERT_LIBRARIES|PYTHONMALLOC|MALLOC_\w+"
    r"|GLIBC_TUNABLES|TURN_OFF_REMAPPER|MPS_\w+"
)
# Environment variables that a worker gets: those it needs to start, and those that change speed
# (all of ``CHANGES_SPEED``). No tokens, no addresses.
PASSED_ON = re.compile(
    r"PATH|HOME|USER|TMPDIR|TEMP|LANG|LC_\w+|TZ|VIRTUAL_ENV|PYTHON(?!STARTUP|INSPECT)\w+"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|DYLD_\w+|MALLOC_\w+|GLIBC_TUNABLES|BENCH_DATA_DIR"
    r"|TURN_OFF_REMAPPER"
    r"|(?:OMP|GOMP|KMP|OPENBLAS|GOTO|MKL|BLIS|VECLIB|ONEDNN|DNNL|TF|TF2|XLA|JAX|MLX|KERAS|TORCH"
    r"|PYTORCH|CUDA|CUBLAS|CUDNN|NCCL|NVIDIA|METAL|MTL|MPS)_(?!.*(?:TOKEN|SECRET|PASSWORD|CREDENTIAL))\w+"
)
MOST_SETTINGS = 64
LONGEST_VERSION = 64
# A path without its last part.
FOLDERS = re.compile(r"[^\s=:,;]*[/\\](?=[^/\\]|$)")


def describe(engine: Engine, environ: Mapping[str, str] = os.environ) -> Environment:
    """Environment of this process. The engine must have been loaded."""
    settings = {name: without_folders(value) for name, value in engine.settings().items()}
    settings = dict(list({**settings, **speed_settings(environ)}.items())[:MOST_SETTINGS])
    return Environment(
        python=platform.python_version(),
        packages=packages((*engine.distributions, *COMMON_DISTRIBUTIONS)),
        libraries={name: without_folders(value) for name, value in engine.libraries().items()},
        settings=settings,
    )


def speed_settings(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name: without_folders(value)
        for name, value in sorted(environ.items())
        if CHANGES_SPEED.fullmatch(name)
    }


def worker_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {name: value for name, value in environ.items() if PASSED_ON.fullmatch(name)}


def packages(distributions: tuple[str, ...]) -> dict[str, str]:
    versions = {}
    for name in distributions:
        try:
            versions[name] = version(name)[:LONGEST_VERSION]
        except PackageNotFoundError:
            continue
    return versions


def without_folders(text: str) -> str:
    """The text with every path cut to its file name, because a folder can contain a user's name."""
    return plain_text(FOLDERS.sub("", text))
