"""Hardware names, by which results are grouped."""

from typing import Any

import pytest

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.hardware import clean, hardware_name, slug
from bench_protocol.payload.machine import Cpu, Gpu, Machine, OperatingSystem

CPU = Device(kind="cpu")
METAL = Device(kind="metal")
CUDA = Device(kind="cuda")


def machine(brand: str, gpus: tuple[Gpu, ...] = (), cores: int = 8, **system: Any) -> Machine:
    return Machine(
        machine_hash="0" * 64,
        cpu=Cpu(
            brand=brand,
            architecture="x86_64",
            physical_cores=cores,
            logical_cores=2 * cores,
            available_cores=cores,
        ),
        gpus=gpus,
        os=OperatingSystem(name="linux", version="12", **system),
    )


@pytest.mark.parametrize(
    ("spellings", "name"),
    [
        (
            [
                "Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz",
                "Intel(R) Core(TM) i7-8700",
                "Intel Core i7-8700 CPU",
                "intel(r) core(tm) i7-8700 cpu @ 3.20GHz".replace("intel", "Intel").replace(
                    "core", "Core"
                ),
                "  Intel(R)  Core(TM)   i7-8700 ",
            ],
            "Intel Core i7-8700",
        ),
        (
            ["Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "Intel(R) Xeon(R) Platinum 8481C"],
            "Intel Xeon Platinum 8481C",
        ),
        (
            ["12th Gen Intel(R) Core(TM) i9-12900K", "Intel(R) Core(TM) i9-12900K"],
            "Intel Core i9-12900K",
        ),
        (
            [
                "AMD Ryzen 9 7950X 16-Core Processor",
                "AMD Ryzen 9 7950X",
            ],
            "AMD Ryzen 9 7950X",
        ),
        (
            [
                "AMD Ryzen 7 7840U w/ Radeon 780M Graphics".replace("w/", "with"),
                "AMD Ryzen 7 7840U",
            ],
            "AMD Ryzen 7 7840U",
        ),
        (["AMD EPYC 7763 64-Core Processor", "AMD EPYC 7763"], "AMD EPYC 7763"),
        (
            ["AMD Ryzen AI 9 HX 370 w/ Radeon 890M", "Ryzen AI 9 HX 370"],
            "AMD Ryzen AI 9 HX 370",
        ),
        (
            ["AMD Ryzen Threadripper PRO 5995WX 64-Cores", "AMD Threadripper PRO 5995WX"],
            "AMD Ryzen Threadripper PRO 5995WX",
        ),
        (
            ["Intel® Core™ Ultra 9 285K", "Intel(R) Core(TM) Ultra 9 285K"],
            "Intel Core Ultra 9 285K",
        ),
        (["AWS Graviton3", "Graviton 3", "AWS Graviton 3"], "AWS Graviton3"),
        (
            ["Ampere(R) Altra(R) Processor Q80-30 CPU @ 3.0GHz", "Ampere Altra"],
            "Ampere Altra",
        ),
        (["Neoverse-N1", "ARM Neoverse-N1", "Arm Neoverse N1"], "Arm Neoverse-N1"),
    ],
)
def test_spellings_of_one_processor_group_together(spellings: list[str], name: str) -> None:
    assert {hardware_name(machine(brand), CPU) for brand in spellings} == {name}


@pytest.mark.parametrize(
    ("spellings", "name"),
    [
        (["NVIDIA H200", "H200"], "NVIDIA H200"),
        (["NVIDIA GeForce RTX 4090", "GeForce RTX 4090"], "NVIDIA GeForce RTX 4090"),
        (["Tesla V100-SXM2-16GB", "NVIDIA Tesla V100-SXM2-16GB"], "NVIDIA Tesla V100-SXM2-16GB"),
        (["Quadro RTX 6000", "NVIDIA Quadro RTX 6000"], "NVIDIA Quadro RTX 6000"),
        (["RTX A6000", "NVIDIA RTX A6000"], "NVIDIA RTX A6000"),
        (["RTX 4090", "NVIDIA RTX 4090", "GeForce RTX 4090"], "NVIDIA GeForce RTX 4090"),
        (["Tesla T4", "NVIDIA T4", "T4"], "NVIDIA T4"),
        (["GB10", "NVIDIA GB10"], "NVIDIA GB10"),
        (
            ["GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 Laptop"],
            "NVIDIA GeForce RTX 4090 Laptop GPU",
        ),
        (
            ["GeForce RTX 2080 with Max-Q Design", "NVIDIA GeForce RTX 2080 Max-Q"],
            "NVIDIA GeForce RTX 2080 Max-Q",
        ),
        (
            ["RTX 4000 SFF Ada Generation", "NVIDIA RTX 4000 SFF Ada Generation"],
            "NVIDIA RTX 4000 SFF Ada Generation",
        ),
    ],
)
def test_spellings_of_one_gpu_group_together(spellings: list[str], name: str) -> None:
    names = {
        hardware_name(machine("x", (Gpu(kind="cuda", index=0, name=spelling),)), CUDA)
        for spelling in spellings
    }
    assert names == {name}


@pytest.mark.parametrize("name", ["NVIDIA H200", "NVIDIA GeForce RTX 4090", "Apple M2 Max"])
def test_cleaning_twice_changes_nothing(name: str) -> None:
    assert clean(name) == name == clean(clean(name))


def test_different_products_stay_apart() -> None:
    names = ["NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H200", "NVIDIA H200 NVL"]
    assert len({clean(name) for name in names}) == 4
    assert clean("Intel(R) Core(TM) i7-8700K") != clean("Intel(R) Core(TM) i7-8700")
    assert clean("GeForce RTX 4090") != clean("GeForce RTX 4090 Laptop GPU")
    assert clean("GeForce RTX 2080") != clean("GeForce RTX 2080 with Max-Q Design")
    assert clean("Quadro RTX 4000") != clean("RTX 4000 Ada Generation")
    assert clean("Ampere Altra Max M128-30") != clean("Ampere Altra Q80-30")


def test_only_apple_sells_one_name_with_several_numbers_of_cores() -> None:
    gpu = Gpu(kind="cuda", index=0, name="NVIDIA H200", cores=132)
    assert hardware_name(machine("x", (gpu,)), CUDA) == "NVIDIA H200"


def test_a_virtual_chip_is_virtual_by_its_name_alone() -> None:
    assert hardware_name(machine("Apple M1 (Virtual)", cores=3), CPU) == (
        "Apple M1 (3-core CPU) (virtual machine)"
    )


def test_a_processor_on_a_quota_is_not_the_whole() -> None:
    limited = machine("Intel(R) Xeon(R) Gold 9999", cores=8)
    limited = limited.model_copy(
        update={"cpu": limited.cpu.model_copy(update={"quota_cores": 1.5})}
    )
    assert hardware_name(limited, CPU) == "Intel Xeon Gold 9999, 1.5 cores"


def test_apple_names_carry_their_cores() -> None:
    def mac(cores: int | None) -> Machine:
        return machine(
            "Apple M2 Max", (Gpu(kind="metal", index=0, name="Apple M2 Max", cores=cores),), 12
        )

    assert hardware_name(mac(30), METAL) == "Apple M2 Max (30-core GPU)"
    assert hardware_name(mac(38), METAL) == "Apple M2 Max (38-core GPU)"
    assert hardware_name(mac(None), METAL) == "Apple M2 Max"
    assert hardware_name(mac(30), CPU) == "Apple M2 Max (12-core CPU)"
    assert slug(hardware_name(mac(30), METAL)) == "apple-m2-max-30-core-gpu"


def test_the_device_index_chooses_the_gpu() -> None:
    both = (Gpu(kind="cuda", index=1, name="NVIDIA L4"), Gpu(kind="cuda", index=0, name="H200"))
    assert hardware_name(machine("x", both), Device(kind="cuda", index=0)) == "NVIDIA H200"
    assert hardware_name(machine("x", both), Device(kind="cuda", index=1)) == "NVIDIA L4"
    assert hardware_name(machine("x", both), Device(kind="cuda", index=2)) == "unknown cuda GPU"
    assert hardware_name(machine("x", both), METAL) == "unknown metal GPU"


def test_a_slice_of_a_gpu_is_not_the_gpu() -> None:
    def sliced(**fields: Any) -> str:
        gpu = Gpu(kind="cuda", index=0, name="NVIDIA H200", **fields)
        return hardware_name(machine("x", (gpu,)), CUDA)

    assert sliced() == sliced(mig=False) == "NVIDIA H200"
    assert sliced(mig=True) == "NVIDIA H200 (MIG slice)"
    assert sliced(mig=True, mig_profile="1g.18gb") == "NVIDIA H200 (MIG 1g.18gb)"


NESTED: list[dict[str, Any]] = [
    {"virtual_machine": "kvm"},
    {"container": "docker"},
    {"virtual_machine": "kvm", "container": "docker"},
]
TRANSLATED: list[dict[str, Any]] = [
    {"wsl": True},
    {"wsl": True, "virtual_machine": "hyperv"},
    {"rosetta": True},
]


@pytest.mark.parametrize("system", NESTED, ids=str)
def test_an_nvidia_gpu_is_one_hardware_bare_and_in_a_container_or_virtual_machine(
    system: dict[str, Any],
) -> None:
    gpus = (Gpu(kind="cuda", index=0, name="NVIDIA H100 80GB HBM3"),)
    nested = machine("Intel(R) Xeon(R) Platinum 8481C", gpus, **system)
    assert hardware_name(nested, CUDA) == "NVIDIA H100 80GB HBM3"
    facts = nested.os.model_dump()
    assert facts["virtual_machine"] or facts["container"]


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
    gpu = Gpu(kind="metal", index=0, name="Apple M2", cores=10)
    mac = machine("Apple M2", (gpu,)).model_copy(
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
    gpus = (
        Gpu(kind="cuda", index=0, name="NVIDIA H200"),
        Gpu(kind="metal", index=0, name="Apple M2 Max", cores=30),
    )
    bare = hardware_name(machine(brand, gpus), device)
    nested = hardware_name(machine(brand, gpus, **system), device)
    assert nested != bare
    assert slug(nested) != slug(bare)


def test_virtual_processors_group_by_the_cores_they_were_given() -> None:
    xeon = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
    assert hardware_name(machine(xeon, cores=2, virtual_machine="kvm"), CPU) == (
        "Intel Xeon Platinum 8481C, 2 cores (virtual machine)"
    )
    two = hardware_name(machine(xeon, cores=2, container="docker"), CPU)
    four = hardware_name(machine(xeon, cores=4, container="docker"), CPU)
    assert two != four


@pytest.mark.parametrize("name", ["", "()", "@ 3 GHz", "CPU", "\u4e2d\u6587", "é" * 200])
def test_any_name_gives_a_slug_and_a_name(name: str) -> None:
    assert slug(clean(name))
    assert hardware_name(machine(name or "x"), CPU)


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        ("linux", "Debian GNU/Linux 12 (bookworm)", "Debian GNU/Linux 12 (bookworm)"),
        ("linux", "Ubuntu 24.04", "linux Ubuntu 24.04"),
        ("macos", "14.6", "macos 14.6"),
    ],
)
def test_a_system_is_named_once(name: str, version: str, words: str) -> None:
    assert OperatingSystem(name=name, version=version).words == words  # type: ignore[arg-type]
