"""Script: list the devices that a framework would see, as the CUDA driver reports them.

It prints one JSON list in the order of the frameworks' device index, which CUDA_VISIBLE_DEVICES
and CUDA_DEVICE_ORDER decide. It runs in its own process because the driver reads these variables
only once.
"""

import ctypes
import json
import sys
from typing import Any

# CUdevice_attribute of cuda.h.
MULTIPROCESSORS, CLOCK_KHZ, INTEGRATED = 16, 13, 18
MAJOR, MINOR = 75, 76
NO_DEVICE = 100  # CUresult of cuda.h


def main() -> int:
    """Exit status 1 without a driver, or if it does not start."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 1
    count = ctypes.c_int()
    failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if failed and failed != NO_DEVICE:
        return 1
    print(json.dumps([describe(driver, ordinal) for ordinal in range(count.value)]))
    return 0


def describe(driver: Any, ordinal: int) -> dict[str, Any]:
    """UUID (hexadecimal, no dashes), name, memory and attributes of one device."""
    device = ctypes.c_int()
    driver.cuDeviceGet(ctypes.byref(device), ordinal)
    name = ctypes.create_string_buffer(200)
    driver.cuDeviceGetName(name, len(name), device)
    uuid = ctypes.create_string_buffer(16)
    # The second function gives each slice of a divided GPU its own UUID.
    ask = getattr(driver, "cuDeviceGetUuid_v2", None) or getattr(driver, "cuDeviceGetUuid", None)
    if ask is not None:
        ask(uuid, device)
    memory = ctypes.c_size_t()
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)

    def attribute(number: int) -> int | None:
        value = ctypes.c_int()
        failed = driver.cuDeviceGetAttribute(ctypes.byref(value), number, device)
        return None if failed else value.value

    return {
        "uuid": uuid.raw.hex(),
        "name": name.value.decode("utf-8", "replace"),
        "memory_bytes": memory.value,
        "multiprocessors": attribute(MULTIPROCESSORS),
        "clock_khz": attribute(CLOCK_KHZ),
        "integrated": attribute(INTEGRATED),
        "capability": [attribute(MAJOR), attribute(MINOR)],
    }


if __name__ == "__main__":
    sys.exit(main())
