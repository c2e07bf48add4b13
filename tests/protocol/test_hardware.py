"""Hardware names, by which results are grouped."""

import re
from typing import Any

import pytest

from bench_protocol.base import names
from bench_protocol.catalogue.matrix import Device, DeviceKind
from bench_protocol.payload.hardware import clean, hardware_name, slug
from bench_protocol.payload.machine import Cpu, Gpu, Machine, OperatingSystem

CPU = Device(kind="cpu")
METAL = Device(kind="metal")
CUDA = Device(kind="cuda")


def machine(
    brand: str = "x",
    gpus: tuple[Gpu, ...] = (),
    cores: int = 8,
    quota: float | None = None,
    architecture: str = "unknown",
    **system: Any,
) -> Machine:
    return Machine(
        machine_hash="0" * 64,
        cpu=Cpu(
            brand=brand,
            architecture=architecture,
            physical_cores=cores,
            logical_cores=2 * cores,
            available_cores=cores,
            quota_cores=quota,
        ),
        gpus=gpus,
        os=OperatingSystem(name="linux", version="12", **system),
    )


def gpu(name: str, kind: DeviceKind = "cuda", index: int = 0, **facts: Any) -> Gpu:
    return Gpu(kind=kind, index=index, name=name, **facts)


PROCESSORS = {
    "Intel Core i7-8700": [
        *("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", "Intel(R) Core(TM) i7-8700"),
        *("Intel Core i7-8700 CPU", "Intel(r) Core(tm) i7-8700 cpu @ 3.20GHz"),
        "  Intel(R)  Core(TM)   i7-8700 ",
    ],
    "Intel Xeon Platinum 8481C": [
        *("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "Intel(R) Xeon(R) Platinum 8481C")
    ],
    "Intel Core i9-12900K": [
        *("12th Gen Intel(R) Core(TM) i9-12900K", "Intel(R) Core(TM) i9-12900K")
    ],
    "AMD Ryzen 9 7950X": ["AMD Ryzen 9 7950X 16-Core Processor", "AMD Ryzen 9 7950X"],
    "AMD Ryzen 7 7840U": ["AMD Ryzen 7 7840U with Radeon 780M Graphics", "AMD Ryzen 7 7840U"],
    "AMD EPYC 7763": ["AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763"],
    "AMD Ryzen AI 9 HX 370": ["AMD Ryzen AI 9 HX 370 w/ Radeon 890M", "Ryzen AI 9 HX 370"],
    "AMD Ryzen Threadripper PRO 5995WX": [
        *("AMD Ryzen Threadripper PRO 5995WX 64-Cores", "AMD Threadripper PRO 5995WX")
    ],
    "Intel Core Ultra 9 285K": ["Intel® Core™ Ultra 9 285K", "Intel(R) Core(TM) Ultra 9 285K"],
    "AWS Graviton3": ["AWS Graviton3", "Graviton 3", "AWS Graviton 3"],
    "Ampere Altra": ["Ampere(R) Altra(R) Processor Q80-30 CPU @ 3.0GHz", "Ampere Altra"],
    "AMD FX-8350": [
        *("AMD FX(tm)-8350 Eight-Core Processor", "AMD FX\u2122-8350", "AMD FX (TM)-8350"),
        "AMD FX\u00ae-8350",
    ],
    "VIA C7-M": ["VIA C7(R)-M", "VIA C7-M"],
    "AMD Turion 64 Mobile": ["AMD Turion(tm) 64 Mobile"],
    "Arm Neoverse-N1": ["Neoverse-N1", "ARM Neoverse-N1", "Arm Neoverse N1"],
}
GPUS = {
    "NVIDIA H200": [
        *("NVIDIA H200", "H200", "nvidia h200", "NVIDIA(R)  H200 (TM)", "NVIDIA\u2122 h200"),
        *("\uff2e\uff36\uff29\uff24\uff29\uff21 \uff28\uff12\uff10\uff10", "h200 "),
    ],
    "NVIDIA GeForce RTX 4090": [
        *("NVIDIA GeForce RTX 4090", "GeForce RTX 4090", "RTX 4090", "NVIDIA RTX 4090")
    ],
    "NVIDIA Tesla V100-SXM2-16GB": ["Tesla V100-SXM2-16GB", "NVIDIA Tesla V100-SXM2-16GB"],
    "NVIDIA Quadro RTX 6000": ["Quadro RTX 6000", "NVIDIA Quadro RTX 6000"],
    "NVIDIA RTX A6000": ["RTX A6000", "NVIDIA RTX A6000"],
    "NVIDIA T4": ["Tesla T4", "NVIDIA T4", "T4"],
    "NVIDIA GB10": ["GB10", "NVIDIA GB10"],
    "NVIDIA GeForce RTX 4090 Laptop GPU": [
        *("GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 Laptop")
    ],
    "NVIDIA GeForce RTX 2080 Max-Q": [
        *("GeForce RTX 2080 with Max-Q Design", "NVIDIA GeForce RTX 2080 Max-Q")
    ],
    "NVIDIA RTX 4000 SFF Ada Generation": [
        *("RTX 4000 SFF Ada Generation", "NVIDIA RTX 4000 SFF Ada Generation")
    ],
}


@pytest.mark.parametrize("name", [*PROCESSORS, *GPUS])
def test_spellings_of_one_product_group_together(name: str) -> None:
    if name in PROCESSORS:
        found = {hardware_name(machine(brand), CPU) for brand in PROCESSORS[name]}
    else:
        found = {hardware_name(machine(gpus=(gpu(one),)), CUDA) for one in GPUS[name]}
    assert found == {name}
    assert clean(name) == name


def test_different_products_stay_apart() -> None:
    of_nvidia = ["NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H200", "NVIDIA H200 NVL"]
    assert len({clean(name) for name in of_nvidia}) == 4
    xeons = ["Intel(R) Xeon(R) CPU @ 2.20GHz", "Intel(R) Xeon(R) CPU @ 2.00GHz", "Intel Xeon"]
    assert len({clean(name) for name in xeons}) == 3
    assert clean("Intel(R) Core(TM) i7-8700K") != clean("Intel(R) Core(TM) i7-8700")
    assert clean("GeForce RTX 4090") != clean("GeForce RTX 4090 Laptop GPU")
    assert clean("GeForce RTX 2080") != clean("GeForce RTX 2080 with Max-Q Design")
    assert clean("Quadro RTX 4000") != clean("RTX 4000 Ada Generation")
    assert clean("Ampere Altra Max M128-30") != clean("Ampere Altra Q80-30")


NESTED: list[dict[str, Any]] = [
    {"virtual_machine": "kvm"},
    {"container": "docker"},
    {"virtual_machine": "kvm", "container": "docker"},
]
H200 = (gpu("NVIDIA H200", cores=132),)
XEON = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
BOTH = (gpu("NVIDIA L4", index=1), gpu("H200"))
MACS = {
    cores: machine("Apple M2 Max", (gpu("Apple M2 Max", "metal", cores=cores),), 12)
    for cores in (30, 38, None)
}


@pytest.mark.parametrize(
    ("of", "device", "name"),
    [
        (machine(gpus=H200), CUDA, "NVIDIA H200"),  # its name has a stated peak: it is of one part
        (MACS[30], METAL, "Apple M2 Max (30-core GPU)"),
        (MACS[38], METAL, "Apple M2 Max (38-core GPU)"),
        (MACS[None], METAL, "Apple M2 Max"),
        (MACS[30], CPU, "Apple M2 Max (12-core CPU)"),
        (machine("apple m2 max", cores=12), CPU, "Apple M2 Max (12-core CPU)"),
        (machine("Apple M1 (Virtual)", cores=3), CPU, "Apple M1 (3-core CPU) (virtual machine)"),
        (machine("Intel(R) Xeon(R) Gold 9999", quota=1.5), CPU, "Intel Xeon Gold 9999, 1.5 cores"),
        (machine(gpus=BOTH), Device(kind="cuda", index=0), "NVIDIA H200"),
        (machine(gpus=BOTH), Device(kind="cuda", index=1), "NVIDIA L4"),
        (machine(gpus=BOTH), Device(kind="cuda", index=2), "unknown cuda GPU"),
        (machine(gpus=BOTH), METAL, "unknown metal GPU"),
        # An NVIDIA GPU is one hardware bare and in a container or virtual machine.
        *((machine(XEON, H200, **system), CUDA, "NVIDIA H200") for system in NESTED),
        # A slice of a GPU is not the GPU.
        (machine(gpus=(gpu("NVIDIA H200", mig=False),)), CUDA, "NVIDIA H200"),
        (machine(gpus=(gpu("NVIDIA H200", mig=True),)), CUDA, "NVIDIA H200 (MIG slice)"),
        (
            machine(gpus=(gpu("NVIDIA H200", mig=True, mig_profile="1g.18gb"),)),
            CUDA,
            "NVIDIA H200 (MIG 1g.18gb)",
        ),
        # Virtual processors group by the cores that they were given.
        *(
            (
                machine(XEON, cores=cores, virtual_machine="kvm"),
                CPU,
                f"Intel Xeon Platinum 8481C, {cores} cores (virtual machine)",
            )
            for cores in (2, 4)
        ),
        *(
            (
                machine(XEON, cores=cores, container="docker"),
                CPU,
                f"Intel Xeon Platinum 8481C, {cores} cores (container)",
            )
            for cores in (2, 4)
        ),
    ],
)
def test_the_name_of_a_device(of: Machine, device: Device, name: str) -> None:
    assert hardware_name(of, device) == name


@pytest.mark.parametrize(
    ("spellings", "boards"),
    [
        (
            ("Orin (nvgpu)", "Orin", "NVIDIA Orin"),
            [(16, 61e9), (8, 16e9), (8, 7.6e9), (None, None)],
        ),
        (("Xavier (nvgpu)", "NVIDIA Xavier"), [(8, 33e9), (6, 8e9)]),
        (("NVIDIA Thor", "Thor"), [(20, 131e9), (12, 65e9)]),
        (("GeForce RTX 3080", "NVIDIA GeForce RTX 3080"), [(68, 10.5e9), (70, 12.7e9)]),
        (("GeForce RTX 3060", "RTX 3060"), [(28, 8.4e9), (28, 12.6e9)]),
        (("GRID A10-8Q", "NVIDIA A10-8Q"), [(72, 8e9)]),
    ],
)
def test_unlike_gpus_of_one_name_are_apart_and_one_gpu_has_one_name(
    spellings: tuple[str, ...], boards: list[tuple[int | None, float | None]]
) -> None:
    gpus = [
        gpu(name, cores=cores, memory_bytes=size and int(size))
        for cores, size in boards
        for name in spellings
    ]
    assert len({hardware_name(machine(gpus=(one,)), CUDA) for one in gpus}) == len(boards)
    assert hardware_name(machine(gpus=(gpus[0],)), CUDA).startswith("NVIDIA ")


TRANSLATED: list[dict[str, Any]] = [
    {"wsl": True},
    {"wsl": True, "virtual_machine": "hyperv"},
    {"rosetta": True},
]


@pytest.mark.parametrize(
    ("brand", "architecture", "name"),
    [
        ("Snapdragon(R) X Elite", "AMD64", "Snapdragon X Elite (emulated)"),
        ("Qualcomm Oryon", "x86_64", "Qualcomm Oryon (emulated)"),
        ("AWS Graviton3", "x86_64", "AWS Graviton3 (emulated)"),
        ("VirtualApple @ 2.50GHz", "x86_64", "VirtualApple (emulated)"),
        ("Intel(R) Xeon(R) Gold 6430", "aarch64", "Intel Xeon Gold 6430 (emulated)"),
        ("AMD EPYC 9654", "x86_64", "AMD EPYC 9654"),
        ("Qualcomm Oryon", "ARM64", "Qualcomm Oryon"),
        ("AMD Opteron A1100", "aarch64", "AMD Opteron A1100"),
    ],
)
def test_an_emulated_processor_is_other_hardware(brand: str, architecture: str, name: str) -> None:
    assert hardware_name(machine(brand, architecture=architecture), CPU) == name


@pytest.mark.parametrize(
    ("model", "fanless"),
    [
        ("MacBookAir10,1", True),
        ("Mac14,2", True),
        ("MacBook Air Mac14,15", True),
        ("MacBook Air Mac99,1", True),
        ("MacBook Pro Mac14,7", False),
        ("Mac14,7", False),
        ("Mac mini Mac14,3", False),
        ("Mac14,20", False),
        ("Mac15,120", False),
        (None, False),
    ],
)
def test_macs_without_a_fan_are_other_hardware(model: str | None, fanless: bool) -> None:
    mac = machine("Apple M2", (gpu("Apple M2", "metal", cores=10),)).model_copy(
        update={"model": model, "os": OperatingSystem(name="macos", version="26.1")}
    )
    end = " (fanless)" if fanless else ""
    assert hardware_name(mac, METAL) == f"Apple M2 (10-core GPU){end}"
    assert hardware_name(mac, CPU) == f"Apple M2 (8-core CPU){end}"


@pytest.mark.parametrize(
    ("system", "device"),
    [
        *((system, device) for system in NESTED for device in (CPU, METAL)),
        *((system, device) for system in TRANSLATED for device in (CPU, CUDA, METAL)),
    ],
    ids=str,
)
@pytest.mark.parametrize("brand", ["Intel(R) Xeon(R) Platinum 8481C", "Apple M2 Max"])
def test_what_else_is_nested_never_groups_with_the_bare_machine(
    system: dict[str, Any], device: Device, brand: str
) -> None:
    gpus = (gpu("NVIDIA H200"), gpu("Apple M2 Max", "metal", cores=30))
    bare = hardware_name(machine(brand, gpus), device)
    nested = hardware_name(machine(brand, gpus, **system), device)
    assert nested != bare
    assert slug(nested) != slug(bare)


ALONE = [
    "Processor",
    "@ 3 GHz",
    "CPU",
    "unknown",
    "\u6469\u5c14\u7ebf\u7a0b",
    "\u4e2d\u6587",
    "é" * 200,
]
# Punctuation and words that a name may have beside those of a known one.
BESIDE = [
    "!!! {} !!!",
    "«{}»",
    "{} – x",
    "({})",
    "{}.",
    "{}, x",
    "{}/",
    "[{}]",
    "{} -",
    "#{}",
    "{}&",
]
BESIDE += [
    "{} @ x",
    "{} with x",
    "{} ПОДДЕЛКА 5",
    "x {}",
    "{}!",
    "'{}'",
    "{}:",
    "*{}*",
    "{} 30-core GPU",
]
KNOWN = [
    "NVIDIA H200",
    "Moore Threads MTT S4000",
    "Intel Core i7-8700",
    "Apple M2 Max (30-core GPU)",
]
SLUGS = {
    "Apple M2 (8-core GPU) (fanless)": "apple-m2-8-core-gpu-fanless",
    "Intel Xeon Platinum 8481C, 2 cores (virtual machine)": "intel-xeon-platinum-8481c-2-cores"
    "-virtual-machine",
    "NVIDIA H200 (MIG 1g.18gb)": "nvidia-h200-mig-1g-18gb",
    "NVIDIA Orin (16 multiprocessors, 64 GB) (WSL)": "nvidia-orin-16-multiprocessors-64-gb-wsl",
    "NVIDIA X9 (8 multiprocessors)": "nvidia-x9-8-multiprocessors",
    "NVIDIA A100-SXM4-80GB": "nvidia-a100-sxm4-80gb",
    "Intel Xeon E5-2680 v4": "intel-xeon-e5-2680-v4",
    "Arm Cortex-A76 and Arm Cortex-A55": "arm-cortex-a76-and-arm-cortex-a55",
    "\u6469\u5c14\u7ebf\u7a0b S80": "\u6469\u5c14\u7ebf\u7a0b-s80",
}


def test_each_name_has_a_slug_of_its_own() -> None:
    shown = [beside.format(known) for known in KNOWN for beside in ("{}", *BESIDE)]
    every = [*map(clean, [*shown, *ALONE, *(known.replace(" ", "-") for known in KNOWN)]), *SLUGS]
    assert len({*map(slug, every)}) == len({name.lower() for name in every}) == len(every)
    assert {name: slug(name) for name in SLUGS} == SLUGS
    assert [slug(known) for known in KNOWN] == [names.slug(known) for known in KNOWN]
    assert slug("published NVIDIA H200") != "published-nvidia-h200"
    assert all(re.fullmatch(r"[\w-]+", slug(name)) for name in every)


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("linux", "Debian GNU/Linux 12 (bookworm)", "Debian GNU/Linux 12 (bookworm)"),
        ("linux", "Ubuntu 24.04", "Linux Ubuntu 24.04"),
        ("macos", "14.6", "macOS 14.6"),
        ("windows", "11", "Windows 11"),
    ],
)
def test_a_system_is_named_once(name: str, version: str, words: str) -> None:
    assert OperatingSystem(name=name, version=version).words == words  # type: ignore[arg-type]
