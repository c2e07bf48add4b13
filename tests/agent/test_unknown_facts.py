"""What cannot be read is unknown, and what was read of something else is not this machine's."""

import os
from collections import namedtuple
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench_agent.machine import cgroup, counters, linux, sensors
from bench_agent.machine.cpuinfo import brand_of, parse_cpuinfo
from bench_agent.machine.text import text_or_none
from bench_agent.machine.topology import read_topology

ARM = "processor\t: {}\nCPU implementer\t: {}\nCPU part\t: {}\n"
CPUS = "sys/devices/system/cpu"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return root


def arm(*kinds: str, name: str = "") -> str:
    named = f"model name\t: {name}\n" if name else ""
    return "".join(ARM.format(n, *kind.split(":")) + named for n, kind in enumerate(kinds))


@pytest.mark.parametrize(
    ("kinds", "name", "lscpu", "brand"),
    [
        (
            ["0x41:0xd07", "0x4e:0x003"],
            "ARMv8 Processor rev 3 (v8l)",
            "",
            "Cortex-A57 and NVIDIA Denver 2",
        ),
        (["0x41:0xd0c"], "AArch64 Processor rev 1 (aarch64)", "", "Neoverse-N1"),
        (["0x41:0xd0c"], "", "BIOS Model name: NotSpecified  CPU @ 2.0GHz", "Neoverse-N1"),
        (["0x41:0xd0c"], "", "BIOS Model name: Ampere(R) Altra(R) Processor", "Neoverse-N1"),
        (["0x99:0x1"], "", "BIOS Model name: Not Specified\nModel name: Odd-1", "Odd-1"),
        (
            ["0x41:0xd81", "0x41:0xd82", "0x41:0xd85"],
            *("", "", "Cortex-X925 and Cortex-X4 and Cortex-A720"),
        ),
        (["0x41:0xd85", "0x41:0xfff"], "", "", "Cortex-X925 and Arm core 0x41:0xfff"),
        (["0x61:0x022", "0x61:0x023"], "", "", "Apple M1"),
        (["0x99:0x1"], "", "BIOS Model name: U1\nModel name: -", "U1"),
        (["0x99:0x1"], "", "Model name: Odd-1\nBIOS Model name: U1 @ 3.0GHz", "U1 @ 3.0GHz"),
        *(
            (["0x99:0x1"], name, f"BIOS Model name: {name}\nModel name: Odd-1", "Odd-1")
            for name in (
                *("To Be Filled By O.E.M.", "Fill By OEM", "Unspecified", "<OUT OF SPEC>", "CPU 0"),
                *("0x0", "00000000", "pc-q35", "virt-8.2", "host", "Virtual CPU version 2.5+"),
                *("QEMU TCG CPU version 2.5+", "Common KVM processor", "ARM-compatible", "arm64"),
            )
        ),
    ],
)
def test_a_processor_is_named_by_all_its_cores_and_no_placeholder(
    kinds: list[str], name: str, lscpu: str, brand: str
) -> None:
    assert brand_of(parse_cpuinfo(arm(*kinds, name=name)), "", lscpu) == brand


@pytest.mark.parametrize("board", ["NVIDIA DGX Spark", "Somebody's Desk AI 1", ""])
def test_one_chip_has_one_name_whatever_the_board_is_called(board: str) -> None:
    assert brand_of(parse_cpuinfo(arm("0x41:0xd85", "0x41:0xd87")), board, "") == "NVIDIA GB10"


def test_a_character_that_the_protocol_refuses_is_left_out_and_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for _ in range(2):
        assert text_or_none("Radeon\u2063\u00a0 780\u202fM\r\n") == "Radeon 780 M"
    said = (
        "a text of this machine has U+2063, which is invisible or reorders text: it is sent without"
    )
    assert capsys.readouterr().err == f"{said}\n"


