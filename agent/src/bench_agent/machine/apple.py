"""Parse macOS' commands into machine facts. Pure: each function takes a command's output.

The outputs also contain serial numbers and UUIDs; only the named keys are read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench_protocol.base import strict_json
from bench_protocol.base.errors import MalformedJson
from bench_protocol.payload.machine import Cpu, Gpu, OperatingSystem

from .text import first_whole, text_or_none, whole_or_none
from .wire import tolerant

MOST_LEVELS = 8
# Apple's names of its kinds of cores. Virtual machines report "Standard", which gives no kind.
PERFORMANCE_LEVELS = ("super", "performance")
EFFICIENCY_LEVELS = ("efficiency",)
ARM_FLAGS = ("FEAT_BF16", "FEAT_I8MM", "FEAT_FP16", "FEAT_DotProd", "FEAT_SME", "FEAT_SME2")
INTEL_FLAGS = {"AVX1.0": "avx", "AVX2": "avx2", "FMA": "fma", "AVX512F": "avx512f"}


@dataclass(frozen=True)
class Accelerator:
    """A GPU as ``ioreg`` lists it; ``busy_percent`` is its present utilisation."""

    model: str | None
    cores: int | None
    busy_percent: int | None


def parse_sysctl(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon and value.strip()}


def parse_profile(text: str) -> dict[str, Any]:
    """Parse the JSON of ``system_profiler``; empty for other text."""
    try:
        document = strict_json.loads(text.encode())
    except MalformedJson:
        return {}
    return document if isinstance(document, dict) else {}


def parse_accelerators(text: str) -> tuple[Accelerator, ...]:
    """Parse the objects of ``ioreg -c IOAccelerator``; each begins with ``+-o``."""
    accelerators = []
    for part in re.split(r"^\s*[|\s]*\+-o ", text, flags=re.MULTILINE)[1:]:
        model_name = re.search(r'"model"\s*=\s*<?"([^"\n]*)"', part)
        cores = re.search(r'"gpu-core-count"\s*=\s*([0-9]{1,6})\b', part)
        busy = re.search(r'"Device Utilization %"\s*=\s*([0-9]{1,3})\b', part)
        accelerators.append(
            Accelerator(
                model=text_or_none(model_name.group(1)) if model_name else None,
                cores=whole_or_none(cores.group(1)) if cores else None,
                busy_percent=int(busy.group(1)) if busy and int(busy.group(1)) <= 100 else None,
            )
        )
    return tuple(accelerators)


def cpu_from(kernel: Mapping[str, str], profiled: Mapping[str, Any], architecture: str) -> Cpu:
    hardware = section(profiled, "SPHardwareDataType")
    # number_processors: 8, "proc 8:4:4", "proc 24:16:8:0"; only the first number is always the
    # total.
    physical = whole_or_none(kernel.get("hw.physicalcpu")) or first_whole(
        hardware.get("number_processors")
    )
    performance, efficiency = _split(kernel, physical)
    return tolerant(
        Cpu,
        {
            "brand": text_or_none(kernel.get("machdep.cpu.brand_string"))
            or text_or_none(hardware.get("chip_type")),
            "architecture": text_or_none(architecture),
            "physical_cores": physical,
            "logical_cores": whole_or_none(kernel.get("hw.logicalcpu")) or physical,
            "performance_cores": performance,
            "efficiency_cores": efficiency,
            "sockets": whole_or_none(kernel.get("hw.packages")),
            "instruction_sets": _instruction_sets(kernel),
        },
        brand="unknown Apple CPU",
        architecture="unknown",
    )


def system_from(
    kernel: Mapping[str, str],
    profiled: Mapping[str, Any],
    version: str,
    release: str,
    page_bytes: int | None = None,
) -> OperatingSystem:
    """The operating system. Model name, chip name or kernel show a virtual machine."""
    hardware = section(profiled, "SPHardwareDataType")
    brand = kernel.get("machdep.cpu.brand_string", "")
    named = (
        kernel.get("hw.model"),
        hardware.get("machine_model"),
        hardware.get("chip_type"),
        brand,
    )
    virtual = kernel.get("kern.hv_vmm_present") == "1" or any(
        isinstance(name, str) and re.search(r"VirtualMac|\(Virtual\)|VMware|Parallels", name)
        for name in named
    )
    # Under Rosetta system_profiler has no chip name, and sysctl has this one.
    translated = kernel.get("sysctl.proc_translated") == "1" or brand.startswith("VirtualApple")
    return tolerant(
        OperatingSystem,
        {
            "version": text_or_none(version),
            "kernel": text_or_none(release),
            "page_bytes": page_bytes,
            "virtual_machine": "apple" if virtual else None,
            "rosetta": translated,
        },
        name="macos",
        version="unknown",
    )


def model_from(kernel: Mapping[str, str], profiled: Mapping[str, Any]) -> str | None:
    """Product and model identifier. Newer identifiers do not tell a product by themselves."""
    hardware = section(profiled, "SPHardwareDataType")
    identifier = text_or_none(kernel.get("hw.model")) or text_or_none(hardware.get("machine_model"))
    product = text_or_none(hardware.get("machine_name"))
    return " ".join(filter(None, (product, identifier))) or None


def gpus_from(
    kernel: Mapping[str, str], profiled: Mapping[str, Any], ioreg: tuple[Accelerator, ...]
) -> tuple[Gpu, ...]:
    """Apple's GPU, once for any number of displays; its memory is the machine's."""
    named = [gpu for gpu in map(_display_gpu, _displays(profiled)) if gpu]
    apple_gpus = [gpu for gpu in named if gpu[0].startswith("Apple")]
    brand = text_or_none(kernel.get("machdep.cpu.brand_string")) or ""
    if apple_gpus:
        name, cores = apple_gpus[0]
    elif brand.startswith("Apple"):
        name, cores = re.sub(r"\s*\(Virtual\)$", "", brand), None
    else:
        return ()
    if cores is None:
        counts = [
            accelerator.cores
            for accelerator in ioreg
            if accelerator.cores and _is_apple(accelerator.model)
        ]
        cores = max(counts, default=None)
    facts = {
        "name": name,
        "cores": cores,
        "memory_bytes": whole_or_none(kernel.get("hw.memsize")),
        "unified_memory": True,
    }
    return (tolerant(Gpu, facts, kind="metal", index=0, name="unknown Apple GPU"),)


def _display_gpu(display: Mapping[str, Any]) -> tuple[str, int | None] | None:
    """Name and cores of a display's GPU, or None without a usable name."""
    name = text_or_none(display.get("sppci_model"))
    if name is None:
        item = text_or_none(display.get("_name"))
        # "kHW_AppleM1ProItem" is a key of a translation table.
        key = re.fullmatch(r"kHW_Apple(M[0-9]+)(Pro|Max|Ultra)?Item", item or "")
        name = " ".join(("Apple", *filter(None, key.groups()))) if key else item
    return (name, first_whole(display.get("sppci_cores"))) if name else None


