"""Machine and software of a result: processor, GPUs, operating system, packages.

No serial number, UUID, host or user name has a field here. ``machine_hash`` is
HMAC-SHA256(a random salt that never leaves the machine, the machine's own identifier).
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ..base.units import (
    Bytes,
    Count,
    DeviceIndex,
    Name,
    PositiveCount,
    Seen,
    Sha256,
    Slug,
    Text,
    Version,
    Wire,
)
from ..catalogue.matrix import Device

Setting = Annotated[str, StringConstraints(max_length=200), Seen]
Watts = Annotated[float, Field(ge=0, allow_inf_nan=False)]
SYSTEMS = {"macos": "macOS", "linux": "Linux", "windows": "Windows"}


class Cpu(Wire):
    """The processor. ``brand`` as the operating system gives it, cores as far as known.

    ``available_cores``: those this process may use; ``quota_cores``: processor time a container
    grants, in cores. ``maximum_clock_mhz`` may leave out the boost, so nothing is bounded by it.
    """

    brand: Name
    architecture: Text
    physical_cores: PositiveCount | None = None
    logical_cores: PositiveCount | None = None
    performance_cores: Count | None = None
    efficiency_cores: Count | None = None
    available_cores: PositiveCount | None = None
    quota_cores: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    sockets: PositiveCount | None = None
    maximum_clock_mhz: PositiveCount | None = None
    instruction_sets: tuple[Text, ...] = Field(default=(), max_length=64)


class Gpu(Wire):
    """One graphics processor, numbered as the framework's device index counts.

    ``mig``: NVIDIA's Multi-Instance mode is on; ``mig_profile`` names the slice (``1g.18gb``).
    ``cores``: GPU cores on Apple's, streaming multiprocessors on NVIDIA's.
    """

    kind: Literal["metal", "cuda"]
    index: DeviceIndex
    name: Name
    cores: PositiveCount | None = None
    memory_bytes: Bytes | None = None
    unified_memory: bool = False
    driver: Version | None = None
    compute_capability: Version | None = None
    mig: bool | None = None
    mig_profile: Name | None = None
    ecc: bool | None = None
    power_limit_watts: Watts | None = None
    default_power_limit_watts: Watts | None = None
    maximum_clock_mhz: PositiveCount | None = None
    maximum_memory_clock_mhz: PositiveCount | None = None


class OperatingSystem(Wire):
    """Name and version of the system, and how deep it is nested. ``kernel``: its release, with
    ``*`` where the agent left a word out. ``page_bytes``: its page of memory, which changes speed.
    """

    name: Literal["macos", "linux", "windows", "other"]
    version: Text
    kernel: Text | None = None
    page_bytes: PositiveCount | None = None
    container: Slug | None = None
    virtual_machine: Slug | None = None
    wsl: bool = False
    rosetta: bool = False

    @property
    def words(self) -> str:
        """Name and version; the name once where the version says it."""
        named = self.name in self.version.lower()
        return self.version if named else f"{SYSTEMS.get(self.name, self.name)} {self.version}"


class Machine(Wire):
    """Facts of the machine that ran."""

    machine_hash: Sha256
    model: Name | None = None
    cpu: Cpu
    memory_bytes: Bytes | None = None
    gpus: tuple[Gpu, ...] = Field(default=(), max_length=64)
    os: OperatingSystem

    def gpu(self, device: Device) -> Gpu | None:
        of_kind = (gpu for gpu in self.gpus if gpu.kind == device.kind)
        return next((gpu for gpu in of_kind if gpu.index == device.index), None)


class Environment(Wire):
    """Software that ran: versions, libraries, and the settings that change speed.

    ``packages`` maps distribution names to versions, ``libraries`` names what a framework brought
    or loaded (``blas``, ``cuda``, ``cudnn``, ``cxx_compiler``), ``settings`` the environment
    variables and options in force (``OMP_NUM_THREADS``, ``tf_intra_op_threads``).
    """

    python: Version
    packages: dict[Text, Version] = Field(max_length=64)
    libraries: dict[Slug, Setting] = Field(default={}, max_length=64)
    settings: dict[Text, Setting] = Field(default={}, max_length=64)
