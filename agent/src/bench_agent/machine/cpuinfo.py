"""Parse ``/proc/cpuinfo`` and name the processor; 64-bit Arm has numbers instead of names."""

import re
from dataclasses import dataclass

from .text import PLACEHOLDER, text_or_none

# The flags in /proc/cpuinfo that affect the speed of matrix products.
SPEED_FLAGS = tuple(
    "sse4_2 avx avx2 fma f16c avx512f avx512_vnni avx512_bf16 avx512_fp16 avx_vnni "  # noqa: SIM905
    "amx_tile amx_bf16 amx_int8 asimd asimdhp asimddp sve sve2 i8mm bf16 sme sme2".split()
)
# An x86-64's flag of this name is encrypted memory, an Arm's the Scalable Matrix Extension.
AMD_SME = "sme"
# Implementer and part number of Arm processors (the table of util-linux's lscpu-arm.c).
ARM_CORES = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD04): "Cortex-A35",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0A): "Cortex-A75",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD0D): "Cortex-A77",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD42): "Cortex-A78AE",
    (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD46): "Cortex-A510",
    (0x41, 0xD47): "Cortex-A710",
    (0x41, 0xD48): "Cortex-X2",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4B): "Cortex-A78C",
    (0x41, 0xD4D): "Cortex-A715",
    (0x41, 0xD4E): "Cortex-X3",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD80): "Cortex-A520",
    (0x41, 0xD81): "Cortex-A720",
    (0x41, 0xD82): "Cortex-X4",
    (0x41, 0xD83): "Neoverse-V3AE",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD85): "Cortex-X925",
    (0x41, 0xD87): "Cortex-A725",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x61, 0x022): "Apple M1",
    (0x61, 0x023): "Apple M1",
    (0x61, 0x024): "Apple M1 Pro",
    (0x61, 0x025): "Apple M1 Pro",
    (0x61, 0x028): "Apple M1 Max",
    (0x61, 0x029): "Apple M1 Max",
    (0x61, 0x032): "Apple M2",
    (0x61, 0x033): "Apple M2",
    (0x61, 0x034): "Apple M2 Pro",
    (0x61, 0x035): "Apple M2 Pro",
    (0x61, 0x038): "Apple M2 Max",
    (0x61, 0x039): "Apple M2 Max",
    (0x4E, 0x000): "NVIDIA Denver",
    (0x4E, 0x003): "NVIDIA Denver 2",
    (0x4E, 0x004): "NVIDIA Carmel",
    (0x51, 0x001): "Qualcomm Oryon",
    (0xC0, 0xAC3): "AmpereOne",
    (0xC0, 0xAC4): "AmpereOne",
}
# Names of an instruction set, a socket, or any processor of a virtual machine.
NO_PROCESSOR = re.compile(
    r"^(?:ARM|ARM64|AArch64|x86[_-]64|RISC-?V|rv\d+\w*)$|^(?:ARMv\d|AArch64|ARM-compat)"
    r"|^(?:CPU|processor|socket|host|max|virtual)[ #]*(?:CPU|processor)?[ #]*\d*$"
    r"|\bQEMU\b|\bKVM processor\b|^Virtual CPU\b",
    re.IGNORECASE,
)
# This stands before the numbers of a kind of core that the table lacks.
UNKNOWN_CORE = "Arm core"
# Chips by all their kinds of cores.
CHIPS = {frozenset({"Cortex-X925", "Cortex-A725"}): "NVIDIA GB10"}
# A cloud's own processor, by the text in the machine's DMI. A chip that others build in too has its
# cores' name everywhere. A "g" after the number marks Amazon's own chips; p6e-gb200 has NVIDIA's.
AMAZON = r"amazon ec2 [a-z]+\d+g"
CLOUD_PRODUCTS = (
    (r"amazon ec2 a1\b", "Cortex-A72", "AWS Graviton"),
    (AMAZON, "Neoverse-N1", "AWS Graviton2"),
    (AMAZON, "Neoverse-V1", "AWS Graviton3"),
    (AMAZON, "Neoverse-V2", "AWS Graviton4"),
    (AMAZON, "Neoverse-V3", "AWS Graviton5"),
    ("google", "Neoverse-V2", "Google Axion"),
    ("microsoft", "Neoverse-N2", "Microsoft Cobalt 100"),
)


@dataclass(frozen=True)
class CpuInfo:
    """Facts from ``/proc/cpuinfo``; ``arm_cores``: the fastest kind first."""

    brand: str | None
    arm_cores: tuple[str, ...]
    sockets: int | None
    instruction_sets: tuple[str, ...]
    hypervisor: bool


def parse_cpuinfo(text: str) -> CpuInfo:
    flags = set(" ".join(_values(text, "flags")).split()) - {AMD_SME}
    flags |= set(" ".join(_values(text, "Features")).split())
    packages = set(_values(text, "physical id"))
    pairs = zip(_values(text, "CPU implementer"), _values(text, "CPU part"), strict=False)
    cores = {
        ARM_CORES.get((_number(who), _number(part))) or f"{UNKNOWN_CORE} {who}:{part}"
        for who, part in pairs
    }
    return CpuInfo(
        brand=next(filter(None, map(text_or_none, _brands(text))), None),
        arm_cores=tuple(sorted(cores, key=_rank)),
        sockets=len(packages) or None,
        instruction_sets=tuple(flag for flag in SPEED_FLAGS if flag in flags),
        hypervisor="hypervisor" in flags,
    )


def brand_of(info: CpuInfo, product: str, lscpu: str) -> str | None:
    """The processor's name: its own, else a cloud's (by ``product`` of the machine), its cores', or
    that of ``lscpu``, which tells administrators only its ``BIOS Model name``."""
    if info.brand:
        return info.brand
    for words, core, name in CLOUD_PRODUCTS:
        if core in info.arm_cores and re.search(words, product.lower()):
            return name
    if chip := CHIPS.get(frozenset(info.arm_cores)):
        return chip
    named = (_values(lscpu, name) for name in ("BIOS Model name", "Model name"))
    from_bios, names = ([value for value in values if _tells(value)] for values in named)
    # What everybody can read comes first, so that an administrator gets no other name.
    known = any(not core.startswith(UNKNOWN_CORE) for core in info.arm_cores)
    cores = " and ".join(info.arm_cores)
    named_there = "".join(from_bios[:1]) or " and ".join(dict.fromkeys(names))
    return text_or_none(cores if known else named_there or cores)


def _brands(text: str) -> list[str]:
    # "Model" is the board on a Raspberry Pi, "cpu" the processor on POWER; RISC-V has "uarch".
    named = (value for name in ("model name", "cpu", "uarch") for value in _values(text, name))
    return [value for value in named if _tells(value)]


def _values(text: str, name: str) -> list[str]:
    pattern = rf"^[ \t]*{re.escape(name)}[ \t]*:[ \t]*(.*?)[ \t]*$"
    return re.findall(pattern, text, re.MULTILINE)


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return -1


def _rank(core: str) -> tuple[bool, str]:
    """Cortex-X before Cortex-A, larger numbers first within a family."""
    family, _, number = core.partition("-")
    digits = re.sub(r"\D", "", number) or "0"
    return (not number.startswith("X"), f"{family}{9999 - int(digits[:4]):04d}")


def _tells(value: str) -> bool:
    return not (PLACEHOLDER.search(value) or NO_PROCESSOR.search(value))
