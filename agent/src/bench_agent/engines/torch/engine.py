"""PyTorch: CUDA, Metal (its MPS backend), CPU."""

import re
from typing import Any

from bench_protocol.catalogue.layers import Conv2D
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ...base.messages import FoundDevice
from ...base.names import unknown
from ...base.precisions import COMPUTE_TYPES
from ..common import FRAMEWORK_SEED, Framework
from ..cpu import threads
from ..seam import Data, Engine, Products, Session

EAGER, GRAPH, COMPILED_GRAPH = "eager", "cuda_graph", "compiled_cuda_graph"
FORMS = (EAGER, GRAPH, COMPILED_GRAPH)
PLACE = {"cpu": "cpu", "cuda": "cuda", "metal": "mps"}


class Torch(Framework):
    name = "torch"
    import_name = "torch"
    distributions: tuple[str, ...] = ("torch",)

    def __init__(self) -> None:
        self.form = EAGER
        self._device: Any = "cpu"
        self._compute = COMPUTE_TYPES["float32"]

    def forms(self, cell: Cell) -> tuple[str, ...]:
        on_cuda = cell.recipe == "tuned" and cell.device.kind == "cuda"
        return FORMS if on_cuda else ()

    def load(self, workload: Workload, cell: Cell) -> None:
        """Import PyTorch and set TF32 according to the precision."""
        device = cell.device
        import torch

        if (device.kind, device.index) not in {(seen.kind, seen.index) for seen in self.devices()}:
            kinds = ", ".join(f"{seen.kind}:{seen.index}" for seen in self.devices())
            raise LookupError(f"PyTorch sees no device {device}; it sees {kinds}")
        self._compute = COMPUTE_TYPES[cell.precision]
        torch.set_float32_matmul_precision("high" if cell.precision == "tf32" else "highest")
        # TF32 is on by default in PyTorch's cuDNN.
        torch.backends.cudnn.allow_tf32 = cell.precision == "tf32"
        self._device = torch.device(
            PLACE[device.kind], device.index if device.kind == "cuda" else None
        )
        if device.kind == "cuda":
            torch.cuda.set_device(self._device)

    def devices(self) -> list[FoundDevice]:
        import torch

        devices = [
            FoundDevice(
                kind="cuda",
                index=index,
                name=torch.cuda.get_device_name(index)[:200],
                compute_capability="{}.{}".format(*torch.cuda.get_device_capability(index)),
            )
            for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0)
        ]
        if torch.backends.mps.is_available():
            name = getattr(torch.backends.mps, "get_name", lambda: "Apple GPU")()
            devices.append(FoundDevice(kind="metal", index=0, name=str(name)[:200]))
        return [*devices, FoundDevice(kind="cpu", index=0, name="CPU")]

    def libraries(self) -> dict[str, str]:
        import torch

        build = torch.__config__.show()
        patterns = {"blas": r"BLAS_INFO=(\w+)", "onednn": r"MKL-DNN v([\d.]+)"}
        matches = {name: re.search(pattern, build) for name, pattern in patterns.items()}
        versions = {name: match[1] for name, match in matches.items() if match}
        if torch.version.cuda and torch.cuda.is_available():
            versions["cuda"] = str(torch.version.cuda)
            versions["cudnn"] = str(torch.backends.cudnn.version())
        return versions

    def settings(self) -> dict[str, str]:
        import torch

        settings = {
            "torch_threads": str(torch.get_num_threads()),
            "torch_interop_threads": str(torch.get_num_interop_threads()),
            "torch_onednn": "on" if torch.backends.mkldnn.is_available() else "off",
            "torch_float32_matmul": torch.get_float32_matmul_precision(),
        }
        if torch.cuda.is_available():
            settings["torch_cudnn_tf32"] = str(torch.backends.cudnn.allow_tf32).lower()
        return settings

    def products(self, size: int) -> Products:
        import torch

        from .products import TorchProducts

        if threads.chosen_here():
            torch.set_num_threads(threads.usable_cores())  # what the processor can do
        return TorchProducts(size, self._device, getattr(torch, self._compute))

    def open(self, workload: Workload, cell: Cell, weights: Weights, data: Data) -> Session:
        import torch

        from . import captured
        from . import model as torch_model
        from .sessions import FedSession, TunedSession

        torch.manual_seed(FRAMEWORK_SEED)
        device = self._device
        if cell.recipe != "tuned":
            model = torch_model.build(workload, weights, cell.batch_size)
            return FedSession(workload, cell, data, model, device)
        if device.type == "cpu" and threads.chosen_here():
            torch.set_num_threads(threads.of_a_step(workload, cell.batch_size))
        # Shapes never change, so cuDNN tries its algorithms once.
        torch.backends.cudnn.benchmark = device.type == "cuda"
        convolves = any(isinstance(layer, Conv2D) for layer in workload.layers)
        # oneDNN is a third faster with it, and tensor cores take it; not measured on GPUs.
        tensor_cores = device.type == "cuda" and cell.precision != "float32"
        channels_last = convolves and (device.type == "cpu" or tensor_cores)
        # In bfloat16 a CPU's fused attention made a step of gpt-char a tenth slower than products.
        fused = device.type != "cpu" or self._compute == "float32"
        model = torch_model.build(
            workload, weights, cell.batch_size, channels_last=channels_last, fused=fused
        )
        if self.form not in FORMS:
            raise LookupError(unknown("form", self.form, list(FORMS)))
        trained = (workload, cell, data, model, device)
        if self.form == EAGER:
            return TunedSession(*trained, channels_last=channels_last)
        return captured.CapturedSession(
            *trained,
            channels_last=channels_last,
            compiled=self.form == COMPILED_GRAPH,
            capture=captured.in_a_graph if device.type == "cuda" else captured.as_it_is,
        )


ENGINE: Engine = Torch()
