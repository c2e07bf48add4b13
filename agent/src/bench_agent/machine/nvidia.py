"""NVIDIA GPUs through the driver's management library; nothing where there is no driver."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench_protocol.machine import Gpu

from .text import text_or_none, whole_or_none


@contextmanager
def nvml() -> Iterator[Any]:
    """The library, initialised, or None where there is no driver."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def ask(question: Callable[..., Any], *arguments: Any) -> Any:
    """The library's answer, or None where this GPU or driver does not support the question."""
    import pynvml

    try:
        return question(*arguments)
    except (pynvml.NVMLError, AttributeError):
        return None


def gpus() -> tuple[Gpu, ...]:
    """Every NVIDIA GPU the driver lists, in the driver's order."""
    with nvml() as library:
        if library is None:
            return ()
        driver = text_or_none(_text(ask(library.nvmlSystemGetDriverVersion)))
        count = ask(library.nvmlDeviceGetCount) or 0
        return tuple(_gpu(library, index, driver) for index in range(count))


def _gpu(library: Any, index: int, driver: str | None) -> Gpu:
    handle = ask(library.nvmlDeviceGetHandleByIndex, index)
    memory = ask(library.nvmlDeviceGetMemoryInfo, handle)
    capability = ask(library.nvmlDeviceGetCudaComputeCapability, handle)
    mig = ask(library.nvmlDeviceGetMigMode, handle)
    ecc = ask(library.nvmlDeviceGetEccMode, handle)
    return Gpu(
        kind="cuda",
        index=index,
        name=text_or_none(_text(ask(library.nvmlDeviceGetName, handle))) or "NVIDIA GPU",
        memory_bytes=whole_or_none(memory.total) if memory else None,
        driver=driver,
        compute_capability=".".join(map(str, capability)) if capability else None,
        mig=bool(mig[0]) if mig else None,
        ecc=bool(ecc[0]) if ecc else None,
        power_limit_watts=_watts(ask(library.nvmlDeviceGetEnforcedPowerLimit, handle)),
        default_power_limit_watts=_watts(
            ask(library.nvmlDeviceGetPowerManagementDefaultLimit, handle)
        ),
    )


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _text(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
