"""NVIDIA GPUs: those that the CUDA driver lists, with readings of the management library (NVML).

NVML may be absent or broken where CUDA works (Jetson, WSL 2). Its own list counts only where the
CUDA driver does not answer.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench_protocol.payload.machine import Gpu
from bench_protocol.payload.readings import possible

from . import cuda
from .text import file_text, positive_or_none, text_or_none, version_or_none, whole_or_none
from .wire import tolerant

MOST_GPUS = 64
SM_CLOCK, MEMORY_CLOCK = 1, 2  # nvmlClockType_t
KERNEL_MODULE = Path("/proc/driver/nvidia/version")


@contextmanager
def nvml() -> Iterator[Any]:
    """The initialised library, or None without a driver."""
    library = _started()
    try:
        yield library
    finally:
        if library is not None:
            ask(library.nvmlShutdown)


def ask(question: Callable[..., Any], *arguments: Any) -> Any:
    """The library's answer, or None if this GPU or driver does not support the query."""
    try:
        return question(*arguments)
    except Exception:
        return None


def query(library: Any, name: str, *arguments: Any) -> Any:
    """:func:`ask` by the query's name, which an older library may lack."""
    return ask(lambda: getattr(library, f"nvml{name}")(*arguments))


def driver_version() -> str | None:
    with nvml() as library:
        return version_or_none(query(library, "SystemGetDriverVersion")) if library else None


def why_no_driver() -> str | None:
    """The management library's error if it cannot start, else None."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except Exception as error:
        return text_or_none(str(error)) or type(error).__name__
    ask(pynvml.nvmlShutdown)
    return None


def gpus(environ: Mapping[str, str] = os.environ) -> tuple[Gpu, ...]:
    """NVIDIA GPUs that the frameworks see, in their order."""
    with nvml() as library:
        ordered = _in_cuda_order(library, cuda.devices(environ), environ)[:MOST_GPUS]
        driver = version_or_none(query(library, "SystemGetDriverVersion")) or _kernel_module()
        return tuple(
            _gpu(library, handle, index, driver, device)
            for index, (handle, device) in enumerate(ordered)
        )


def handle_of(library: Any, index: int, environ: Mapping[str, str] = os.environ) -> Any:
    """NVML's handle of a framework's GPU, or None; a slice's (MIG) supports only memory queries."""
    handles = _in_cuda_order(library, cuda.devices(environ), environ)
    return handles[index][0] if index < len(handles) else None


def is_divided(library: Any, handle: Any) -> bool:
    """Whether this is a GPU divided into slices (MIG), or a slice."""
    if query(library, "DeviceIsMigDeviceHandle", handle) == 1:
        return True
    return bool(_first(query(library, "DeviceGetMigMode", handle)) == 1)


def clocks_event_reasons(library: Any, handle: Any) -> int | None:
    """The reasons that limit the clocks, as bits; drivers before 535 use an older name."""
    for name in ("DeviceGetCurrentClocksEventReasons", "DeviceGetCurrentClocksThrottleReasons"):
        reasons = query(library, name, handle)
        if isinstance(reasons, int):
            return reasons
    return None


def _kernel_module() -> str | None:
    """The driver's version, of a text like ``NVRM version: ... for aarch64  540.4.0  Release``."""
    words = re.search(r"NVRM version:.*?\s(\d{2,4}(?:\.\d+){1,2})\s", file_text(KERNEL_MODULE))
    return version_or_none(words[1]) if words else None


def _started() -> Any:
    import pynvml

    try:
        pynvml.nvmlInit()
    except Exception:
        return None
    return pynvml


def _count(library: Any) -> int:
    count = whole_or_none(query(library, "DeviceGetCount")) or 0
    return min(count, MOST_GPUS)


