"""CPU topology: cores, kinds of cores and clocks from ``/sys/devices/system/cpu``."""

import re
from dataclasses import dataclass
from pathlib import Path

from bench_protocol.payload.readings import possible

from .text import file_text, whole_or_none

MOST_CPUS = 4096
# Clocks in /sys are in kHz.
KHZ_PER_MHZ = 1000


@dataclass(frozen=True)
class Topology:
    """Counts of cores; None if unknown. Only hybrid processors have the split.

    ``performance`` and ``efficiency`` count physical cores; where there are three kinds (Arm), all
    but the fastest are efficiency cores.
    """

    physical: int | None = None
    logical: int | None = None
    sockets: int | None = None
    performance: int | None = None
    efficiency: int | None = None
    maximum_clock_mhz: int | None = None


def read_topology(root: Path) -> Topology:
    base = root / "sys/devices/system/cpu"
    online = parse_list(file_text(base / "online"))
    present = [number for number in online if (base / f"cpu{number}/topology").is_dir()]
    cores = {number: _core(base / f"cpu{number}/topology", number) for number in present}
    packages = {_line(base / f"cpu{n}/topology/physical_package_id") for n in present} - {"", "-1"}
    khz = (whole_or_none(_line(base / f"cpu{n}/cpufreq/cpuinfo_max_freq")) or 0 for n in online)
    clocks = [clock for clock in khz if possible("mhz", clock // KHZ_PER_MHZ)]
    performance, efficiency = _split(root, base, cores)
    return Topology(
        physical=len(set(cores.values())) or None,
        logical=len(online) or None,
        sockets=len(packages) or None,
        performance=performance,
        efficiency=efficiency,
        maximum_clock_mhz=whole_or_none(max(clocks, default=0) // KHZ_PER_MHZ),
    )


def parse_list(text: str) -> list[int]:
    """Parse a list in the kernel's form: ``0-3,8`` is 0, 1, 2, 3, 8."""
    numbers: list[int] = []
    for part in text.strip().split(","):
        ends = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part.strip())
        if ends:
            first, last = int(ends.group(1)), int(ends.group(2) or ends.group(1))
            numbers += range(first, min(last, first + MOST_CPUS) + 1)
    return sorted(set(numbers))[:MOST_CPUS]


def _core(topology: Path, number: int) -> str:
    """The key that threads of one core share."""
    return (
        _line(topology / "core_cpus_list")
        or _line(topology / "thread_siblings_list")
        or f"cpu {number}"
    )


def _split(root: Path, base: Path, cores: dict[int, str]) -> tuple[int | None, int | None]:
    """Numbers of performance and efficiency cores, from Intel's names or Arm's capacities; None
    where these are not all cores."""
    fast = parse_list(file_text(root / "sys/devices/cpu_core/cpus"))
    slow = [
        number
        for kind in ("atom", "lowpower")
        for number in parse_list(file_text(root / f"sys/devices/cpu_{kind}/cpus"))
    ]
    if not (fast and slow):
        capacity = {
            number: whole_or_none(_line(base / f"cpu{number}/cpu_capacity")) or 0
            for number in cores
        }
        # Cores of one kind may differ by one or two per cent, as their maximum clocks do.
        top = 0.9 * max(capacity.values(), default=0)
        fast = [number for number, value in capacity.items() if value and value >= top]
        slow = [number for number, value in capacity.items() if 0 < value < top]
    performance, efficiency = (
        len({cores[number] for number in numbers if number in cores}) for numbers in (fast, slow)
    )
    whole = fast and slow and performance + efficiency == len(set(cores.values()))
    return (performance, efficiency) if whole else (None, None)


def _line(path: Path) -> str:
    return file_text(path).strip()
