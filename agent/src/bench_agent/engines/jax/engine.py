"""JAX: CUDA, CPU, and Metal through jax-mps (never run on a Mac so far)."""

import os
import sys
import traceback
from importlib.util import find_spec
from typing import Any

from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ...base.messages import FoundDevice
from ...base.precisions import COMPUTE_TYPES
from ..common import Framework, available_cores
from ..seam import Data, Engine, Products, Session

# jax-mps' module (PyPI), and JAX's name of its platform; elsewhere a platform is named as the kind.
MPS_PLUGIN, MPS = "jax_plugins.mps", "mps"


class Jax(Framework):
    name = "jax"
    import_name = "jax"
    distributions: tuple[str, ...] = (
        "jax",
        "jaxlib",
        "jax-cuda12-plugin",
        "jax-cuda13-plugin",
        "jax-mps",
    )

    def __init__(self) -> None:
        self._device: Any = None
        self._compute = COMPUTE_TYPES["float32"]

    def load(self, workload: Workload, cell: Cell) -> None:
        """Import JAX and make the device its default."""
        device = cell.device
        _prepare()
        if device.kind == "metal":
            # jax-mps computes with MLX, whose default is TF32 if the GPU has it.
            os.environ["MLX_ENABLE_TF32"] = "0"
        import jax

        # A CPU cell must not touch a GPU or take its memory.
        if device.kind == "cpu":
            jax.config.update("jax_platforms", "cpu")
        try:
            seen = jax.devices(MPS if device.kind == "metal" else device.kind)
        except RuntimeError as error:
            raise LookupError(f"JAX sees no device {device}: {error}") from error
        if device.index >= len(seen):
            raise LookupError(f"JAX sees no device {device}; it sees {len(seen)} of this kind")
        self._device = seen[device.index]
        jax.config.update("jax_default_device", self._device)
        # "float32" forbids TF32 and products from fewer bfloat16 passes.
        self._compute = COMPUTE_TYPES[cell.precision]
        products = "tensorfloat32" if cell.precision == "tf32" else "float32"
        jax.config.update("jax_default_matmul_precision", products)
        # Partitionable random numbers, made for several devices, cost a CPU twice the work.
        alone = cell.recipe == "tuned" and device.kind == "cpu"
        jax.config.update("jax_threefry_partitionable", not alone)

    def devices(self) -> list[FoundDevice]:
        _prepare()
        import jax

        gpus: list[FoundDevice] = []
        try:
            for seen in jax.devices("cuda"):
                name = str(seen.device_kind)[:200]
                gpus.append(
                    FoundDevice(
                        kind="cuda",
                        index=len(gpus),
                        name=name,
                        compute_capability=str(seen.compute_capability),
                    )
                )
        except RuntimeError:  # JAX's error for a missing platform
            pass
        if _has_mps():
            try:
                names = [str(seen.device_kind)[:200] for seen in jax.devices(MPS)]
                gpus += [
                    FoundDevice(kind="metal", index=index, name=name)
                    for index, name in enumerate(names)
                ]
            except RuntimeError:  # the plug-in is there and does not work
                traceback.print_exc()
                jax.config.update("jax_platforms", "cpu")
        return [*gpus, FoundDevice(kind="cpu", index=0, name="CPU")]

    def libraries(self) -> dict[str, str]:
        from jax.extend import backend

        # JAX reports no more of its platform: "cpu", or "PJRT C API" and "cuda 12090".
        libraries = {"xla_platform": " ".join(backend.get_backend().platform_version.split())[:200]}
        if self._device is not None and self._device.platform == "gpu":
            try:
                from jax._src.lib import cuda_versions

                libraries["cuda"] = str(cuda_versions.cuda_runtime_get_version())
                libraries["cudnn"] = str(cuda_versions.cudnn_get_version())
            except (ImportError, AttributeError):  # no public way to ask
                libraries["cudnn"] = "unknown"
        return libraries

    def settings(self) -> dict[str, str]:
        import jax

        return {
            # XLA cannot be asked: it uses as many threads as it may use cores.
            "jax_cpu_threads": str(available_cores()),
            "jax_matmul_precision": str(jax.config.jax_default_matmul_precision),
            "jax_threefry_partitionable": str(bool(jax.config.jax_threefry_partitionable)).lower(),
            "jax_enable_x64": str(bool(jax.config.jax_enable_x64)).lower(),
        }

    def products(self, size: int) -> Products:
        from .products import JaxProducts

        return JaxProducts(size, self._compute)

    def open(self, workload: Workload, cell: Cell, weights: Weights, data: Data) -> Session:
        from .sessions import FedSession, TunedSession

        session = TunedSession if cell.recipe == "tuned" else FedSession
        return session(workload, cell, data, weights)


def _prepare() -> None:
    """Settings that must be made before the first import of JAX."""
    # Otherwise JAX allocates three quarters of the GPU at once and its peak is meaningless.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if sys.platform == "darwin":
        # Apple's own plug-in is unmaintained, and JAX would choose it if it is still installed.
        os.environ["JAX_PLATFORMS"] = f"{MPS},cpu" if _has_mps() else "cpu"


def _has_mps() -> bool:
    try:
        return sys.platform == "darwin" and find_spec(MPS_PLUGIN) is not None
    except ModuleNotFoundError:  # no plug-in of JAX at all
        return False


ENGINE: Engine = Jax()
