"""Machine facts from recorded outputs of macOS' commands with invented values."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.mac import FakeMac

from bench_agent import machine
from bench_agent.machine import apple, macos
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.hardware import hardware_name
from bench_protocol.payload.machine import Cpu, Gpu, Machine, OperatingSystem

FOLDER = Path(__file__).parents[1] / "fakes" / "apple"
NAMES = sorted(path.name.split(".")[0] for path in FOLDER.glob("*.sysctl.txt"))
PLANTED = ("PLANTED", "5EC2E7ED", "00AA11BB22CC33DD")
METAL, CPU = Device(kind="metal"), Device(kind="cpu")


def kernel(name: str) -> dict[str, str]:
    return apple.parse_sysctl((FOLDER / f"{name}.sysctl.txt").read_text())


def profile(name: str) -> dict[str, Any]:
    return apple.parse_profile((FOLDER / f"{name}.profile.json").read_text())


def ioreg() -> tuple[apple.Accelerator, ...]:
    return apple.parse_accelerators((FOLDER / "m3max.ioreg.txt").read_text())


def machine_from(
    sysctl: dict[str, str],
    profiled: dict[str, Any],
    accelerators: tuple[apple.Accelerator, ...] = (),
    architecture: str = "arm64",
) -> Machine:
    facts = machine.MachineFacts(
        cpu=apple.cpu_from(sysctl, profiled, architecture),
        os=apple.system_from(sysctl, profiled, "26.1", "25.1.0"),
        gpus=apple.gpus_from(sysctl, profiled, accelerators),
        model=apple.model_from(sysctl, profiled),
        memory_bytes=None,
    )
    return machine.make_machine(facts, "0" * 64)


def read(name: str) -> Machine:
    return machine_from(kernel(name), profile(name), ioreg())


@pytest.mark.parametrize(
    ("name", "chip", "gpu_cores", "cpu_cores", "split"),
    [
        ("m1_air_7core", "Apple M1", 7, 8, (4, 4)),
        ("m2pro_two_displays", "Apple M2 Pro", 19, 12, (8, 4)),
        ("m2ultra_macos26", "Apple M2 Ultra", 60, 24, (16, 8)),
        ("m5_super", "Apple M5", 10, 10, (4, 6)),
        ("m5max_super", "Apple M5 Max", 40, 18, (18, 0)),
        ("m3max_no_cores", "Apple M3 Max", 40, 16, (12, 4)),
    ],
)
def test_a_mac_is_named_by_its_chip_and_cores(
    name: str, chip: str, gpu_cores: int, cpu_cores: int, split: tuple[int, int]
) -> None:
    mac, end = read(name), " (fanless)" if "air" in name else ""
    assert hardware_name(mac, METAL) == f"{chip} ({gpu_cores}-core GPU){end}"
    assert hardware_name(mac, CPU) == f"{chip} ({cpu_cores}-core CPU){end}"
    assert (mac.cpu.performance_cores, mac.cpu.efficiency_cores) == split
    assert len(mac.gpus) == 1
    assert mac.gpus[0].unified_memory


@pytest.mark.parametrize(
    ("shape", "cores"),
    [
        ("proc 8:4:4", 8),
        ("proc 24:16:8:0", 24),
        ("proc 12:0:8:4", 12),
        (3, 3),
        ("3", 3),
        ("", None),
    ],
)
def test_only_the_first_number_of_number_processors_counts(shape: Any, cores: int | None) -> None:
    profiled = {"SPHardwareDataType": [{"number_processors": shape, "chip_type": "Apple M9"}]}
    cpu = apple.cpu_from({}, profiled, "arm64")
    assert (cpu.brand, cpu.physical_cores) == ("Apple M9", cores)


def test_a_virtual_mac_is_virtual_and_has_no_split() -> None:
    mac = read("m1_virtual")
    assert mac.os.virtual_machine == "apple"
    assert mac.cpu.performance_cores is None
    assert hardware_name(mac, CPU) == "Apple M1 (3-core CPU) (virtual machine)"
    assert hardware_name(mac, METAL).endswith("(virtual machine)")


def test_rosetta_is_seen_and_groups_with_nothing() -> None:
    mac = machine_from(kernel("m1_rosetta"), profile("m1_rosetta"), (), "x86_64")
    assert mac.os.rosetta
    assert hardware_name(mac, METAL) == "Apple M1 (8-core GPU) (fanless) (Rosetta)"


def test_an_intel_mac_has_no_gpu_that_a_framework_can_use() -> None:
    mac = machine_from(kernel("intel_amd_gpu"), profile("intel_amd_gpu"), (), "x86_64")
    assert (mac.gpus, hardware_name(mac, CPU)) == ((), "Intel Core i9-9980HK")
    assert mac.cpu.instruction_sets == ("avx", "avx2", "fma")


def test_ioreg_gives_cores_and_utilisation_of_each_accelerator() -> None:
    first, second = ioreg()
    assert first == apple.Accelerator("Apple M3 Max", 40, 17)
    assert second == apple.Accelerator("AMD Radeon RX 6800", 60, None)


def test_a_mac_that_tells_nothing_is_still_a_machine() -> None:
    mac = machine_from({}, {})
    assert mac.cpu == Cpu(brand="unknown Apple CPU", architecture="arm64")
    assert mac.os == OperatingSystem(name="macos", version="26.1", kernel="25.1.0")
    assert mac.gpus == ()


def test_without_system_profiler_the_chip_names_the_gpu() -> None:
    sysctl = {"machdep.cpu.brand_string": "Apple M3 Max", "hw.memsize": "1024"}
    memory = {"memory_bytes": 1024, "unified_memory": True}
    expected = Gpu(kind="metal", index=0, name="Apple M3 Max", cores=40, **memory)
    assert apple.gpus_from(sysctl, {}, ioreg()) == (expected,)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["", "\x00\x1b[31m", "9" * 400, "é" * 5000, "-1", "\ud800", "Apple " + "M" * 999]
    ),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@given(data=st.data(), name=st.sampled_from(NAMES))
def test_no_odd_value_raises_and_no_identifier_leaks(data: st.DataObject, name: str) -> None:
    sysctl, profiled = kernel(name), profile(name)
    for _ in range(data.draw(st.integers(0, 3))):
        key = data.draw(st.sampled_from(sorted(sysctl)))
        sysctl[key] = str(data.draw(ODD))
    for _ in range(data.draw(st.integers(0, 3))):
        section = data.draw(st.sampled_from(["SPHardwareDataType", "SPDisplaysDataType"]))
        items = profiled.get(section)
        if data.draw(st.booleans()) and isinstance(items, list) and items:
            item = items[0]
            if isinstance(item, dict):
                item[data.draw(st.sampled_from(sorted(item)))] = data.draw(ODD)
        else:
            profiled[section] = data.draw(ODD)
    whole = machine_from(sysctl, profiled, ioreg())
    text = whole.model_dump_json()
    assert Machine.model_validate_json(text) == whole
    assert not [planted for planted in PLANTED if planted.lower() in text.lower()]


@given(st.text(max_size=300))
def test_any_text_is_parsed(text: str) -> None:
    apple.parse_accelerators(text)
    apple.parse_sysctl(text)
    assert isinstance(apple.parse_profile(text), dict)


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMac:
    return FakeMac(tmp_path, monkeypatch)


@pytest.mark.parametrize("ends_at_first", [False, True])
def test_names_unknown_to_sysctl_cost_no_other_value(mac: FakeMac, ends_at_first: bool) -> None:
    mac.sysctl((FOLDER / "m5max_super.sysctl.txt").read_text(), ends_at_first=ends_at_first)
    cpu = macos.cpu()
    assert (cpu.brand, cpu.physical_cores, cpu.performance_cores) == ("Apple M5 Max", 18, 18)
    assert macos.memory_bytes() == 51539607552


def test_a_sysctl_that_fails_has_still_printed_what_it_knows(mac: FakeMac) -> None:
    mac.command("sysctl", "print('hw.memsize: 7516192768')\nsys.exit(3)")
    assert macos.memory_bytes() == 7516192768


def test_a_mac_without_any_command_is_read_too(mac: FakeMac) -> None:
    assert (macos.gpus(), macos.cpu().brand) == ((), "unknown Apple CPU")


@pytest.mark.parametrize(
    ("kernel_says", "sw_vers", "interpreter", "version"),
    [
        ("26.1", "", "16.0", "26.1"),
        ("", "26.4.1\n", "16.4", "26.4.1"),
        ("", "", "16.0", ""),
        ("", "", "10.16", ""),
        ("", "sw_vers: not permitted", "14.6", "14.6"),
    ],
)
def test_an_old_sdks_version_of_macos_is_none(
    monkeypatch: pytest.MonkeyPatch, kernel_says: str, sw_vers: str, interpreter: str, version: str
) -> None:
    monkeypatch.setattr(macos, "sysctl", lambda: {"kern.osproductversion": kernel_says})
    monkeypatch.setattr(macos, "command_output", lambda *_: sw_vers)
    monkeypatch.setattr("platform.mac_ver", lambda: (interpreter, ("", "", ""), ""))
    assert macos.version() == version
