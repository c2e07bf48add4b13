"""The energy counter of an NVIDIA GPU (nvmlDeviceGetTotalEnergyConsumption, Volta and newer)."""

from contextlib import ExitStack

from bench_protocol.payload.readings import EnergySource

from ...machine import nvidia
from .meter import Counters, MeterProblem

GPU = "gpu"


class Nvml:
    """The counter of GPU ``index``, in the frameworks' order.

    Raises:
        MeterProblem: there is no such GPU, it has no counter, or it is a slice of one (MIG).
    """

    source: EnergySource = "nvml"
    scope = GPU

    def __init__(self, index: int) -> None:
        self._open = ExitStack()
        self._library = self._open.enter_context(nvidia.nvml())
        try:
            self._handle = self._whole_gpu(index)
            self.read()
        except MeterProblem:
            self.close()
            raise

    def read(self) -> Counters:
        counted = nvidia.query(self._library, "DeviceGetTotalEnergyConsumption", self._handle)
        if not isinstance(counted, int):
            raise MeterProblem("this GPU or its driver has no energy counter")
        return {GPU: counted}

    def close(self) -> None:
        self._open.close()

    def _whole_gpu(self, index: int) -> object:
        if self._library is None:
            raise MeterProblem(f"NVML does not start: {nvidia.why_no_driver()}")
        handle = nvidia.handle_of(self._library, index)
        if handle is None:
            raise MeterProblem(f"NVML lists no GPU {index}")
        if nvidia.is_divided(self._library, handle):
            raise MeterProblem("energy belongs to the whole GPU, this is a slice of one (MIG)")
        return handle
