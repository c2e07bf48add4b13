"""Facts of a Linux machine, from /proc, /sys and /etc. Tests pass another ``root``."""

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

from bench_protocol.payload.machine import Cpu, OperatingSystem

from . import cgroup, counters, nesting
from .cpuinfo import brand_of, parse_cpuinfo
from .text import IDENTIFYING, PLACEHOLDER, command_output, file_text, text_or_none, whole_or_none
from .topology import Topology, read_topology
from .wire import tolerant

ROOT = Path("/")
# Words that distributions put into a kernel's release. A mark replaces other words: a home-built
# kernel may be named after its owner or host.
LEFT_OUT = "*"
KERNEL_WORDS = re.compile(
    r"generic|lowlatency|realtime|rt|rc|amd64|arm64|x86_64|x86|aarch64|x64v\d|cloud|aws|azure|gcp|gke"
    r"|oracle|oem|hwe|kvm|virt|tegra|fc|v|nvidia|raspi|rpi|v8|2712|microsoft|standard|wsl\d?|linuxkit"
    r"|default|preempt|zen|arch|lts|hardened|gentoo|dist|debian|ubuntu|deb|bpo|el|amzn|azl|cm"
    r"|mainline|xanmod|liquorix|asahi|fedora|pve|cos|flatcar|orbstack|bottlerocket|uek|suse"
    r"|lp|sle|rpt|\d+k|surface|cachyos|manjaro|rockchip|sunxi|meson|ibm|intel|qcom|fips",
    re.IGNORECASE,
)


def cpu(root: Path = ROOT) -> Cpu:
    """The processor from /proc/cpuinfo and /sys, and how much of it this process may use."""
    info = parse_cpuinfo(file_text(root / "proc/cpuinfo"))
    lscpu_output = "" if info.brand or root != ROOT else command_output("lscpu")
    cores = read_topology(root)
    return tolerant(
        Cpu,
        {
            "brand": brand_of(info, product(root), lscpu_output),
            "architecture": text_or_none(platform.machine()),
            "physical_cores": _physical(cores, root),
            "logical_cores": cores.logical or counters.cores(logical=True),
            "performance_cores": cores.performance,
            "efficiency_cores": cores.efficiency,
            "available_cores": available_cores(),
            "quota_cores": cgroup.quota_cores(root),
            "sockets": info.sockets or _sockets(cores, root),
            "maximum_clock_mhz": cores.maximum_clock_mhz,
            "instruction_sets": info.instruction_sets,
        },
        brand=f"unknown {platform.machine()} CPU",
        architecture="unknown",
    )


def operating_system(
    root: Path = ROOT, environ: Mapping[str, str] = os.environ, release: str | None = None
) -> OperatingSystem:
    """Distribution and kernel; container, virtual machine or WSL."""
    info = parse_cpuinfo(file_text(root / "proc/cpuinfo"))
    return tolerant(
        OperatingSystem,
        {
            "version": parse_os_release(file_text(root / "etc/os-release")),
            "kernel": kernel_without_names(release or platform.release()),
            "page_bytes": counters.page_bytes(),
            "container": nesting.container(root, environ),
            "virtual_machine": nesting.virtual_machine(root, info.hypervisor, product(root)),
            "wsl": nesting.wsl(root) is not None,
        },
        name="linux",
        version="unknown distribution",
    )


def product(root: Path = ROOT) -> str:
    """Maker and model of the machine, from DMI or the device tree; empty if neither has them."""
    names = [
        text_or_none(file_text(root / "sys/class/dmi/id" / name))
        for name in ("sys_vendor", "product_name")
    ]
    real_names = [name for name in names if name and not PLACEHOLDER.search(name)]
    tree = text_or_none(file_text(root / "proc/device-tree/model").replace("\0", ""))
    return " ".join(real_names) or tree or ""


def model(root: Path = ROOT) -> str | None:
    """:func:`product` in the form for the result."""
    return text_or_none(product(root))


def memory_bytes(root: Path = ROOT) -> int | None:
    """Memory that this process may use: the machine's, or its control group's limit if lower."""
    match = re.search(r"^MemTotal:\s*([0-9]{1,12}) kB", file_text(root / "proc/meminfo"), re.M)
    total = whole_or_none(int(match.group(1)) * 1024) if match else None
    return min(filter(None, (total, cgroup.memory_bytes(root))), default=None)


def identifier(root: Path = ROOT) -> bytes | None:
    """An identifier that stays the same on this machine. It is used only inside an HMAC."""
    for path in ("etc/machine-id", "var/lib/dbus/machine-id"):
        text = file_text(root / path).strip()
        if text:
            return text.encode()
    return None


def identifiers(root: Path = ROOT) -> frozenset[str]:
    """Serial numbers and identifiers of this machine, so that a text can be cleaned of them."""
    kinds = ("product_serial", "board_serial", "chassis_serial", "product_uuid")
    texts = [file_text(root / "sys/class/dmi/id" / kind) for kind in kinds]
    texts.append((identifier(root) or b"").decode("utf-8", "replace"))
    return frozenset(filter(None, map(str.strip, texts)))


def parse_os_release(text: str) -> str | None:
    pairs = dict(re.findall(r"""^(\w+)=["']?([^"'\n]*)["']?$""", text, re.MULTILINE))
    parts = f"{pairs.get('NAME', '')} {pairs.get('VERSION') or pairs.get('VERSION_ID', '')}"
    return text_or_none(pairs.get("PRETTY_NAME")) or text_or_none(parts)


def kernel_without_names(release: str) -> str | None:
    """A kernel's release without words that its builder chose: ``6.6.1-*`` of
    ``6.6.1-alices-box``."""
    parts = re.split(r"([-.+~ ])", text_or_none(IDENTIFYING.sub(LEFT_OUT, release)) or "")
    known = re.compile(rf"[0-9]*|\{LEFT_OUT}|(?:{KERNEL_WORDS.pattern})v?[0-9]*(?:_[0-9]+)?", re.I)
    words = [word if known.fullmatch(word) else LEFT_OUT for word in parts[::2]]
    whole = "".join(word + mark for word, mark in zip(words, [*parts[1::2], ""], strict=True))
    return re.sub(r"(?<=[*])(?:[-.+~ ]+[*])+", "", whole) or None


def available_cores() -> int | None:
    """Logical cores that this process may run on, or None if unknown."""
    affinity = getattr(os, "sched_getaffinity", None)
    return whole_or_none(len(affinity(0))) if affinity else None


def _sockets(cores: Topology, root: Path) -> int | None:
    """More than one counts only in a machine with DMI and without a device tree: on other Arm
    boards a kernel numbers clusters."""
    server = (root / "sys/class/dmi/id").exists() and not (root / "proc/device-tree").exists()
    return cores.sockets if server or cores.sockets == 1 else None


def _physical(cores: Topology, root: Path) -> int | None:
    if cores.physical or root != ROOT:
        return cores.physical
    return counters.cores(logical=False)
