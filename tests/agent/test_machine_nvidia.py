"""NVIDIA GPUs through a fake management library, in the frameworks' order."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.nvml import FakeGpu, FakeNvml, NVMLError, h200

from bench_agent.doctor import gpu as doctor
from bench_agent.machine import _ask_cuda, cuda, nvidia
from bench_agent.run import idle_gate
from bench_agent.run.energy.meter import MeterProblem
from bench_agent.run.energy.nvml import Nvml
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.machine import Gpu


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(*gpus: FakeGpu, listed: list[dict[str, Any]] | None = None, **options: Any) -> FakeNvml:
        fake = FakeNvml(*gpus, **options)
        devices = None if listed is None else cuda.parse_devices(json.dumps(listed))
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        monkeypatch.setattr(cuda, "devices", lambda environ=None: devices)
        return fake

    return put


def listed(gpu: FakeGpu, **fields: Any) -> dict[str, Any]:
    digits = gpu.uuid.partition("-")[2].replace("-", "")
    return {"uuid": digits, "name": "NVIDIA H200", "multiprocessors": 132} | fields


def test_without_a_driver_there_is_nothing(driver: Any) -> None:
    driver(broken="NVML Shared Library Not Found")
    assert nvidia.gpus({}) == ()
    assert nvidia.driver_version() is None
    assert nvidia.why_no_driver() == "NVML Shared Library Not Found"


def test_a_gpu_with_a_strange_name_has_the_reason(driver: Any) -> None:
    driver(h200(0, GetName="NVIDI\u0410 H200"), h200(1, GetName="NVIDIA\u200b H200"))
    reason = "unknown NVIDIA GPU (its name mixes letters of Cyrillic and Latin)"
    assert [gpu.name for gpu in nvidia.gpus({})] == [reason, "NVIDIA H200"]


def test_a_gpu_with_all_its_facts(driver: Any) -> None:
    gpu = h200(1)
    driver(gpu, listed=[listed(gpu)])
    assert nvidia.gpus({}) == (
        Gpu(
            kind="cuda",
            index=0,
            name="NVIDIA H200",
            cores=132,
            memory_bytes=150_000_000_000,
            driver="580.65.06",
            compute_capability="9.0",
            mig=False,
            ecc=True,
            power_limit_watts=650.0,
            default_power_limit_watts=700.0,
            maximum_clock_mhz=1980,
            maximum_memory_clock_mhz=1980,
        ),
    )


JETSON = {"uuid": "a" * 32, "name": "Orin", "memory_bytes": 61_000_000_000, "integrated": 1}
JETSON |= {"multiprocessors": 16, "clock_khz": 1_300_000, "capability": [8, 7]}


@pytest.mark.parametrize(
    "fake",
    [
        {"broken": "NVML Shared Library Not Found"},
        {"broken": "Unknown Error"},
        {"gpus": [], "driver": NVMLError("Not Supported")},  # it starts, and knows of no GPU
        {"gpus": [h200(3)], "driver": NVMLError("Not Supported")},  # it knows of another one
    ],
)
def test_the_cuda_drivers_list_says_which_gpus_there_are(
    driver: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake: dict[str, Any]
) -> None:
    module = tmp_path / "version"
    module.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release\n"
    )
    monkeypatch.setattr(nvidia, "KERNEL_MODULE", module)
    driver(*fake.pop("gpus", []), listed=[JETSON], **fake)
    (gpu,) = nvidia.gpus({})
    assert (gpu.name, gpu.cores, gpu.memory_bytes) == ("Orin", 16, 61_000_000_000)
    assert (gpu.driver, gpu.compute_capability, gpu.unified_memory) == ("540.4.0", "8.7", True)
    assert (gpu.power_limit_watts, gpu.ecc, gpu.mig) == (None, None, None)
    found = doctor.read_nvidia([gpu], {})
    assert found.usable
    (finding,) = doctor.check_driver(found, False, ())
    assert (finding.verdict, "Orin" in finding.sentence) == ("ok", "broken" in fake)
    assert "unknown" in finding.sentence or "broken" not in fake
    with pytest.raises(MeterProblem, match="NVML"):
        Nvml(0)
    conditions = idle_gate.look(Device(kind="cuda"), "Linux")
    assert (conditions.gpu_utilisation_percent, conditions.gpu_processes) == (None, None)


def test_an_impossible_fact_is_none(driver: Any) -> None:
    most = 2**32 - 1
    odd = {"GetEnforcedPowerLimit": most, "GetPowerManagementDefaultLimit": -1}
    fake = h200(1, GetMaxClockInfo=most, GetMemoryInfo=SimpleNamespace(total=2**64 - 1), **odd)
    driver(fake, listed=[listed(fake, clock_khz=2**31 - 1, memory_bytes=9)])
    (gpu,) = nvidia.gpus({})
    assert (gpu.power_limit_watts, gpu.default_power_limit_watts) == (None, None)
    assert (gpu.maximum_clock_mhz, gpu.maximum_memory_clock_mhz) == (None, None)
    assert gpu.memory_bytes == 9


def test_a_gpu_of_nvml_alone_is_none_of_the_frameworks(driver: Any) -> None:
    driver(h200(1), listed=[])
    assert nvidia.gpus({}) == ()
    for environ, hidden in (({}, False), ({"CUDA_VISIBLE_DEVICES": ""}, True)):
        found = doctor.read_nvidia((), environ)
        assert (found.hidden, found.usable) == (hidden, False)
        assert (found.problem == "the CUDA driver lists no GPU") is not hidden


def test_a_gpu_that_supports_no_question_is_still_there(driver: Any) -> None:
    driver(FakeGpu("GPU-1"), driver=NVMLError("Unknown Error"))
    assert nvidia.gpus({}) == (Gpu(kind="cuda", index=0, name="NVIDIA GPU"),)


def test_the_cuda_driver_decides_the_order(driver: Any) -> None:
    slow, fast = h200(1, GetName="NVIDIA L4"), h200(2)
    library = driver(slow, fast, listed=[listed(fast), listed(slow)])
    assert [gpu.name for gpu in nvidia.gpus({})] == ["NVIDIA H200", "NVIDIA L4"]
    assert nvidia.handle_of(library, 0, {}) is fast
    assert nvidia.handle_of(library, 2, {}) is None


def test_without_it_the_variable_is_read(driver: Any) -> None:
    driver(h200(1, GetName="NVIDIA L4"), h200(2))
    gpus = nvidia.gpus({"CUDA_VISIBLE_DEVICES": "1"})
    assert [(gpu.index, gpu.name) for gpu in gpus] == [(0, "NVIDIA H200")]
    assert nvidia.gpus({"CUDA_VISIBLE_DEVICES": ""}) == ()


@pytest.mark.parametrize(
    ("setting", "places"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("-1", []),
        ("2,0", [2, 0]),
        ("1,9,0", [1]),
        ("0,0", [0]),
        ("GPU-b", [1]),
        ("GPU-a", []),
        ("GPU-a1,2", [0, 2]),
        ("NoDevFiles", []),
    ],
)
def test_the_variable_as_cuda_reads_it(setting: str | None, places: list[int]) -> None:
    assert cuda.visible(setting, ["GPU-a1", "GPU-b2", "GPU-a3"]) == places


def test_a_slice_is_named_by_its_profile_and_has_no_power(driver: Any) -> None:
    part = h200(3, GetName="NVIDIA H200 MIG 1g.18gb", IsMigDeviceHandle=1)
    driver(part, listed=[listed(part, multiprocessors=16)])
    (gpu,) = nvidia.gpus({})
    assert (gpu.name, gpu.mig, gpu.mig_profile) == ("NVIDIA H200", True, "1g.18gb")
    assert gpu.power_limit_watts is None
    assert gpu.cores == 16


def test_a_chip_that_shares_the_machines_memory(driver: Any) -> None:
    chip = h200(4, GetName="NVIDIA GB10", GetMemoryInfo=NVMLError("Not Supported"))
    facts = listed(chip, memory_bytes=128_000_000_000, integrated=1, capability=[12, 1])
    driver(chip, listed=[facts])
    (gpu,) = nvidia.gpus({})
    assert gpu.unified_memory
    assert gpu.memory_bytes == 128_000_000_000


def test_identifiers_stay_here(driver: Any) -> None:
    fake = h200(1)
    driver(fake, listed=[listed(fake)])
    text = "".join(gpu.model_dump_json() for gpu in nvidia.gpus({}))
    assert "cafe" not in text
    assert "PLANTED" not in text


ODD = st.one_of(
    st.none(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=300),
    st.binary(max_size=20),
    st.tuples(st.integers(-5, 99), st.none()),
    st.builds(lambda total: SimpleNamespace(total=total), st.integers(-1, 2**70)),
    st.just(NVMLError("Not Supported")),
    st.just(UnicodeDecodeError("utf-8", b"", 0, 1, "x")),
)
QUESTIONS = sorted(h200(1).answers)


@given(
    odd=st.dictionaries(st.sampled_from(QUESTIONS), ODD),
    version=ODD,
    said=st.one_of(st.none(), st.dictionaries(st.text(max_size=9), st.integers(), max_size=2)),
)
def test_no_odd_answer_raises(odd: dict[str, Any], version: Any, said: Any) -> None:
    fake = h200(1, **odd)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pynvml", FakeNvml(fake, driver=version))
        devices = None if said is None else cuda.parse_devices(json.dumps([listed(fake) | said]))
        patch.setattr(cuda, "devices", lambda environ: devices)
        for gpu in nvidia.gpus({}):
            assert Gpu.model_validate_json(gpu.model_dump_json()) == gpu


@given(st.one_of(st.text(max_size=50), st.just("[" * 5000), st.just('[{"capability": [1, null]}]')))
def test_any_text_of_the_script_is_parsed(text: str) -> None:
    assert cuda.parse_devices(text) is None or isinstance(cuda.parse_devices(text), tuple)


def test_a_cuda_driver_that_answers_nothing_still_lists_its_device() -> None:
    questions = ("Get", "GetName", "TotalMem_v2", "GetAttribute")
    driver = SimpleNamespace(**{f"cuDevice{name}": lambda *_: 1 for name in questions})
    (device,) = cuda.parse_devices(json.dumps([_ask_cuda.describe(driver, 0)])) or ()
    assert (device.name, device.memory_bytes, device.multiprocessors) == (None, None, None)
    assert (device.integrated, device.compute_capability) == (False, None)


def test_the_script_ends_quietly_without_a_driver() -> None:
    devices = cuda.devices()
    assert devices is None or isinstance(devices, tuple)
