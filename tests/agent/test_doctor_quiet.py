"""Doctor's checks of power, clocks, heat and other load, as pure functions."""

import pytest
from tests.fakes.findings import only, verdicts

from bench_agent.doctor import quiet
from bench_agent.machine.sensors import Governor, GpuUse, Load, Power


def test_power() -> None:
    assert only(quiet.check_power(Power(), "Linux"))[0] == "skip"
    assert only(quiet.check_power(Power(False, False), "Darwin"))[0] == "ok"
    assert verdicts(quiet.check_power(Power(True, True), "Darwin")) == {
        "power.mode": "warn",
        "power.battery": "warn",
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
    actual, actual_hint = only(quiet.check_governor(governor))
    assert actual == verdict
    assert hint in actual_hint


def test_thermal() -> None:
    assert only(quiet.check_thermal(None, None))[0] == "skip"
    assert only(quiet.check_thermal("nominal", None))[0] == "ok"
    assert only(quiet.check_thermal("heavy", None))[0] == "warn"
    assert only(quiet.check_thermal(None, 0))[0] == "ok"
    assert only(quiet.check_thermal(None, 3))[0] == "warn"


def test_energy() -> None:
    assert only(quiet.check_energy("nvml", None, "Linux"))[0] == "ok"
    findings = list(quiet.check_energy(None, "RAPL counters are for administrators only", "Linux"))
    assert (findings[0].verdict, findings[0].hint) == ("skip", None)
    assert "administrators" in findings[0].sentence
    verdict, hint = only(quiet.check_energy(None, "zeus-apple-silicon is not installed", "Darwin"))
    assert verdict == "warn"
    assert hint.endswith("agent[energy]'")


def test_busy() -> None:
    assert only(quiet.check_busy(Load(0.1, 8)))[0] == "ok"
    assert only(quiet.check_busy(Load(7.5, 8, 60.0, ("make", 99.0))))[0] == "warn"
    gpus = (GpuUse("NVIDIA L4", 0), GpuUse("NVIDIA L4", 0, 2), GpuUse("Apple M3 Max", 80))
    _, one = quiet.check_busy(Load(None, 8, gpus=(GpuUse("NVIDIA L4", 0, 1),)))
    assert one.sentence == "NVIDIA L4 is 0 % busy, used by 1 process"
    assert verdicts(quiet.check_busy(Load(None, 8, gpus=gpus))) == {
        "busy": "ok",
        "busy.gpu0": "ok",
        "busy.gpu1": "warn",
        "busy.gpu2": "warn",
    }
