"""Sensors: power, heat and load from the system's texts."""

from bench_agent.machine import apple_state, sensors


def test_what_macos_says_of_power_and_heat() -> None:
    battery = "Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t81%; discharging\n"
    assert apple_state.parse_battery(battery) is True
    assert apple_state.parse_battery(battery.replace("Battery Power", "AC Power")) is False
    assert apple_state.parse_battery("Now drawing from 'AC Power'\n") is None
    assert apple_state.parse_low_power("Currently in use:\n lowpowermode         1\n") is True
    assert apple_state.parse_low_power(" sleep 1\n") is None
    assert apple_state.parse_thermal("com.apple.system.thermalpressurelevel 2\n", "") == "heavy"
    assert (
        apple_state.parse_thermal("", "Note: No thermal warning level has been recorded")
        == "nominal"
    )
    assert apple_state.parse_thermal("", "2027-01-01 Thermal Warning Level = 60") == "heavy"
    assert apple_state.parse_thermal("", "CPU_Speed_Limit \t= 48\n") == "moderate"
    assert apple_state.parse_thermal("", "") is None
    assert sensors.parse_pressure("some avg10=12.50 avg60=1 avg300=1 total=9\nfull ...") == 12.5
