"""Intel's and AMD's energy counters in Linux (Documentation/power/powercap).

Since CVE-2020-8694 most systems let only administrators read them. The agent asks for no such
rights: if it may not read them, it reports no energy and gives the reason.
"""

import re
from pathlib import Path

from bench_protocol.payload.readings import EnergySource

from ...machine.text import file_text, whole_or_none
from .meter import Counters, MeterProblem

PACKAGE = "cpu_package"


class Rapl:
    """Sum over the processor packages, and over the memory beside them where it is counted.

    Raises:
        MeterProblem: there are no counters, or no right to read them.
    """

    source: EnergySource = "rapl"
    scope = PACKAGE

    def __init__(self, root: Path = Path("/")) -> None:
        folder = root / "sys/class/powercap"
        zones = sorted(folder.glob("intel-rapl:*")) if folder.is_dir() else []
        self._zones = [(zone, scope) for zone in zones if (scope := _scope(zone))]
        if not any(scope == PACKAGE for _, scope in self._zones):
            raise MeterProblem("this system shows no RAPL counters")
        self._last_uj: dict[Path, int] = {}
        self._total_uj: dict[str, int] = {scope: 0 for _, scope in self._zones}
        self.read()

    def read(self) -> Counters:
        for zone, scope in self._zones:
            now = _counter(zone)
            step = now - self._last_uj.get(zone, now)
            if step < 0:  # the counter started again at zero
                range_uj = whole_or_none(file_text(zone / "max_energy_range_uj").strip()) or 0
                step += range_uj
                if not 0 <= step <= range_uj // 2:
                    raise MeterProblem(f"RAPL counter of {zone.name} fell far from its end")
            self._last_uj[zone] = now
            self._total_uj[scope] += step
        return {scope: total // 1000 for scope, total in self._total_uj.items()}

    def close(self) -> None:
        pass


def _scope(zone: Path) -> str | None:
    """Packages and their memory. ``core`` and ``uncore`` are parts of one; ``psys`` is wider."""
    name = file_text(zone / "name").strip()
    if re.fullmatch(r"package-[0-9]{1,3}(-die-[0-9]{1,3})?", name):
        return PACKAGE
    return "dram" if name == "dram" else None


def _counter(zone: Path) -> int:
    try:
        text = (zone / "energy_uj").read_text().strip()
    except PermissionError as error:
        raise MeterProblem("RAPL counters are for administrators only on this system") from error
    except OSError as error:
        raise MeterProblem(f"RAPL counter of {zone.name}: {error.strerror}") from error
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise MeterProblem(f"RAPL counter of {zone.name} is not a number")
    return int(text)
