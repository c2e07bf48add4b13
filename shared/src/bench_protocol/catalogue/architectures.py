"""The processor architecture that limits of CPUs were measured on.

Other architectures have other vector widths and libraries, so they sum in another order. There a
deviation up to ``UNMEASURED_FACTOR`` times the limit is unverified, and beyond that wrong.
"""

from .matrix import DeviceKind

MEASURED = "x86_64"
SPELLINGS = (MEASURED, "amd64", "x64")
# Room for another order of summation, which was not measured.
UNMEASURED_FACTOR = 4.0


def wrong_beyond(device: DeviceKind, architecture: str) -> float:
    """How many times a measured limit a deviation must be to be wrong.

    Args:
        architecture: of the machine's processor, as Python's ``platform.machine()`` names it.
    """
    measured = device != "cpu" or architecture.lower() in SPELLINGS
    return 1.0 if measured else UNMEASURED_FACTOR
