"""``bench-agent`` on a machine whose facts name its owner: ``planted_agent.py SYSTEM ROOT ...``.

The agent is the real one; the system's facts are planted: files under ROOT and a fake management
library (``linux``), or recorded outputs of Apple's commands (``macos``). The words in ``PLANTED``
must not leave the machine.
"""

import platform
import socket
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.fakes.nvml import FakeNvml, h200  # noqa: E402

HOST, USER, SERIAL = "annas-secret-host", "anna-b-secret", "C02SECRETSERIAL"
UUID, MACHINE_ID = "5EC2E7ED-0000-4000-8000-00000000CAFE", "fedcba98plantedmachineid76543210"
GPU_UUID = h200(1).uuid
# The words in the recorded outputs of Apple's commands, and the fake GPU.
RECORDED = ("PLANTEDSER1A", "PLANTEDDISP9", "00AA11BB22CC33DD")
PLANTED = (HOST, USER, SERIAL, UUID, UUID.replace("-", ""), MACHINE_ID, GPU_UUID[4:], *RECORDED)
CPUINFO = "processor\t: 0\nmodel name\t: Intel(R) Core(TM) i7-8700 CPU\nphysical id\t: 0\n"
FILES = {
    "proc/cpuinfo": f"{CPUINFO}Serial\t\t: {SERIAL}\n\n",
    "proc/meminfo": "MemTotal: 32000000 kB\n",
    "etc/os-release": 'PRETTY_NAME="Ubuntu 24.04"\nVERSION_ID="24.04"\n',
    "etc/machine-id": f"{MACHINE_ID}\n",
    "etc/hostname": f"{HOST}\n",
    "sys/class/dmi/id/product_name": "XPS 15 9530\n",
    "sys/class/dmi/id/product_serial": f"{SERIAL}\n",
    "sys/class/dmi/id/product_uuid": f"{UUID}\n",
    "sys/class/dmi/id/board_serial": f"{SERIAL}\n",
}


def plant_linux(root: Path) -> None:
    from bench_agent import machine
    from bench_agent.machine import linux

    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    environ = {"HOSTNAME": HOST, "USER": USER}
    release = f"6.8.0-{HOST}"
    sys.modules["pynvml"] = FakeNvml(h200(1, GetSerial=SERIAL))  # type: ignore[assignment]
    machine.linux = SimpleNamespace(  # type: ignore[assignment]
        cpu=partial(linux.cpu, root),
        operating_system=partial(linux.operating_system, root, environ, release),
        model=partial(linux.model, root),
        memory_bytes=partial(linux.memory_bytes, root),
        identifier=partial(linux.identifier, root),
        identifiers=partial(linux.identifiers, root),
    )


def plant_macos(root: Path) -> None:
    from bench_agent import machine
    from bench_agent.machine import macos

    def answer(*command: str, **_: object) -> str:
        if command[0] == "sysctl":
            return (HERE / "apple/m2pro_two_displays.sysctl.txt").read_text()
        if command[0] == "system_profiler":
            return (HERE / "apple/m2pro_two_displays.profile.json").read_text()
        owner = f'"IOPlatformUUID" = "{UUID}"\n"IOPlatformSerialNumber" = "{SERIAL}"\n'
        return owner + (HERE / "apple/m3max.ioreg.txt").read_text()

    macos.command_output = answer
    macos.platform = SimpleNamespace(  # type: ignore[attr-defined]
        machine=lambda: "arm64",
        mac_ver=lambda: ("14.6", ("", "", ""), ""),
        release=lambda: "23.6.0",
    )
    machine.platform = SimpleNamespace(system=lambda: "Darwin")  # type: ignore[attr-defined]


def main() -> None:
    system, root = sys.argv[1], Path(sys.argv[2])
    platform.node = socket.gethostname = socket.getfqdn = lambda *_: HOST
    {"linux": plant_linux, "macos": plant_macos}[system](root)
    from bench_agent.cli.main import main as agent

    sys.argv = ["bench-agent", *sys.argv[3:]]
    agent()


if __name__ == "__main__":
    main()
