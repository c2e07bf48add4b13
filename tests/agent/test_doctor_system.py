"""Doctor's checks of Python, the system, its load, and TensorFlow's pairs, as pure functions."""

from collections.abc import Mapping

import pytest
from tests.fakes.findings import only, verdicts

from bench_agent.doctor import gpu, system
from bench_agent.doctor.frameworks import Software, at_least, release
from bench_agent.machine.sensors import Governor, GpuUse, Load, Power


@pytest.mark.parametrize(
    ("packages", "verdict", "hint"),
    [
        ({"tensorflow": "2.18.1", "tensorflow-metal": "1.2.0", "numpy": "2.0.2"}, "ok", ""),
        ({"tensorflow": "2.19.1", "tensorflow-metal": "1.2.0", "numpy": "2.1.3"}, "ok", ""),
        (
            {"tensorflow": "2.18.1", "tensorflow-metal": "1.2.0", "numpy": "2.1.3"},
            "warn",
            "'numpy<2.1'",
        ),
        (
            {"tensorflow": "2.19.0", "tensorflow-metal": "1.2.0", "numpy": "2.2.0"},
            "warn",
            "'numpy<2.2'",
        ),
        ({"tensorflow": "2.20.0", "tensorflow-metal": "1.2.0"}, "fail", "'tensorflow>=2.18,<2.20'"),
        ({"tensorflow": "2.21.0rc1", "tensorflow-metal": "1.2.0"}, "fail", "<2.20"),
        (
            {"tensorflow": "2.21.0", "tensorflow-metal": "1.1.0"},
            "fail",
            "<2.20' tensorflow-metal==1.2.0",
        ),
        ({"tensorflow": "2.18.0", "tensorflow-metal": "1.1.0"}, "fail", "tensorflow-metal==1.2.0"),
        ({"tensorflow": "2.16.2", "tensorflow-metal": "1.2.0"}, "warn", "tensorflow>=2.18"),
        ({"tensorflow": "odd", "tensorflow-metal": "1.2.0"}, "warn", "tensorflow>=2.18"),
        ({"tensorflow-metal": "1.2.0"}, "fail", "tensorflow>=2.18,<2.20"),
        ({"tensorflow": "2.19.1"}, "warn", "tensorflow-metal==1.2.0"),
        ({"tensorflow": "2.21.0"}, "warn", "tensorflow>=2.18,<2.20"),
        ({}, "skip", ""),
    ],
)
def test_pairs_of_tensorflow_and_its_plug_in(
    packages: Mapping[str, str], verdict: str, hint: str
) -> None:
    actual, actual_hint = only(gpu.check_pair(Software(packages), apple_silicon=True))
    assert actual == verdict
    assert hint in actual_hint


def test_elsewhere_no_plug_in_is_missed() -> None:
    assert (
        only(gpu.check_pair(Software({"tensorflow": "2.21.0"}), apple_silicon=False))[0] == "skip"
    )


@pytest.mark.parametrize(
    ("version", "name", "machine", "verdict"),
    [
        ((3, 11), "Linux", "x86_64", "ok"),
        ((3, 12), "Darwin", "arm64", "ok"),
        ((3, 13), "Darwin", "arm64", "warn"),
        ((3, 14), "Linux", "aarch64", "warn"),
    ],
)
def test_python(version: tuple[int, int], name: str, machine: str, verdict: str) -> None:
    actual, hint = only(system.check_python(version, name, machine))
    assert actual == verdict
    assert verdict == "ok" or "--python 3.12" in hint


def test_architecture() -> None:
    check = system.check_architecture
    assert only(check("Darwin", "x86_64", rosetta=True))[0] == "fail"
    assert only(check("Darwin", "arm64", rosetta=False))[0] == "ok"
    assert only(check("Linux", "aarch64", rosetta=False))[0] == "ok"
    assert verdicts(check("Darwin", "x86_64", rosetta=False)) == {"": "warn"}
    assert verdicts(check("Linux", "riscv64", rosetta=False)) == {"": "warn"}


