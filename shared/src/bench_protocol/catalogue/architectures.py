"""The processors that limits were measured on: x86-64, and with CUDA one GPU.

Others have other vector widths and libraries, so they sum in another order. There a deviation up to
``UNMEASURED_FACTOR`` times the limit is unverified, and beyond that wrong. This holds for every
GPU with CUDA, also of that one model.
"""

from .matrix import DeviceKind

MEASURED = "x86_64"
SPELLINGS = (MEASURED, "amd64", "x64")
# Room for another order of summation, which was not measured.
UNMEASURED_FACTOR = 4.0


def wrong_beyond(device: DeviceKind, architecture: str) -> float:
    """How many times a limit a deviation must be to be wrong, on top of the limit's own factor.

    Args:
        architecture: of the machine's processor, as Python's ``platform.machine()`` names it.
    """
    on_other_cpu = device == "cpu" and architecture.lower() not in SPELLINGS
    return UNMEASURED_FACTOR if on_other_cpu or device == "cuda" else 1.0
