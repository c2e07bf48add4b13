"""Linux, from /proc, /sys and /etc."""

import os
import platform
import re
from pathlib import Path

import psutil

from bench_protocol.machine import Cpu, OperatingSystem

from .text import command_output, file_text, text_or_none, whole_or_none

# Of all the flags in /proc/cpuinfo, those that decide how fast matrix products run.
SPEED_FLAGS = tuple(
    "sse4_2 avx avx2 fma f16c avx512f avx512_vnni avx512_bf16 avx512_fp16 avx_vnni "  # noqa: SIM905
    "amx_tile amx_bf16 amx_int8 asimd asimdhp asimddp sve sve2 i8mm bf16".split()
)
HYPERVISORS = ("kvm", "qemu", "vmware", "virtualbox", "xen", "hyper-v", "firecracker", "parallels")


def cpu() -> Cpu:
    """The processor from /proc/cpuinfo; cores from psutil and this process's affinity."""
    info = file_text("/proc/cpuinfo")
    flags = set(_field(info, "flags").split()) | set(_field(info, "Features").split())
    return Cpu(
        brand=text_or_none(_field(info, "model name"))
        or text_or_none(_field(command_output("lscpu"), "Model name"))
        or f"unknown {platform.machine()} CPU",
        architecture=platform.machine() or "unknown",
        physical_cores=whole_or_none(psutil.cpu_count(logical=False)),
        logical_cores=whole_or_none(psutil.cpu_count()),
        available_cores=whole_or_none(len(os.sched_getaffinity(0))),
        instruction_sets=tuple(flag for flag in SPEED_FLAGS if flag in flags),
    )


def operating_system() -> OperatingSystem:
    """Distribution, kernel, and whether this is a container, a virtual machine or WSL."""
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', file_text("/etc/os-release"), re.MULTILINE))
    kernel = platform.release()
    return OperatingSystem(
        name="linux",
        version=text_or_none(release.get("PRETTY_NAME")) or "unknown distribution",
        kernel=text_or_none(kernel),
        container=container(),
        virtual_machine=virtual_machine(),
        wsl="microsoft" in kernel.lower(),
    )


def container() -> str | None:
    """Kind of container this process is in, or None."""
    if Path("/.dockerenv").exists():
        return "docker"
    if Path("/run/.containerenv").exists():
        return "podman"
    manager = _field(file_text("/proc/1/environ").replace("\0", "\n"), "container", "=")
    if manager:
        return re.sub(r"[^a-z0-9]+", "-", manager.lower()).strip("-") or "unknown"
    return "kubernetes" if "/kubepods" in file_text("/proc/1/cgroup") else None


def virtual_machine() -> str | None:
    """Hypervisor this system runs under, or None on bare metal."""
    product = " ".join(
        file_text(f"/sys/class/dmi/id/{name}") for name in ("sys_vendor", "product_name")
    ).lower()
    for name in HYPERVISORS:
        if name in product:
            return name
    if "microsoft corporation virtual" in product:
        return "hyper-v"
    if "amazon ec2" in product and "metal" not in product:
        return "ec2"
    if "google compute engine" in product:
        return "google-compute-engine"
    flags = _field(file_text("/proc/cpuinfo"), "flags").split()
    return "unknown" if "hypervisor" in flags else None


def identifier() -> bytes | None:
    """Something that stays the same on this machine. It is only ever used inside an HMAC."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        text = file_text(path).strip()
        if text:
            return text.encode()
    return None


def _field(text: str, name: str, separator: str = ":") -> str:
    found = re.search(rf"^{re.escape(name)}\s*{separator}\s*(.*)$", text, re.MULTILINE)
    return found.group(1).strip() if found else ""