@pytest.mark.parametrize(
    ("name", "wsl", "version", "verdict", "hint"),
    [
        ("Windows", None, (), "fail", "wsl --install"),
        ("Linux", 1, (), "fail", "--set-version"),
        ("Linux", 2, (), "ok", ""),
        ("Linux", None, (), "ok", ""),
        ("Darwin", None, (13, 6), "warn", "softwareupdate"),
        ("Darwin", None, (15, 7), "ok", ""),
        ("Darwin", None, (26,), "warn", "softwareupdate"),
        ("Darwin", None, (26, 1), "warn", "softwareupdate"),
        ("Darwin", None, (26, 2), "ok", ""),
    ],
)
def test_system(
    name: str, wsl: int | None, version: tuple[int, ...], verdict: str, hint: str
) -> None:
    actual, actual_hint = only(system.check_system(name, wsl, version))
    assert actual == verdict
    assert hint in actual_hint


def test_glibc() -> None:
    assert only(system.check_glibc("Linux", (2, 36)))[0] == "ok"
    assert only(system.check_glibc("Linux", (2, 31)))[0] == "warn"
    assert only(system.check_glibc("Linux", ()))[0] == "fail"
    assert only(system.check_glibc("Darwin", ()))[0] == "skip"


def test_versions() -> None:
    assert release("2.19.1rc0+cu12") == (2, 19, 1)
    assert at_least("580.65.06", "580")
    assert not at_least("550.54", "550.54.14")
    assert not at_least("odd", "1")


def test_power() -> None:
    assert only(system.check_power(Power(), "Linux"))[0] == "skip"
    assert only(system.check_power(Power(False, False), "Darwin"))[0] == "ok"
    assert verdicts(system.check_power(Power(True, True), "Darwin")) == {
        "mode": "warn",
        "battery": "warn",
    }


@pytest.mark.parametrize(
    ("governor", "verdict", "hint"),
    [
        (None, "skip", ""),
        (Governor("performance", "acpi-cpufreq"), "ok", ""),
        (Governor("schedutil", "cppc_cpufreq"), "ok", ""),
        (Governor("powersave", "intel_pstate", "balance_performance"), "ok", ""),
        (Governor("powersave", "intel_pstate", "power"), "warn", "balance_performance"),
        (Governor("powersave", "acpi-cpufreq"), "warn", "scaling_governor"),
        (Governor("performance", "intel_pstate", turbo=False), "warn", "no_turbo"),
    ],
)
def test_governor(governor: Governor | None, verdict: str, hint: str) -> None:
    actual, actual_hint = only(system.check_governor(governor))
    assert actual == verdict
    assert hint in actual_hint


def test_energy() -> None:
    assert only(system.check_energy("nvml", None, "Linux"))[0] == "ok"
    findings = list(system.check_energy(None, "RAPL counters are for administrators only", "Linux"))
    assert (findings[0].verdict, findings[0].hint) == ("skip", None)
    assert "administrators" in findings[0].sentence
    verdict, hint = only(system.check_energy(None, "zeus-apple-silicon is not installed", "Darwin"))
    assert verdict == "warn"
    assert hint.endswith("locks/energy.txt")


def test_busy() -> None:
    assert only(system.check_busy(Load(0.1, 8)))[0] == "ok"
    assert only(system.check_busy(Load(7.5, 8, 60.0, ("make", 99.0))))[0] == "warn"
    gpus = (GpuUse("NVIDIA L4", 0), GpuUse("NVIDIA L4", 0, 2), GpuUse("Apple M3 Max", 80))
    _, one = system.check_busy(Load(None, 8, gpus=(GpuUse("NVIDIA L4", 0, 1),)))
    assert one.sentence == "NVIDIA L4 is 0 % busy, used by 1 process"
    assert verdicts(system.check_busy(Load(None, 8, gpus=gpus))) == {
        "": "ok",
        "gpu0": "ok",
        "gpu1": "warn",
        "gpu2": "warn",
    }