def _displays(profiled: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = profiled.get("SPDisplaysDataType")
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def section(profiled: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """First item of a section of the profile; empty if there is none."""
    listed = profiled.get(name)
    first = listed[0] if isinstance(listed, list) and listed else None
    return first if isinstance(first, dict) else {}


def _split(kernel: Mapping[str, str], physical: int | None) -> tuple[int | None, int | None]:
    """Numbers of performance and efficiency cores, by level names; None without names."""
    counted = {"performance": 0, "efficiency": 0}
    for level in range(min(MOST_LEVELS, whole_or_none(kernel.get("hw.nperflevels")) or 0)):
        name = kernel.get(f"hw.perflevel{level}.name", "").lower()
        cores = whole_or_none(kernel.get(f"hw.perflevel{level}.physicalcpu")) or 0
        if name in PERFORMANCE_LEVELS:
            counted["performance"] += cores
        elif name in EFFICIENCY_LEVELS:
            counted["efficiency"] += cores
    if not any(counted.values()) or physical not in (None, sum(counted.values())):
        return None, None
    return counted["performance"], counted["efficiency"]


def _is_apple(name: str | None) -> bool:
    return name is None or name.startswith("Apple")


def _instruction_sets(kernel: Mapping[str, str]) -> tuple[str, ...]:
    arm = [flag.removeprefix("FEAT_").lower() for flag in ARM_FLAGS if _has(kernel, flag)]
    words = " ".join(
        kernel.get(f"machdep.cpu.{name}", "") for name in ("features", "leaf7_features")
    ).split()
    return (*arm, *(name for word, name in INTEL_FLAGS.items() if word in words))


def _has(kernel: Mapping[str, str], flag: str) -> bool:
    return kernel.get(f"hw.optional.arm.{flag}") == "1"
