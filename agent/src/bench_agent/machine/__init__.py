"""Facts of this machine: processor, GPUs, memory, system. An absent source is no error."""

import platform
from dataclasses import dataclass

import psutil

from bench_protocol.payload.machine import Cpu, Gpu, Machine, OperatingSystem

from ..base.home import Home
from ..base.keys import machine_hash
from . import linux, macos, nvidia, windows
from .text import text_or_none, whole_or_none
from .wire import tolerant


@dataclass(frozen=True)
class MachineFacts:
    """Facts of a machine, without its hash."""

    cpu: Cpu
    os: OperatingSystem
    gpus: tuple[Gpu, ...]
    model: str | None
    memory_bytes: int | None


def read_machine(home: Home) -> Machine:
    """Read this machine's facts, without serial numbers, host and user names.

    Raises:
        HomeProblem: the salt of the machine's hash cannot be stored in the agent's folder.
    """
    return make_machine(read_facts(), machine_hash(home, identifier() or b"no identifier"))


def make_machine(facts: MachineFacts, hashed: str) -> Machine:
    """Convert the facts to the wire model. A fact that the model refuses is left out.

    Args:
        hashed: ``machine_hash``, 64 hexadecimal digits.
    """
    optional = {
        "model": text_or_none(facts.model),
        "memory_bytes": whole_or_none(facts.memory_bytes),
    }
    required = {"machine_hash": hashed, "cpu": facts.cpu, "os": facts.os, "gpus": facts.gpus}
    return tolerant(Machine, optional, **required)


def read_facts() -> MachineFacts:
    """Read every source of this system. Writes nothing."""
    system = platform.system()
    if system == "Darwin":
        return MachineFacts(
            cpu=macos.cpu(),
            os=macos.operating_system(),
            gpus=macos.gpus(),
            model=macos.model(),
            memory_bytes=macos.memory_bytes() or _total_memory(),
        )
    if system == "Linux":
        return MachineFacts(
            cpu=linux.cpu(),
            os=linux.operating_system(),
            gpus=nvidia.gpus(),
            model=linux.model(),
            memory_bytes=linux.memory_bytes() or _total_memory(),
        )
    return MachineFacts(
        cpu=windows.cpu(),
        os=windows.operating_system(),
        gpus=nvidia.gpus(),
        model=None,
        memory_bytes=_total_memory(),
    )


def identifier() -> bytes | None:
    """An identifier that stays the same on this machine. It is used only inside an HMAC."""
    sources = {"Darwin": macos.identifier, "Linux": linux.identifier}
    return sources.get(platform.system(), windows.identifier)()


def identifiers() -> frozenset[str]:
    """Serial numbers and identifiers of this machine, so that a text can be cleaned of them."""
    sources = {"Darwin": macos.identifiers, "Linux": linux.identifiers}
    return sources.get(platform.system(), windows.identifiers)()


def _total_memory() -> int | None:
    try:
        return whole_or_none(psutil.virtual_memory().total)
    except (OSError, RuntimeError):
        return None
