"""Facts of this machine. Each source is one function that is silent where the source is absent."""

import platform

import psutil

from bench_protocol.machine import Cpu, Machine, OperatingSystem

from ..home import Home
from ..keys import machine_hash
from . import linux, macos, nvidia
from .text import text_or_none


def read_machine(home: Home) -> Machine:
    """All that is known of this machine, free of serial numbers, host and user names.

    Raises:
        HomeProblem: the salt of the machine's hash cannot be kept in the agent's folder.
    """
    system = platform.system()
    if system == "Darwin":
        cpu, os_facts, gpus = macos.cpu(), macos.operating_system(), macos.gpus()
        model, identifier = macos.model(), macos.identifier()
    elif system == "Linux":
        cpu, os_facts, gpus = linux.cpu(), linux.operating_system(), nvidia.gpus()
        model, identifier = None, linux.identifier()
    else:
        cpu, os_facts, gpus = _other_cpu(), _other_system(), nvidia.gpus()
        model, identifier = None, None
    return Machine(
        machine_hash=machine_hash(home, identifier or b"no identifier"),
        model=model,
        cpu=cpu,
        memory_bytes=psutil.virtual_memory().total,
        gpus=gpus,
        os=os_facts,
    )


def _other_cpu() -> Cpu:
    return Cpu(
        brand=text_or_none(platform.processor()) or "unknown CPU",
        architecture=platform.machine() or "unknown",
        physical_cores=psutil.cpu_count(logical=False),
        logical_cores=psutil.cpu_count(),
    )


def _other_system() -> OperatingSystem:
    name = platform.system().lower()
    return OperatingSystem(
        name="windows" if name == "windows" else "other",
        version=text_or_none(platform.version()) or "unknown",
    )
