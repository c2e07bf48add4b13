"""Doctor's checks of power, clocks, heat and other work, as functions of what is told."""

import pytest
from tests.fakes.findings import only, verdicts

from bench_agent.doctor import quiet
from bench_agent.doctor.quiet import Governor, GpuUse, Load, Power


def test_power() -> None:
    assert only(quiet.check_power(Power(), "Linux"))[0] == "skip"
    assert only(quiet.check_power(Power(False, False), "Darwin"))[0] == "ok"
    assert verdicts(quiet.check_power(Power(True, True), "Darwin")) == {
        "power.mode": "warn",
        "power.battery": "warn",
    }


@pytest.mark.parametrize(
    ("governor", "verdict", "mend"),
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
def test_governor(governor: Governor | None, verdict: str, mend: str) -> None:
    found, told = only(quiet.check_governor(governor))
    assert found == verdict
    assert mend in told


def test_thermal() -> None:
    assert only(quiet.check_thermal(None, None))[0] == "skip"
    assert only(quiet.check_thermal("nominal", None))[0] == "ok"
    assert only(quiet.check_thermal("heavy", None))[0] == "warn"
    assert only(quiet.check_thermal(None, 0))[0] == "ok"
    assert only(quiet.check_thermal(None, 3))[0] == "warn"


def test_busy() -> None:
    assert only(quiet.check_busy(Load(0.1, 8)))[0] == "ok"
    assert only(quiet.check_busy(Load(7.5, 8, 60.0, ("make", 99.0))))[0] == "warn"
    gpus = (GpuUse("NVIDIA L4", 0), GpuUse("NVIDIA L4", 0, 2), GpuUse("Apple M3 Max", 80))
    assert verdicts(quiet.check_busy(Load(None, 8, gpus=gpus))) == {
        "busy": "ok",
        "busy.gpu0": "ok",
        "busy.gpu1": "warn",
        "busy.gpu2": "warn",
    }


def test_what_macos_says_of_power_and_heat() -> None:
    battery = "Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t81%; discharging\n"
    assert quiet.parse_battery(battery) is True
    assert quiet.parse_battery(battery.replace("Battery Power", "AC Power")) is False
    assert quiet.parse_battery("Now drawing from 'AC Power'\n") is None
    assert quiet.parse_low_power("Currently in use:\n lowpowermode         1\n") is True
    assert quiet.parse_low_power(" sleep 1\n") is None
    assert quiet.parse_thermal("com.apple.system.thermalpressurelevel 2\n", "") == "heavy"
    assert quiet.parse_thermal("", "Note: No thermal warning level has been recorded") == "nominal"
    assert quiet.parse_thermal("", "2027-01-01 Thermal Warning Level = 60") == "heavy"
    assert quiet.parse_thermal("", "CPU_Speed_Limit \t= 48\n") == "moderate"
    assert quiet.parse_thermal("", "") is None
    assert quiet.parse_pressure("some avg10=12.50 avg60=1 avg300=1 total=9\nfull ...") == 12.5
