"""Peaks and bounds of devices: sources, formulas against vendors' figures, honest rates below."""

from typing import Any

import pytest
from tests.fakes import results

from bench_protocol.catalogue import peaks
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload import device_bounds
from bench_protocol.payload.machine import Cpu, Gpu, Machine

CPU, METAL, CUDA = (Device(kind=kind) for kind in ("cpu", "metal", "cuda"))
# Multiprocessors, compute capability and boost clock in MHz of cards with a stated peak.
STATED = {
    "NVIDIA H100 80GB HBM3": (132, "9.0", 1980),
    "NVIDIA B200": (148, "10.0", 1965),
    "NVIDIA A100-SXM4-40GB": (108, "8.0", 1410),
    "NVIDIA A10": (72, "8.6", 1695),
    "NVIDIA L4": (58, "8.9", 2040),
    "NVIDIA L40S": (142, "8.9", 2520),
    "NVIDIA T4": (40, "7.5", 1590),
    "NVIDIA Tesla V100-SXM2-16GB": (80, "7.0", 1530),
    "NVIDIA GeForce RTX 3090": (82, "8.6", 1695),
    "NVIDIA GH200 480GB": (132, "9.0", 1980),
    "NVIDIA GeForce RTX 4090": (128, "8.9", 2520),
    "NVIDIA GeForce RTX 5050": (20, "12.0", 2572),
    "NVIDIA GeForce RTX 5060 Ti": (36, "12.0", 2572),
    "NVIDIA GeForce RTX 5080": (84, "12.0", 2617),
    "NVIDIA GeForce RTX 5090": (170, "12.0", 2407),
}
# Model of Mac's chip, its GPU cores: float32 TFLOP/s of the table before formulas.
APPLE = {
    ("Apple M1", 8): 2.617,
    ("Apple M1 Pro", 14): 4.645,
    ("Apple M1 Ultra", 64): 21.234,
    ("Apple M2", 10): 3.579,
    ("Apple M2 Max", 38): 13.6,
    ("Apple M2 Ultra", 76): 27.199,
    ("Apple M3", 10): 3.579,
    ("Apple M3 Max", 40): 14.131,
    ("Apple M4", 10): 4.040,
    ("Apple M4 Pro", 20): 8.079,
    ("Apple M5", 10): 4.454,
}


def cpu_machine(brand: str = "Intel Xeon", **overrides: Any) -> Machine:
    fields = {"brand": brand, "architecture": "x86_64", "physical_cores": 2} | overrides
    return results.make_machine().model_copy(update={"cpu": Cpu(**fields)})


def cpu_teraflops(machine: Machine, precision: Any = "float32") -> float:
    bound = device_bounds.of_device(machine, CPU, precision)
    assert bound is not None
    return bound.flops / 1e12


def gpu_bound(precision: Any = "float32", **fields: Any) -> float | None:
    gpu = Gpu(index=0, **fields)
    machine = results.make_machine().model_copy(update={"gpus": (gpu,)})
    bound = device_bounds.of_device(machine, Device(kind=gpu.kind), precision)
    return bound and bound.flops / 1e12


def test_every_figure_has_a_source() -> None:
    table = peaks.table()
    for name, entry in table["hardware"].items():
        assert entry["source"], name
        assert entry["checked_at"].startswith("https://"), name
        assert set(entry["teraflops"]) <= {"float32", "tf32", "mixed_float16", "mixed_bfloat16"}
        assert peaks.peak_flops(name, "float32") == entry["teraflops"]["float32"] * 1e12
        assert peaks.peak_flops(f"{name} (container)", "float32") is not None
    assert peaks.peak_flops("NVIDIA GeForce RTX 3090 Ti", "float32") is None
    bounds = table["bounds"]
    sections = [table["apple_gpus"], *table["apple_gpus"]["clocks_mhz"].values(), *bounds.values()]
    assert all(section["source"] for section in [*sections, *bounds["cpu"]["units"]])


@pytest.mark.parametrize(("chip", "teraflops"), APPLE.items())
def test_apples_peaks_follow_from_cores_and_clock(chip: tuple[str, int], teraflops: float) -> None:
    name = f"{chip[0]} ({chip[1]}-core GPU)"
    assert peaks.peak_flops(name, "float32") == pytest.approx(teraflops * 1e12, rel=1e-3)
    assert peaks.peak_flops(f"{name} (virtual machine)", "float32") is not None
    assert peaks.peak_flops(name, "mixed_float16") is None
    assert gpu_bound(kind="metal", name=chip[0], cores=chip[1]) == pytest.approx(
        teraflops, rel=1e-3
    )


@pytest.mark.parametrize(
    ("chip", "cores", "precision", "teraflops"),
    [
        ("Apple M3 Pro", 18, "float32", 9.216),
        ("Apple M3 Ultra", 80, "float32", 40.96),
        ("Apple M4 Max", 40, "mixed_float16", 40.96),
        ("Apple M5 Max", 40, "float32", 20.48),
        ("Apple M5", 10, "mixed_float16", None),
        ("Apple M5", 10, "tf32", None),
        ("Apple M6", 10, "float32", None),
    ],
)
def test_chips_without_a_known_clock_have_a_bound_and_no_peak(
    chip: str, cores: int, precision: str, teraflops: float | None
) -> None:
    assert peaks.peak_flops(f"{chip} ({cores}-core GPU)", precision) is None
    assert gpu_bound(precision, kind="metal", name=chip, cores=cores) == pytest.approx(teraflops)


