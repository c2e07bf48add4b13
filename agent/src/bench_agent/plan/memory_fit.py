"""What fits into this machine's memory, and what cannot."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench_protocol import format as people
from bench_protocol.matrix import Cell
from bench_protocol.memory import training_memory
from bench_protocol.workloads import Workload

from ..machine import MachineFacts

# What a worker takes beside the training on a Linux CPU: the framework, NumPy, the agent
# (docs/methodology.md tells how it was measured).
FRAMEWORK_BYTES: Mapping[str, int] = {
    "mlx": 350_000_000,
    "torch": 500_000_000,
    "jax": 550_000_000,
    "tensorflow": 1_100_000_000,
}
UNKNOWN_FRAMEWORK_BYTES = 350_000_000


@dataclass(frozen=True)
class MemoryNeed:
    """Memory that a repeat needs, in bytes. Where the two are one memory, both say the sum."""

    device_bytes: int
    host_bytes: int


@dataclass(frozen=True)
class FreeMemory:
    """Memory there is, in bytes; None where the system does not tell.

    ``gpu_bytes``: of NVIDIA GPUs, by their index; Apple's share the host's.
    """

    host_bytes: int | None = None
    gpu_bytes: Mapping[int, int | None] | None = None

    def why_not(self, cell: Cell, workload: Workload) -> str | None:
        """Reason why a cell cannot fit, or None."""
        need = need_of(cell, workload)
        on_gpu = (self.gpu_bytes or {}).get(cell.device.index)
        if cell.device.kind == "cuda" and on_gpu and need.device_bytes > on_gpu:
            return _too_little(need.device_bytes, on_gpu, "the GPU")
        if self.host_bytes and need.host_bytes > self.host_bytes:
            return _too_little(need.host_bytes, self.host_bytes, "this machine")
        return None


def room_of(facts: MachineFacts) -> FreeMemory:
    """The memory of a machine; in a container what that grants."""
    return FreeMemory(
        host_bytes=facts.memory_bytes,
        gpu_bytes={gpu.index: gpu.memory_bytes for gpu in facts.gpus if gpu.kind == "cuda"},
    )


def need_of(cell: Cell, workload: Workload) -> MemoryNeed:
    """Memory that a repeat of a cell needs at least."""
    training = training_memory(workload, cell.batch_size, cell.precision)
    framework = FRAMEWORK_BYTES.get(cell.framework, UNKNOWN_FRAMEWORK_BYTES)
    beside = framework + training.samples
    if cell.device.kind == "cuda":
        return MemoryNeed(device_bytes=training.on_device, host_bytes=beside)
    return MemoryNeed(
        device_bytes=beside + training.on_device, host_bytes=beside + training.on_device
    )


def _too_little(need_bytes: int, there_bytes: int, where: str) -> str:
    need, there = people.size(need_bytes), people.size(there_bytes)
    return f"needs at least {need} of memory, {where} has {there}"
