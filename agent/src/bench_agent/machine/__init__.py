"""Facts of this machine: processor, GPUs, memory, system. An absent source is no error."""

import platform
from dataclasses import dataclass
from types import ModuleType

from bench_protocol.payload.machine import Cpu, Gpu, Machine, OperatingSystem

from ..base.home import Home
from ..base.keys import machine_hash
from . import counters, linux, macos, nvidia
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
    """Convert the facts to the wire model. A fact that the model refuses is left out. ``hashed``:
    ``machine_hash``, 64 hexadecimal digits."""
    optional = {
        "model": text_or_none(facts.model),
        "memory_bytes": whole_or_none(facts.memory_bytes),
    }
    required = {"machine_hash": hashed, "cpu": facts.cpu, "os": facts.os, "gpus": facts.gpus}
    return tolerant(Machine, optional, **required)


def read_facts() -> MachineFacts:
    """Read every source of this system. Writes nothing."""
    this = _system()
    if this is None:
        return _of_another_system()
    return MachineFacts(
        cpu=this.cpu(),
        os=this.operating_system(),
        gpus=macos.gpus() if this is macos else nvidia.gpus(),
        model=this.model(),
        memory_bytes=this.memory_bytes() or counters.memory("total"),
    )


def identifier() -> bytes | None:
    """An identifier that stays the same on this machine. It is used only inside an HMAC."""
    this = _system()
    return this.identifier() if this else None


def identifiers() -> frozenset[str]:
    """Serial numbers and identifiers of this machine, so that a text can be cleaned of them."""
    this = _system()
    return this.identifiers() if this else frozenset()


def _system() -> ModuleType | None:
    return {"Darwin": macos, "Linux": linux}.get(platform.system())


def _of_another_system() -> MachineFacts:
    """What Python itself knows. Native Windows is refused before a run."""
    version = text_or_none(f"{platform.system()} {platform.release()}") or "unknown"
    return MachineFacts(
        cpu=Cpu(brand="unknown CPU", architecture=text_or_none(platform.machine()) or "unknown"),
        os=OperatingSystem(name="other", version=version),
        gpus=nvidia.gpus(),
        model=None,
        memory_bytes=counters.memory("total"),
    )
