"""Minimal facts of a Windows machine: frameworks with a GPU run in WSL 2 instead."""

import platform
import sys

import psutil

from bench_protocol.payload.machine import Cpu, OperatingSystem

from .text import text_or_none, whole_or_none
from .wire import tolerant

PROCESSOR_KEY = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"


def cpu() -> Cpu:
    """The processor's name from the registry, cores from psutil. Also used on unknown systems."""
    return tolerant(
        Cpu,
        {
            "brand": text_or_none(registry(PROCESSOR_KEY, "ProcessorNameString"))
            or text_or_none(platform.processor()),
            "architecture": text_or_none(platform.machine()),
            "physical_cores": whole_or_none(psutil.cpu_count(logical=False)),
            "logical_cores": whole_or_none(psutil.cpu_count()),
        },
        brand="unknown CPU",
        architecture="unknown",
    )


def operating_system() -> OperatingSystem:
    """Windows with its build, or ``other`` with the system's own name."""
    is_windows = platform.system() == "Windows"
    full_version = f"{platform.system()} {platform.release()} {platform.version()}"
    return tolerant(
        OperatingSystem,
        {
            "version": text_or_none(
                full_version if is_windows else f"{platform.system()} {platform.release()}"
            )
        },
        name="windows" if is_windows else "other",
        version="unknown",
    )


def model() -> None:
    """Not read here."""


def memory_bytes() -> None:
    """Not read here: psutil has it."""


def identifier() -> bytes | None:
    """The installation's identifier. It is only ever used inside an HMAC."""
    guid = registry(r"SOFTWARE\Microsoft\Cryptography", "MachineGuid")
    return guid.encode() if guid else None


def identifiers() -> frozenset[str]:
    """The identifier, so that a text can be cleaned of it."""
    return frozenset(filter(None, [(identifier() or b"").decode("utf-8", "replace")]))


def registry(key: str, name: str) -> str | None:
    """A text value of the local machine's registry, or None; None on other systems."""
    if sys.platform != "win32":
        return None
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key) as opened:
            value, _ = winreg.QueryValueEx(opened, name)
    except OSError:
        return None
    return value if isinstance(value, str) else None
