"""Hardware names: the normalised name by which results are grouped.

Computed by the server from a machine's facts, never sent: a new alias here regroups stored results.
An NVIDIA GPU is the same hardware bare, in a container and in a virtual machine: it computes
without their help, and the machine's facts say which it was. A processor in one is a part of the
processor, and a virtual Mac's GPU is not Apple's GPU, so neither groups with the bare machine.
"""

import re
from functools import cache, lru_cache

from ..base import names
from ..catalogue import peaks
from ..catalogue.matrix import Device
from .machine import Cpu, Machine, OperatingSystem

# Replacements of spellings, applied in order to the names of operating system and driver.
ALIASES: tuple[tuple[str, str], ...] = (
    (r"\((?:R|TM|C)\)", " "),
    (r" +-(?=\w)", "-"),
    # Clouds have Xeons without a model number, which only the clock tells apart.
    (r"^Intel\s+Xeon\s+(?:CPU|Processor)?\s*@\s*([\d.]+)\s?GHz$", r"Intel Xeon (\1 GHz)"),
    (r"@\s*[\d.]+\s?[GM]Hz$", " "),
    (r"\s\d+(?:\.\d+)?\s?GHz$", " "),
    # A number of cores is no part of a name, except Apple's, which also has "GPU".
    (r"\b(?:CPU|Processor|(?:\d+|Six|Eight|Dual|Quad)-Cores?)\b", " "),
    (r"\b\d+th Gen(?:eration)?\b", " "),
    (
        r"\b(?:with|w/)\s+(?:AMD )?Radeon"
        r"(?:\s(?:Pro|Vega|Mobile|HD|R\d|\d{1,4}[A-Z]?|Graphics|Gfx))*$",
        " ",
    ),
    (r"\(Virtual\)", " "),
    (r"\bMIG (\d+\S*)$", r"(MIG \1)"),
    (r"\(nvgpu\)$", " "),
    (r"^(?:NVIDIA )?GRID (?=[A-Z]+\d+\w*-\d+[A-Z]$)", "NVIDIA "),
    (r"\s+", " "),
    (r"^\s|\s$", ""),
    (r"^Intel Core 2", "Intel Core2"),
    (r"^Genuine Intel(?=\s)", "Intel"),
    (r"^Intel (?=(?:i[3579]-|Ultra ))", "Intel Core "),
    (r"^(?=(?:Xeon|Core (?:i[3579]|Ultra)|Pentium|Celeron)\b)", "Intel "),
    (r"^(?=(?:EPYC|Ryzen|Threadripper|Athlon)\b)", "AMD "),
    (r"^AMD Threadripper", "AMD Ryzen Threadripper"),
    (r"^(?=M\d(?: (?:Pro|Max|Ultra))?$)", "Apple "),
    (r"^(?:Amazon(?: Web Services)?|AWS)[ -]+(?=Graviton)|^(?=Graviton)", "AWS "),
    (r"^AWS Graviton ?(?=\d)", "AWS Graviton"),
    (r"^Ampere Computing\b", "Ampere"),
    (r"^(Ampere Altra(?: Max)?) [QM]\d+-\d+$", r"\1"),
    (r"^(?:ARM )?Neoverse[ -](?=[NVE]\d)", "Arm Neoverse-"),
    # NVIDIA: drivers before 440 leave the maker out, and before 510 name the families Tesla.
    (r"^(?:NVIDIA )?GeForce\b", "NVIDIA GeForce"),
    (r"^(?:NVIDIA )?(?=GTX \d{3,4}\b|RTX [2-9]0[5-9]0\b)", "NVIDIA GeForce "),
    (
        r"^(?=(?:Tesla|Quadro|TITAN|RTX|GTX|Jetson|Orin|Graphics|GH200|GB\d{2,3}|[ABHLPTV]\d{1,3}S?)"
        r"(?:[ -]|$))",
        "NVIDIA ",
    ),
    (r"^NVIDIA Tesla (?=(?:A|H|L|T4)\d*)", "NVIDIA "),
    (r"^NVIDIA GeForce NVIDIA GeForce", "NVIDIA GeForce"),
    (r"\bLaptop$", "Laptop GPU"),
    (r"^(NVIDIA .*)\bMobile$", r"\1Laptop GPU"),
    (r"\bwith Max-Q Design$", "Max-Q"),
    (r"\b(?:\(Notebook\)|Notebook)$", "Laptop GPU"),
)

# Sizes of memory that boards have.
BOARDS_GIB = (1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 288)

# The punctuation of hardware names, applied in order to their words in lower case.
USUAL: tuple[tuple[str, str], ...] = (
    (r" (\d+) core ([cg]pu)\b", r" (\1-core \2)"),
    (r" (fanless|rosetta|emulated|wsl|container|virtual machine|mig slice)\b", r" (\1)"),
    (r" mig (\d+g) (\d+gb)\b", r" (mig \1.\2)"),
    (r" (\d+ multiprocessors) (\d+ gb)\b", r" (\1, \2)"),
    (r" (\d+ multiprocessors)\b", r" (\1)"),
    (r" (\d+ cores?|cores unknown)\b", r", \1"),
    (r"\b(i[3579]) (?=\d)|\b(эльбрус) (?=\d)", r"\1\2-"),
    (r"\b(e[357]|[dw]|w[3579]|fx) (?=\d{4,5}[a-z]{0,3}\b)", r"\1-"),
    (r"\b(neoverse|cortex) (?=[aemnrvx]\d)", r"\1-"),
    (r"\bmax q\b", "max-q"),
    (r"\b([ahpv]\d00) (pcie|sxm\d) (?=\d+gb\b)", r"\1-\2-"),
    (r"^published\b", "\0"),  # the slugs of copied figures begin so, and no other
)

