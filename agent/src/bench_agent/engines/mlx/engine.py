"""MLX: Metal, CUDA, CPU."""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from bench_protocol.catalogue.matrix import Cell, DeviceKind
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ...base.messages import FoundDevice
from ...base.precisions import COMPUTE_TYPES
from ..common import FRAMEWORK_SEED, Framework, available_cores
from ..cpu import blas
from ..cpu import chains as cpu_chains
from ..seam import Data, Engine, Products, Session


class Mlx(Framework):
    name = "mlx"
    import_name = "mlx.core"
    distributions: tuple[str, ...] = ("mlx", "mlx-metal", "mlx-cpu", "mlx-cuda-12", "mlx-cuda-13")
    tf32_on_metal = True

    def __init__(self) -> None:
        self._blas = ""
        self._blas_threads: int | None = None
        self._compute = COMPUTE_TYPES["float32"]

    def load(self, workload: Workload, cell: Cell) -> None:
        """Import MLX and make the device its default."""
        device = cell.device
        self._prepare()
        if device.kind == "cpu" and cell.recipe == "tuned":
            chains = cpu_chains.one_core_chains(workload, cell.batch_size)
            threads = cpu_chains.blas_threads(chains)
            self._blas_threads = threads if blas.set_threads(threads) else None
        self._compute = COMPUTE_TYPES[cell.precision]
        # MLX reads it at the first matrix product; its default is TF32 if the GPU has it.
        os.environ["MLX_ENABLE_TF32"] = "1" if cell.precision == "tf32" else "0"
        import mlx.core as mx

        kinds = {device.kind for device in self.devices()}
        if device.kind not in kinds:
            raise LookupError(f"MLX sees no device {device}; it sees {', '.join(sorted(kinds))}")
        mx.set_default_device(
            mx.Device(mx.cpu, 0) if device.kind == "cpu" else mx.Device(mx.gpu, device.index)
        )

    def devices(self) -> list[FoundDevice]:
        self._prepare()
        import mlx.core as mx

        devices = [FoundDevice(kind="cpu", index=0, name="CPU")]
        if mx.is_available(mx.gpu):
            kind: DeviceKind = "metal" if sys.platform == "darwin" else "cuda"
            for index in range(mx.device_count(mx.gpu)):
                facts = mx.device_info(mx.Device(mx.gpu, index))
                name = str(facts.get("device_name", "GPU"))[:200]
                architecture = str(facts.get("architecture", ""))[:64] or None
                devices.insert(
                    index,
                    FoundDevice(
                        kind=kind,
                        index=index,
                        name=name,
                        compute_capability=_capability(facts),
                        architecture=architecture if kind == "metal" else None,
                    ),
                )
        return devices

    def libraries(self) -> dict[str, str]:
        libraries = {"blas": self._blas} if self._blas else {}
        if sys.platform.startswith("linux"):
            # MLX compiles its CPU kernels with it at run time.
            libraries["cxx_compiler"] = "g++" if shutil.which("g++") else "none"
        return libraries

    def settings(self) -> dict[str, str]:
        return {"blas_threads": str(self._blas_threads)} if self._blas_threads else {}

    def products(self, size: int) -> Products:
        import mlx.core as mx

        from .products import MlxProducts

        if self._blas_threads:
            blas.set_threads(available_cores())  # no chains here: one product uses all cores
        return MlxProducts(size, getattr(mx, self._compute))

    def open(self, workload: Workload, cell: Cell, weights: Weights, data: Data) -> Session:
        import mlx.core as mx

        from . import model as mlx_model
        from .sessions import FedSession, TunedSession

        mx.random.seed(FRAMEWORK_SEED)
        is_tuned = cell.recipe == "tuned"
        model = mlx_model.build(workload, weights, fast=is_tuned)
        if not is_tuned:
            return FedSession(workload, cell, data, model)
        may_compile = os.environ.get("MLX_DISABLE_COMPILE", "0") in ("", "0")
        return TunedSession(workload, cell, data, model, may_compile=may_compile)

    def _prepare(self) -> None:
        """Settings that must be made before the first import of MLX."""
        if "mlx.core" in sys.modules or not sys.platform.startswith("linux"):
            return
        if not shutil.which("g++"):
            # Without a compiler MLX silently runs unfused, so the settings report it.
            os.environ["MLX_DISABLE_COMPILE"] = "1"
        self._blas = blas.preload()


def _capability(facts: Mapping[str, Any]) -> str | None:
    numbers = [facts.get(f"compute_capability_{part}") for part in ("major", "minor")]
    return None if None in numbers else "{}.{}".format(*numbers)


ENGINE: Engine = Mlx()
