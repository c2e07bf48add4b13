"""macOS, from sysctl, system_profiler and ioreg. No administrator rights are needed.

Serial numbers and UUIDs stand beside what is read here; only the named keys are taken.
"""

import json
import platform
import re
from functools import cache
from typing import Any

from bench_protocol.machine import Cpu, Gpu, OperatingSystem

from .text import command_output, text_or_none, whole_or_none

PROFILER_TIMEOUT_SECONDS = 30


def cpu() -> Cpu:
    """Brand and cores from sysctl; the split by performance level where there are two."""
    levels = {
        (sysctl(f"hw.perflevel{n}.name") or "").lower(): whole_or_none(
            sysctl(f"hw.perflevel{n}.physicalcpu")
        )
        for n in range(whole_or_none(sysctl("hw.nperflevels")) or 0)
    }
    return Cpu(
        brand=text_or_none(sysctl("machdep.cpu.brand_string")) or "unknown Apple CPU",
        architecture=platform.machine() or "unknown",
        physical_cores=whole_or_none(sysctl("hw.physicalcpu")),
        logical_cores=whole_or_none(sysctl("hw.logicalcpu")),
        performance_cores=levels.get("super") or levels.get("performance"),
        efficiency_cores=levels.get("efficiency"),
    )


def operating_system() -> OperatingSystem:
    """Version, and whether this is a virtual machine or translated by Rosetta."""
    return OperatingSystem(
        name="macos",
        version=text_or_none(platform.mac_ver()[0]) or "unknown",
        kernel=text_or_none(platform.release()),
        virtual_machine="apple" if (sysctl("hw.model") or "").startswith("VirtualMac") else None,
        rosetta=sysctl("sysctl.proc_translated") == "1",
    )


def gpus() -> tuple[Gpu, ...]:
    """Apple's GPU, its cores from system_profiler or else from ioreg."""
    displays = profile().get("SPDisplaysDataType")
    for display in displays if isinstance(displays, list) else []:
        if not isinstance(display, dict):
            continue
        name = text_or_none(display.get("sppci_model")) or text_or_none(display.get("_name"))
        if name and name.startswith("Apple"):
            cores = whole_or_none(display.get("sppci_cores")) or gpu_cores_from_ioreg()
            return (_apple_gpu(name, cores),)
    brand = sysctl("machdep.cpu.brand_string") or ""
    return (_apple_gpu(brand, gpu_cores_from_ioreg()),) if brand.startswith("Apple") else ()


def gpu_cores_from_ioreg() -> int | None:
    """``gpu-core-count`` of the accelerator."""
    text = command_output("ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator")
    found = re.search(r'"gpu-core-count"\s*=\s*(\d+)', text)
    return whole_or_none(found.group(1)) if found else None


def model() -> str | None:
    """Model identifier, such as ``Mac14,6``."""
    return text_or_none(sysctl("hw.model"))


def identifier() -> bytes | None:
    """The platform's UUID. It is only ever used inside an HMAC."""
    text = command_output("ioreg", "-r", "-d", "1", "-c", "IOPlatformExpertDevice")
    found = re.search(r'"IOPlatformUUID"\s*=\s*"([^"]+)"', text)
    return found.group(1).encode() if found else None


@cache
def profile() -> dict[str, Any]:
    """``system_profiler`` as JSON; an empty dictionary where it fails. Slow, so asked once."""
    text = command_output(
        "system_profiler", "SPDisplaysDataType", "-json", timeout_seconds=PROFILER_TIMEOUT_SECONDS
    )
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def sysctl(name: str) -> str | None:
    """One kernel value as text."""
    return command_output("sysctl", "-n", name).strip() or None


def _apple_gpu(name: str, cores: int | None) -> Gpu:
    memory = whole_or_none(sysctl("hw.memsize"))
    return Gpu(
        kind="metal", index=0, name=name, cores=cores, memory_bytes=memory, unified_memory=True
    )
