"""Parse macOS' commands about power and heat. Pure: each function takes a command's output."""

import re

THERMAL_LEVELS = ("nominal", "moderate", "heavy", "critical", "sleeping")
POWER_MODES = {"0": "automatic", "1": "low-power", "2": "high-power"}


def parse_battery(text: str) -> bool | None:
    """Whether a Mac is on battery, from ``pmset -g batt``; None without a battery."""
    match = re.search(r"Now drawing from '([^'\n]+)'", text)
    if match is None or "InternalBattery" not in text:
        return None
    return match.group(1) == "Battery Power"


def parse_power_mode(text: str) -> tuple[bool | None, str | None]:
    """Whether low-power mode is on, and the name of the power mode, from ``pmset -g``. Only Macs
    with High Power Mode print ``powermode``, and then no ``lowpowermode``."""
    if match := re.search(r"^\s*powermode\s+([0-9])\b", text, re.MULTILINE):
        name = POWER_MODES.get(match.group(1))
        return None if name is None else name == "low-power", name
    match = re.search(r"^\s*lowpowermode\s+([01])\b", text, re.MULTILINE)
    return (None if match is None else match.group(1) == "1"), None


def parse_thermal(text: str) -> str | None:
    """Thermal pressure from ``notifyutil -g com.apple.system.thermalpressurelevel``."""
    match = re.search(r"thermalpressurelevel\s+([0-9])\b", text)
    level = int(match[1]) if match else len(THERMAL_LEVELS)
    return THERMAL_LEVELS[level] if level < len(THERMAL_LEVELS) else None
