"""Minimal facts of a Windows machine, for ``doctor``: frameworks run in WSL 2 instead."""

import platform

import psutil

from bench_protocol.payload.machine import Cpu, OperatingSystem

from .text import text_or_none, whole_or_none
from .wire import tolerant


def cpu() -> Cpu:
    """The processor's name and cores. Also used on unknown systems."""
    return tolerant(
        Cpu,
        {
            "brand": text_or_none(platform.processor()),
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


def identifier() -> None:
    """Not read here: nothing is measured on Windows."""


def identifiers() -> frozenset[str]:
    """None is read, so none is in a text."""
    return frozenset()
