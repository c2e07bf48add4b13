"""Sensors: power, heat and load from the system's texts."""

from pathlib import Path

import pytest
from tests.fakes.mac import FakeMac

from bench_agent.doctor import system
from bench_agent.machine import apple_state, sensors
from bench_agent.run import idle_gate
from bench_protocol.catalogue.matrix import Device

PMSET = """System-wide power settings:
Currently in use:
 standby              1
 Sleep On Power Button 1
 hibernatefile        /var/vm/sleepimage
 {line}
 sleep                1 (sleep prevented by caffeinate)
"""


def test_what_macos_says_of_power_and_heat() -> None:
    battery = "Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t81%; discharging\n"
    assert apple_state.parse_battery(battery) is True
    assert apple_state.parse_battery(battery.replace("Battery Power", "AC Power")) is False
    assert apple_state.parse_battery("Now drawing from 'AC Power'\n") is None
    level = "com.apple.system.thermalpressurelevel"
    said = [apple_state.parse_thermal(f"{level} {number}\n") for number in (0, 2, 9, "")]
    assert said == ["nominal", "heavy", None, None]


@pytest.mark.parametrize(
    ("line", "low", "mode"),
    [
        ("lowpowermode         0", False, None),
        ("lowpowermode         1", True, None),
        ("powermode            0", False, "automatic"),
        ("powermode            1", True, "low-power"),
        ("powermode            2", False, "high-power"),
        ("powermode            7", None, None),
        ("womp                 1", None, None),
    ],
)
def test_the_power_mode_of_a_mac(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, low: bool | None, mode: str | None
) -> None:
    monkeypatch.setattr(sensors, "governor", lambda: None)
    FakeMac(tmp_path, monkeypatch).prints("pmset", PMSET.format(line=line))
    conditions = idle_gate.look(Device(kind="cpu"), "Darwin")
    assert (conditions.low_power_mode, conditions.cpu_governor) == (low, mode)
    (finding,) = system.check_power(sensors.Power(False, low, mode), "Darwin")
    assert finding.verdict == ("warn" if low else "ok")
    if low:
        assert finding.hint == f"sudo pmset -a {line.split()[0]} 0"
    assert ("High Power Mode" in finding.sentence) == (mode == "high-power")


@pytest.mark.parametrize(
    ("power", "words"),
    [
        (sensors.Power(None, False), "no low-power mode"),
        (sensors.Power(False, None), "on mains power"),
        (sensors.Power(False, False), "on mains power, no low-power mode"),
    ],
)
def test_only_what_was_read_is_said_of_power(power: sensors.Power, words: str) -> None:
    (finding,) = system.check_power(power, "Linux")
    assert (finding.verdict, finding.sentence) == ("ok", words)
