"""The normalised name that results group by.

Computed by the server from a machine's facts, never sent: an alias added here regroups what is
stored. A virtual machine or a container never groups with the bare machine.
"""

import re

from .machine import Cpu, Machine
from .matrix import Device

# Spellings of one thing, applied in order to what the operating system or the driver says.
ALIASES: tuple[tuple[str, str], ...] = (
    (r"\((?:R|TM|C)\)", " "),
    (r"@.*$", " "),
    (r"\b(?:CPU|Processor|\d+-Core)\b", " "),
    (r"\b\d+th Gen\b", " "),
    (r"\bwith (?:Radeon|AMD).*$", " "),
    (r"^(?:NVIDIA )?GeForce", "NVIDIA GeForce"),
    (r"^(?=(?:Tesla|Quadro|RTX|H100|H200|A100|V100)\b)", "NVIDIA "),
    (r"\s+", " "),
)


def hardware_name(machine: Machine, device: Device) -> str:
    """Name of the hardware that a device of this machine is.

    Examples: ``Apple M2 Max (30-core GPU)``, ``NVIDIA H200``, ``Intel Core i7-8700``,
    ``Intel Xeon Platinum 8481C, 2 cores (virtual machine)``.
    """
    name = _cpu_name(machine) if device.kind == "cpu" else _gpu_name(machine, device)
    if machine.os.rosetta:
        name += " (Rosetta)"
    if machine.os.wsl:
        name += " (WSL)"
    elif machine.os.virtual_machine:
        name += " (virtual machine)"
    elif machine.os.container:
        name += " (container)"
    return name


def clean(name: str) -> str:
    """One spelling for each product name."""
    for pattern, replacement in ALIASES:
        name = re.sub(pattern, replacement, name, flags=re.IGNORECASE)
    return name.strip()


def slug(name: str) -> str:
    """A name as part of an address: ``apple-m2-max-30-core-gpu``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unknown"


def _cpu_name(machine: Machine) -> str:
    cpu = machine.cpu
    name = clean(cpu.brand) or "unknown CPU"
    if name.startswith("Apple"):
        return f"{name} ({cpu.physical_cores or cpu.logical_cores}-core CPU)"
    if machine.os.virtual_machine or machine.os.container:
        return f"{name}, {_cores_in_use(cpu)}"
    return name


def _cores_in_use(cpu: Cpu) -> str:
    cores = cpu.available_cores or cpu.logical_cores
    return f"{cores} cores" if cores else "cores unknown"


def _gpu_name(machine: Machine, device: Device) -> str:
    for gpu in machine.gpus:
        if (gpu.kind, gpu.index) == (device.kind, device.index):
            name = clean(gpu.name)
            if gpu.mig or gpu.mig_profile:
                name = f"{name} (MIG {gpu.mig_profile or 'slice'})"
            return f"{name} ({gpu.cores}-core GPU)" if gpu.cores else name
    return f"unknown {device.kind} GPU"