@pytest.mark.parametrize(
    ("kinds", "split"),
    [
        ({"core": "0-5", "atom": "6-13", "lowpower": "14-15"}, (6, 10)),
        ({"core": "0-5", "atom": "6-13"}, (None, None)),  # of two cores nobody knows the kind
        ({"core": "0-5"}, (None, None)),
        ({"atom": "0-15"}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_kinds_of_cores_are_all_cores_or_unknown(
    tmp_path: Path, kinds: dict[str, str], split: tuple[int | None, int | None]
) -> None:
    files = {f"{CPUS}/cpu{n}/topology/core_cpus_list": str(n) for n in range(16)}
    files |= {f"{CPUS}/online": "0-15"}
    files |= {f"sys/devices/cpu_{kind}/cpus": numbers for kind, numbers in kinds.items()}
    found = read_topology(tree(tmp_path, files))
    assert (found.performance, found.efficiency, found.physical) == (*split, 16)


TREE, DMI = {"proc/device-tree/model": "A board"}, {"sys/class/dmi/id/sys_vendor": "A maker"}


@pytest.mark.parametrize(
    ("files", "sockets"),
    [
        (TREE, None),
        (TREE | DMI, None),
        ({}, None),  # a container does not see the tree
        (DMI, 2),
        ({"proc/cpuinfo": "physical id\t: 0\nphysical id\t: 1\n"}, 2),
        ({"proc/cpuinfo": "physical id\t: 0\n"}, 1),
    ],
)
def test_clusters_of_a_board_are_no_sockets(
    tmp_path: Path, files: dict[str, str], sockets: int | None
) -> None:
    base = {f"{CPUS}/cpu{n}/topology/physical_package_id": str(n // 4) for n in range(8)}
    base |= {f"{CPUS}/online": "0-7", "proc/cpuinfo": arm("0x41:0xd42")}
    assert linux.cpu(tree(tmp_path, base | files)).sockets == sockets


def supply(name: str, **facts: str) -> dict[str, str]:
    return {f"sys/class/power_supply/{name}/{fact}": value for fact, value in facts.items()}


MOUSE = supply("hidpp_battery_0", type="Battery", scope="Device", status="Discharging", online="1")
OWN = {"type": "Battery", "present": "1"}
FALLING = supply("BAT0", **OWN, status="Discharging")


@pytest.mark.parametrize(
    ("files", "on_battery"),
    [
        (MOUSE, None),
        ({}, None),
        (MOUSE | FALLING, True),
        (MOUSE | supply("BAT0", **OWN, status="Charging"), False),
        (supply("BAT1", type="Battery", present="0", status="Discharging"), None),
        (
            supply("macsmc", **OWN, status="Discharging") | supply("ac", type="Mains", online="1"),
            False,
        ),
        (
            supply("BAT0", **OWN, status="Discharging") | supply("ac", type="Mains", online="0"),
            True,
        ),
        (supply("BAT0", **OWN, status="Unknown"), None),
        *(
            (supply("BAT0", **OWN, status=said) | supply("ac", type="Mains", online="0"), on)
            for said, on in (("Full", True), ("Not charging", True), ("Charging", False))
        ),
        (supply("hid-00:11:22-battery", **OWN, status="Discharging"), None),
        (supply("headset", **OWN, scope="device", status="Discharging"), None),
        (supply("ups0", type="UPS", status="Discharging", online="1"), None),
        (FALLING | supply("pad", type="Wireless", online="1"), False),
        (FALLING | supply("ucsi", type="USB_PD", online="2"), False),
        (FALLING | supply("phone", type="USB", scope="Device", online="1"), True),
    ],
)
def test_a_mouse_is_no_battery_of_the_machine(
    tmp_path: Path, files: dict[str, str], on_battery: bool | None
) -> None:
    assert sensors._on_battery(tree(tmp_path, files)) is on_battery


Heat = namedtuple("Heat", "label current high critical")


@pytest.mark.parametrize(
    ("reading", "heat"),
    [
        (Heat("", 45.0, -273.15, -273.15), (45.0, False)),
        (Heat("", 45.0, 40.0, 0.0), (45.0, False)),
        (Heat("", 80.0, 80.0, 100.0), (80.0, False)),
        (Heat("", 97.0, 80.0, 100.0), (97.0, True)),
        (Heat("", -273.15, None, None), (None, False)),
        (Heat("", 50.0, None, None), (50.0, False)),
        (Heat("", 70.0, None, 255.0), (70.0, False)),
        (Heat("", 90.0, None, 65.0), (90.0, False)),  # it runs far above this limit
        (Heat("", 255.0, None, 100.0), (None, False)),
        (Heat("", 0.0, 0.0, 0.0), (None, False)),
    ],
)
def test_a_limit_that_is_not_set_is_none(
    monkeypatch: pytest.MonkeyPatch, reading: Any, heat: tuple[float | None, bool]
) -> None:
    monkeypatch.setattr(
        psutil, "sensors_temperatures", lambda: {"coretemp": [reading]}, raising=False
    )
    assert sensors.cpu_heat() == heat


def mounted(at: str, kind: str = "cgroup2", names: str = "", top: str = "/") -> dict[str, str]:
    return {"proc/self/mountinfo": f"40 39 0:30 {top} /{at} ro - {kind} cgroup rw,{names}"}


def old_quota(folder: str, quota: str) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": quota, f"{folder}/cpu.cfs_period_us": "100000"}


CGROUP, JOINT, ALONE = "sys/fs/cgroup", "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpu"
OLD = mounted(JOINT, "cgroup", "cpu,cpuacct")
USERS = f"{CGROUP}/user.slice/cpu.max"
INNER = f"{CGROUP}/user.slice/user-1.slice/x.scope/cpu.max"
UNIFIED = mounted(f"{CGROUP}/unified")
CONTAINER = mounted(ALONE, "cgroup", "cpu", "/docker/ab")  # its group is mounted as the root
SPACE = mounted("my\\040cg", "cgroup", "cpu")


@pytest.mark.parametrize(
    ("group", "files", "cores"),
    [
        ("4:cpu,cpuacct:/", OLD | old_quota(JOINT, "200000"), 2.0),
        ("0::/a\n4:cpu,cpuacct:/a", OLD | old_quota(f"{JOINT}/a", "300000"), 3.0),
        ("4:cpu,cpuacct:/", OLD | old_quota(JOINT, "-1"), None),
        ("4:cpu:/docker/ab/in", CONTAINER | old_quota(f"{ALONE}/in", "70000"), 0.7),
        ("4:cpu:/", SPACE | old_quota("my cg", "150000"), 1.5),
        ("0::/user.slice/user-1.slice/x.scope", {USERS: "150000 100000", INNER: "max 1000"}, 1.5),
        ("0::/user.slice/user-1.slice/x.scope", {USERS: "400000 100000", INNER: "9 10"}, 0.9),
        ("0::/a", UNIFIED | {f"{CGROUP}/unified/a/cpu.max": "200000 100000"}, 2.0),
        ("0::/../x", {f"{CGROUP}/cpu.max": "50000 100000"}, 0.5),
        ("0::/", {f"{CGROUP}/cpu.max": "max 100000"}, None),
    ],
)
def test_a_quota_is_found_in_every_layout(
    tmp_path: Path, group: str, files: dict[str, str], cores: float | None
) -> None:
    assert cgroup.quota_cores(tree(tmp_path, files | {"proc/self/cgroup": group})) == cores


GIB = 1 << 30
LIMIT, USED, STAT = "memory.max", "memory.current", "memory.stat"
OLD_LIMIT, OLD_USED = "memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"
OLD_STAT = f"inactive_file 1\ntotal_inactive_file {GIB}"


@pytest.mark.parametrize(
    ("files", "left", "used"),
    [
        ({f"a/{LIMIT}": 4 * GIB, f"a/{USED}": GIB}, 3 * GIB, GIB),
        ({LIMIT: 4 * GIB, USED: 5 * GIB}, 0, 5 * GIB),
        ({"memory.high": 2 * GIB, LIMIT: "max", USED: GIB}, GIB, GIB),
        ({LIMIT: 4 * GIB, USED: 4 * GIB, STAT: f"inactive_file {GIB}"}, GIB, 3 * GIB),
        ({OLD_LIMIT: 2 * GIB, OLD_USED: GIB, "memory/memory.stat": OLD_STAT}, 2 * GIB, 0),
        ({OLD_LIMIT: 2**63 - 65536, OLD_USED: GIB}, None, None),
        ({}, None, None),
    ],
)
def test_memory_that_is_left_is_the_groups(
    tmp_path: Path, files: dict[str, Any], left: int | None, used: int | None
) -> None:
    root = tree(tmp_path, {f"{CGROUP}/{name}": str(value) for name, value in files.items()})
    tree(root, {"proc/self/cgroup": "0::/a\n5:memory:/a"})
    assert (cgroup.available_bytes(root), cgroup.used_bytes(root)) == (left, used)


def test_heat_and_governor_are_of_this_processs_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"{CPUS}/cpu{n}/cpufreq/scaling_governor": f"governor{n}" for n in range(4)}
    for n, count in enumerate((900, 5, 7, 800)):
        files[f"{CPUS}/cpu{n}/thermal_throttle/core_throttle_count"] = str(count)
    monkeypatch.setattr(sensors, "ROOT", tree(tmp_path, files))
    for own, count, governor in (
        ({1, 2}, 12, "governor1 and governor2"),
        (None, 1712, "governor0 and governor1 and governor2 and governor3"),
        ({9}, None, None),
    ):
        monkeypatch.setattr(counters, "own_cores", lambda own=own: own)
        assert (sensors.throttle_count(tmp_path), sensors.governor()) == (count, governor)


def test_a_container_on_a_shared_node_reads_its_own_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 idle cores of 64, of which others keep 55 busy."""
    Times = namedtuple("Times", "user idle")
    busy = [Times(0.0, 10.0)] * 4 + [Times(10.0, 0.0)] * 55 + [Times(0.0, 10.0)] * 5
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(counters, "online", lambda: [*range(64)])
    monkeypatch.setattr(cgroup, "quota_cores", lambda: None)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 64)
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: busy)
    monkeypatch.setattr(psutil, "cpu_percent", lambda *_, percpu: [100 * t.user / 10 for t in busy])
    monkeypatch.setattr(psutil, "getloadavg", lambda: (57.3, 0.0, 0.0))
    assert (counters.busy_seconds(), counters.busy_percent(), counters.load_average()) == (
        0,
        0,
        None,
    )
    # Cores that are switched off have no counters, and the others keep their numbers.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {8, 9}, raising=False)
    for numbers, percent in (([*range(6, 70)], 0), ([*range(4, 68)], 100), ([0, 1], None)):
        monkeypatch.setattr(counters, "online", lambda numbers=numbers: numbers)
        assert counters.busy_percent() == percent
    # A share of the time of all cores: what others do on them says nothing.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(cgroup, "quota_cores", lambda: 4.0)
    unknown = (counters.busy_seconds(), counters.busy_percent(), counters.load_average())
    assert unknown == (None, None, None)
