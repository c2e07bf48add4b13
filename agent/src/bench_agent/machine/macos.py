"""Facts of a Mac, from macOS' commands. No administrator rights are needed."""

import json
import platform
import re
from functools import cache
from typing import Any

from bench_protocol.payload.machine import Cpu, Gpu, OperatingSystem

from . import apple, counters
from .text import command_output, whole_or_none

PROFILER_TIMEOUT_SECONDS = 30
# "serial_number" : "X", "platform_UUID" : "X", "IOPlatformSerialNumber" = "X"
IDENTIFIER = re.compile(r'"[^"]*(?:serial|uuid|udid)[^"]*"\s*[:=]\s*"([^"]+)"', re.IGNORECASE)
SYSCTL_NAMES = (
    "hw.model",
    "hw.memsize",
    "hw.physicalcpu",
    "hw.logicalcpu",
    "hw.packages",
    "hw.optional.arm64",
    "hw.nperflevels",
    *(f"hw.perflevel{level}.{key}" for level in range(3) for key in ("name", "physicalcpu")),
    "machdep.cpu.brand_string",
    "machdep.cpu.features",
    "machdep.cpu.leaf7_features",
    *(f"hw.optional.arm.{flag}" for flag in apple.ARM_FLAGS),
    "sysctl.proc_translated",
    "kern.hv_vmm_present",
    "kern.osproductversion",
)


def cpu() -> Cpu:
    """Brand and cores from sysctl, by performance level if there are two."""
    return apple.cpu_from(sysctl(), profile(), platform.machine())


def version() -> str:
    """macOS' version, empty if unknown. An interpreter that was built with an old SDK gets
    another one (10.16, or 16.0 for 26), which is no version of macOS."""
    known = sysctl().get("kern.osproductversion") or command_output("sw_vers", "-productVersion")
    told = (known.strip(), platform.mac_ver()[0])
    return next(filter(re.compile(r"(?!10\.16|16\.)\d{1,3}(\.\d{1,3}){1,3}$").match, told), "")


def operating_system() -> OperatingSystem:
    """macOS' version; virtual machine or Rosetta."""
    pages = counters.page_bytes()
    return apple.system_from(sysctl(), profile(), version(), platform.release(), pages)


def gpus() -> tuple[Gpu, ...]:
    """Apple's GPU. None on an Intel Mac: no framework here can use its graphics."""
    return apple.gpus_from(sysctl(), profile(), accelerators())


def model() -> str | None:
    """Product and model identifier, such as ``MacBook Air Mac14,2``; only what is known."""
    return apple.model_from(sysctl(), profile())


def memory_bytes() -> int | None:
    """Memory from ``hw.memsize``; system_profiler's text depends on the language."""
    return whole_or_none(sysctl().get("hw.memsize"))


def identifier() -> bytes | None:
    """The platform's UUID. It is only ever used inside an HMAC."""
    text = command_output("ioreg", "-r", "-d", "1", "-c", "IOPlatformExpertDevice")
    match = re.search(r'"IOPlatformUUID"\s*=\s*"([^"]+)"', text)
    return match.group(1).encode() if match else None


def identifiers() -> frozenset[str]:
    """Serial numbers and identifiers of this Mac, so that a text can be cleaned of them."""
    texts = [command_output("ioreg", "-r", "-d", "1", "-c", "IOPlatformExpertDevice")]
    texts.append(json.dumps(profile()))
    return frozenset(value for text in texts for value in IDENTIFIER.findall(text))


@cache
def sysctl() -> dict[str, str]:
    """Kernel values by name; names unknown to the kernel are absent.

    No Mac knows all names. Without ``-i`` sysctl ends with the number of unknown names as its exit
    status, or at the first of them (apple-oss-distributions/system_cmds, sysctl.c).
    """
    return apple.parse_sysctl(command_output("sysctl", "-i", *SYSCTL_NAMES, any_status=True))


@cache
def profile() -> dict[str, Any]:
    """``system_profiler`` as JSON; an empty dictionary if it fails. Slow, so cached."""
    kinds = ("SPHardwareDataType", "SPDisplaysDataType")
    return apple.parse_profile(
        command_output("system_profiler", *kinds, "-json", timeout_seconds=PROFILER_TIMEOUT_SECONDS)
    )


def accelerators() -> tuple[apple.Accelerator, ...]:
    """GPUs with their present utilisation, without administrator rights."""
    return apple.parse_accelerators(
        command_output("ioreg", "-r", "-d", "1", "-w", "0", "-c", "IOAccelerator")
    )