@pytest.mark.parametrize("name", STATED)
def test_the_formula_of_multiprocessors_gives_stated_peaks(name: str) -> None:
    """Within the margin of the check. GeForce cards halve half precision with 32-bit sums."""
    cores, capability, mhz = STATED[name]
    for precision, stated in peaks.table()["hardware"][name]["teraflops"].items():
        card = {"cores": cores, "compute_capability": capability, "maximum_clock_mhz": mhz}
        derived = gpu_bound(precision, kind="cuda", name="NVIDIA Unlisted", **card)
        halved = "GeForce" in name and precision != "float32"
        assert derived is not None
        assert stated / 1.02 <= derived <= stated * (2.02 if halved else 1.1)


def test_a_peak_at_a_boost_clock_is_no_bound_of_a_card_that_runs_faster() -> None:
    """A GeForce RTX 5090 at 2,850 MHz: 97 % of what its tensor cores can, above 1.1 peaks."""
    name, measured = "NVIDIA GeForce RTX 5090", 0.97 * 209.5 * 2850 / 2407
    told = {"cores": 170, "compute_capability": "12.0"}
    bounds = [
        gpu_bound("mixed_bfloat16", kind="cuda", name=name, maximum_clock_mhz=mhz, **told)
        for mhz in (None, 2100, 2407, 3090)
    ]
    assert bounds == pytest.approx([209.5, 209.5, 209.5, 209.5 * 3090 / 2407])
    assert bounds[0] is not None
    assert bounds[-1] is not None
    assert 1.1 * bounds[0] < measured < bounds[-1]


H100 = {"cores": 132, "compute_capability": "9.0", "maximum_clock_mhz": 1980}
GB10 = {"cores": 48, "compute_capability": "12.1", "maximum_clock_mhz": 3003}
UNLISTED = "NVIDIA Unlisted"


@pytest.mark.parametrize(
    ("name", "precision", "card", "bound"),
    [
        # A card of a data centre has the stated peak at any clock.
        ("NVIDIA H100 NVL", "float32", H100 | {"maximum_clock_mhz": 9000}, 60),
        # The tensor cores of a GB10 are bound by its multiprocessors.
        ("NVIDIA GB10", "float32", GB10, 31),
        ("NVIDIA GB10", "mixed_bfloat16", GB10, pytest.approx(48 * 1024 * 3.003e-3)),
        # A card that tells too little has no bound.
        *((UNLISTED, "float32", H100 | {unknown: None}, None) for unknown in H100),
        (UNLISTED, "float32", H100 | {"compute_capability": "99.0"}, None),
    ],
)
def test_the_bound_of_a_card(
    name: str, precision: str, card: dict[str, Any], bound: float | None
) -> None:
    assert gpu_bound(precision, kind="cuda", name=name, **card) == bound


@pytest.mark.parametrize(
    ("machine", "device", "precision"),
    [
        (results.make_machine(), CUDA, "float32"),
        (results.make_machine(), METAL, "float32"),
        (cpu_machine(architecture="riscv64"), CPU, "float32"),
        (cpu_machine(), CPU, "tf32"),
        (cpu_machine(physical_cores=None), CPU, "float32"),
    ],
)
def test_what_is_not_known_has_no_bound(machine: Machine, device: Device, precision: Any) -> None:
    assert device_bounds.of_device(machine, device, precision) is None


@pytest.mark.parametrize(
    ("flags", "float32", "bfloat16"),
    [
        (("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16"), 64, 1024),
        (("avx2", "fma", "avx512f"), 64, 128),
        (("avx2", "fma"), 32, 32),
        (("avx",), 16, 16),
        (("sse4_2",), 8, 8),
        ((), 64, 1024),
    ],
)
def test_a_processors_bound_follows_from_its_instructions(
    flags: tuple[str, ...], float32: int, bfloat16: int
) -> None:
    """Two cores at 6.2 GHz. Without a list of instructions it is the widest."""
    machine = cpu_machine(instruction_sets=flags)
    assert cpu_teraflops(machine) == pytest.approx(2 * float32 * 6.2e-3)
    assert cpu_teraflops(machine, "mixed_bfloat16") == pytest.approx(2 * bfloat16 * 6.2e-3)


def test_threads_count_as_cores_in_a_virtual_machine() -> None:
    machine = cpu_machine(logical_cores=4, instruction_sets=("avx2",))
    assert cpu_teraflops(machine) == pytest.approx(2 * 32 * 6.2e-3)
    virtual = machine.os.model_copy(update={"virtual_machine": "kvm"})
    inside = machine.model_copy(update={"os": virtual})
    assert cpu_teraflops(inside) == pytest.approx(4 * 32 * 6.2e-3)


@pytest.mark.parametrize(
    ("machine", "measured_teraflops"),
    [
        # NumPy and TensorFlow: the largest matrix products of this project's own measurements.
        (cpu_machine(instruction_sets=("avx2", "avx512f", "amx_bf16")), 0.449),
        # A matrix unit and a half of FP32 outer products: 8 cores at 3.2 GHz, two clusters.
        (cpu_machine("Apple M1", architecture="arm64", physical_cores=8), 2 * 512 * 3.2e-3),
        (cpu_machine("AWS Graviton4", architecture="aarch64", physical_cores=96), 96 * 32 * 2.8e-3),
    ],
)
def test_honest_processors_are_below(machine: Machine, measured_teraflops: float) -> None:
    assert measured_teraflops < cpu_teraflops(machine) < 20 * measured_teraflops