X86 = re.compile(r"x86[-_]64|amd64|x64|i[3-6]86|x86", re.IGNORECASE)
ARM = re.compile(r"arm64\w*|aarch64\w*|armv\d\w*|arm", re.IGNORECASE)
# Cleaned names. Rosetta calls Apple's processors VirtualApple; AMD's Opteron A1100 is an Arm.
X86_NAMES = re.compile(r"Intel\b|AMD (?:EPYC|Ryzen|Athlon|FX|Phenom)\b", re.IGNORECASE)
ARM_NAMES = re.compile(
    r"(?:Virtual)?Apple\b|AWS Graviton|Ampere|Arm\b|Cortex|Google Axion|Microsoft Cobalt|NVIDIA"
    r"|Qualcomm|Snapdragon",
    re.IGNORECASE,
)

# Apple's models without a fan; newer ones are known by the name that precedes their identifier.
FANLESS = re.compile(
    r"MacBook Air\b|\bMacBookAir10,1$|\bMac(?:14,2|14,15|15,12|15,13|16,12|16,13)$"
)


def hardware_name(machine: Machine, device: Device) -> str:
    """The hardware name of a device of this machine.

    Examples: ``Apple M2 Max (30-core GPU)``, ``Apple M2 (8-core GPU) (fanless)``, ``NVIDIA H200``,
    ``NVIDIA Orin (16 multiprocessors, 64 GB)``, ``Intel Core i7-8700``,
    ``Intel Xeon Platinum 8481C, 2 cores (virtual machine)``.
    """
    name = _cpu_name(machine) if device.kind == "cpu" else _gpu_name(machine, device)
    if machine.os.name == "macos" and FANLESS.search(machine.model or ""):
        name += " (fanless)"
    if emulated(machine.cpu, machine.os):
        name += " (Rosetta)" if machine.os.rosetta else " (emulated)"
    return name + _nesting(machine, device)


def emulated(cpu: Cpu, system: OperatingSystem) -> bool:
    """Whether the named processor runs programs of the other architecture: under Rosetta, Windows
    on Arm, QEMU."""
    foreign = {X86: ARM_NAMES, ARM: X86_NAMES}
    return system.rosetta or any(
        programs.fullmatch(cpu.architecture) and processors.match(clean(cpu.brand))
        for programs, processors in foreign.items()
    )


def _nesting(machine: Machine, device: Device) -> str:
    if machine.os.wsl:
        return " (WSL)"
    if device.kind == "cuda":
        return ""
    if machine.os.virtual_machine or "(virtual)" in machine.cpu.brand.lower():
        return " (virtual machine)"
    return " (container)" if machine.os.container else ""


@lru_cache(maxsize=1024)
def slug(name: str) -> str:
    """The hardware's part of an address. Names that differ in more than letter case and spaces have
    two: no name that looks like a known one joins its results."""
    return names.slug(name, _usual)


def _usual(words: str) -> str:
    for pattern, replacement in USUAL:
        words = re.sub(pattern, replacement, words)
    return words


@lru_cache(maxsize=1024)
def clean(name: str) -> str:
    """One spelling for each product name."""
    given = name = names.normal(name)
    for pattern, replacement in ALIASES:
        name = re.sub(pattern, replacement, name, flags=re.IGNORECASE)
    name = re.sub(r"\s+", " ", name).strip() or given
    return _spellings().get(slug(name), name)


@cache
def _spellings() -> dict[str, str]:
    """The vendors' spelling of what has a stated peak, by slug: no sender chooses it."""
    stated = (*peaks.table()["hardware"], *peaks.table()["apple_gpus"]["clocks_mhz"])
    return {slug(name): name for name in stated}


def _cpu_name(machine: Machine) -> str:
    cpu = machine.cpu
    name = clean(cpu.brand)
    if name.startswith("Apple"):
        return f"{name} ({cpu.physical_cores or cpu.logical_cores or 'unknown'}-core CPU)"
    if machine.os.virtual_machine or machine.os.container or cpu.quota_cores:
        return f"{name}, {_cores_in_use(cpu)}"
    return name


def _cores_in_use(cpu: Cpu) -> str:
    """The smallest of the processor's cores, the allowed cores and the quota."""
    limits = [
        cores for cores in (cpu.available_cores or cpu.logical_cores, cpu.quota_cores) if cores
    ]
    return (
        f"{min(limits):g} {'core' if min(limits) == 1 else 'cores'}" if limits else "cores unknown"
    )


def _gpu_name(machine: Machine, device: Device) -> str:
    gpu = machine.gpu(device)
    if gpu is None:
        return f"unknown {device.kind} GPU"
    name = clean(gpu.name)
    if gpu.kind == "metal":
        return f"{name} ({gpu.cores}-core GPU)" if gpu.cores else name
    if not re.match(r"NVIDIA\b|unknown\b", name, re.IGNORECASE):
        name = clean(f"NVIDIA {name}")
    if (gpu.mig or gpu.mig_profile) and "(MIG" not in name:
        name = f"{name} (MIG {gpu.mig_profile or 'slice'})"
    # The parts with a stated peak have a name each. Other names are those of several (Orin).
    if "(MIG" in name or not gpu.cores or slug(name) in _spellings():
        return name
    size = _board_gib(gpu.memory_bytes)
    return f"{name} ({gpu.cores} multiprocessors{size and f', {size} GB'})"


def _board_gib(memory_bytes: int | None) -> int | str:
    """Memory on the board; the driver, ECC and the system keep up to a sixth of it. Empty if
    unknown."""
    return next((g for g in BOARDS_GIB if memory_bytes and memory_bytes <= g * 2**30), "")