def _in_cuda_order(
    library: Any, listed: tuple[cuda.CudaDevice, ...] | None, environ: Mapping[str, str]
) -> list[tuple[Any, cuda.CudaDevice | None]]:
    """Handles with the CUDA driver's facts of each, in the frameworks' order."""
    if listed is not None:
        return [(_handle_by_uuid(library, device.uuid), device) for device in listed]
    found = (query(library, "DeviceGetHandleByIndex", n) for n in range(_count(library)))
    handles = [handle for handle in found if handle is not None]
    uuids = [_text(query(library, "DeviceGetUUID", handle)) for handle in handles]
    places = cuda.visible(environ.get("CUDA_VISIBLE_DEVICES"), uuids)
    return [(handles[place], None) for place in places]


def _handle_by_uuid(library: Any, digits: str) -> Any:
    dashed = re.sub(r"(.{8})(.{4})(.{4})(.{4})(.{12})", r"\1-\2-\3-\4-\5", digits)
    for kind in ("GPU", "MIG"):
        for text in (f"{kind}-{dashed}", f"{kind}-{dashed}".encode()):
            handle = query(library, "DeviceGetHandleByUUID", text)
            if handle is not None:
                return handle
    return None


def _gpu(
    library: Any, handle: Any, index: int, driver: str | None, device: cuda.CudaDevice | None
) -> Gpu:
    def say(name: str, *arguments: Any) -> Any:
        return query(library, name, handle, *arguments) if handle is not None else None

    full_name = text_or_none(say("DeviceGetName")) or (device.name if device else None)
    name, profile = split_slice(full_name or "NVIDIA GPU")
    slice_ = bool(profile) or say("DeviceIsMigDeviceHandle") == 1
    mode = _first(say("DeviceGetMigMode"))
    memory = getattr(say("DeviceGetMemoryInfo"), "total", None)
    ecc = _first(say("DeviceGetEccMode"))
    facts = {
        "name": name,
        "cores": device.multiprocessors if device else None,
        "memory_bytes": _whole("bytes", memory) or (device.memory_bytes if device else None),
        "unified_memory": bool(device and device.integrated),
        "driver": driver,
        "compute_capability": _capability(say("DeviceGetCudaComputeCapability"))
        or (device.compute_capability if device else None),
        "mig": True if slice_ else None if mode is None else bool(mode),
        "mig_profile": profile,
        "ecc": None if ecc is None else bool(ecc),
        # NVML reports the power of the whole GPU, not of a slice.
        "power_limit_watts": None if slice_ else watts(say("DeviceGetEnforcedPowerLimit")),
        "default_power_limit_watts": None
        if slice_
        else watts(say("DeviceGetPowerManagementDefaultLimit")),
        "maximum_clock_mhz": _whole("mhz", say("DeviceGetMaxClockInfo", SM_CLOCK))
        or (device.maximum_clock_mhz if device else None),
        "maximum_memory_clock_mhz": _whole("mhz", say("DeviceGetMaxClockInfo", MEMORY_CLOCK)),
    }
    return tolerant(Gpu, facts, kind="cuda", index=index, name="unknown NVIDIA GPU")


def split_slice(name: str) -> tuple[str, str | None]:
    """Split ``NVIDIA H200 MIG 1g.18gb`` into the GPU's name and the slice's profile."""
    match = re.fullmatch(r"(.+?)\s+MIG\s+([0-9]\S*)", name)
    return (match.group(1), match.group(2)) if match else (name, None)


def _capability(pair: Any) -> str | None:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return None
    return ".".join(map(str, pair))[:64] if all(type(part) is int for part in pair) else None


def _first(pair: Any) -> Any:
    """The present value of (present, pending)."""
    return pair[0] if isinstance(pair, tuple | list) and pair else None


def watts(milliwatts: object) -> float | None:
    """A power in NVML's unit, in watts; None if it is none that a board takes."""
    power = positive_or_none(milliwatts)
    return None if power is None else possible("watts", power / 1000)


def _whole(unit: str, value: object) -> int | None:
    return None if possible(unit, value) is None else whole_or_none(value)


def _text(value: Any) -> str:
    """Text of an answer: old versions of the library give UUIDs as bytes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""
