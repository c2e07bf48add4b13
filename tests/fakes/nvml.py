"""A fake ``pynvml``: GPUs that answer given queries and refuse all others."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """As in pynvml: what every refused question raises."""


@dataclass
class FakeGpu:
    """``answers`` by the question's name without ``nvmlDevice``; a missing one is not supported."""

    uuid: str
    answers: dict[str, Any] = field(default_factory=dict)


def h200(number: int, **answers: Any) -> FakeGpu:
    uuid = f"GPU-{number:08x}-0000-4000-8000-00000000cafe"
    return FakeGpu(
        uuid,
        {
            "GetName": "NVIDIA H200",
            "GetUUID": uuid,
            "GetSerial": "PLANTEDSER1A",
            "GetMemoryInfo": SimpleNamespace(total=150_000_000_000, used=1),
            "GetCudaComputeCapability": (9, 0),
            "GetMigMode": (0, 0),
            "GetEccMode": (1, 1),
            "GetEnforcedPowerLimit": 650_000,
            "GetPowerManagementDefaultLimit": 700_000,
            "GetMaxClockInfo": 1980,
            "GetUtilizationRates": SimpleNamespace(gpu=3, memory=1),
            "GetComputeRunningProcesses": [],
        }
        | answers,
    )


class FakeNvml:
    NVMLError = NVMLError

    def __init__(
        self, *gpus: FakeGpu, driver: Any = "580.65.06", broken: str | None = None
    ) -> None:
        self.gpus = gpus
        self.driver = driver
        self.broken = broken

    def nvmlInit(self) -> None:  # noqa: N802
        if self.broken:
            raise NVMLError(self.broken)

    def nvmlShutdown(self) -> None:  # noqa: N802
        raise NVMLError("even this may fail")

    def __getattr__(self, name: str) -> Any:
        def answer(*arguments: Any) -> Any:
            if name == "nvmlSystemGetDriverVersion":
                return self._raised_or_returned(self.driver)
            if name == "nvmlDeviceGetCount":
                return len(self.gpus)
            if name == "nvmlDeviceGetHandleByIndex":
                return self.gpus[arguments[0]]
            if name == "nvmlDeviceGetHandleByUUID":
                for gpu in self.gpus:
                    if gpu.uuid == arguments[0]:
                        return gpu
                raise NVMLError("Not Found")
            gpu: FakeGpu = arguments[0]
            question = name.removeprefix("nvmlDevice")
            if question not in gpu.answers:
                raise NVMLError("Not Supported")
            return self._raised_or_returned(gpu.answers[question])

        if not name.startswith("nvml"):
            raise AttributeError(name)
        return answer

    @staticmethod
    def _raised_or_returned(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value
