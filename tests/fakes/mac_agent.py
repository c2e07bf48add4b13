"""``bench-agent`` as on a Mac: ``mac_agent.py COMMANDS ...``.

Python says that it runs on macOS with Apple's processor, the system's commands are those of the
folder COMMANDS, the installed packages are those of a Mac, and workers train a fake engine
(``mac_worker.py``). Everything else is the real agent.
"""

import ctypes.util
import os
import platform
import sys
import sysconfig
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import psutil

HERE = Path(__file__).parent

# A command of a stand-in that does not answer must not hold up a test.
TIMEOUT_SECONDS = 0.5
ELSEWHERE = ("tensorflow-cpu", "mlx-cpu")
# As the locks have them on macOS.
PACKAGES = {
    "tensorflow": "2.19.1",
    "tensorflow-metal": "1.2.0",
    "numpy": "2.1.3",
    "mlx": "0.32.4",
    "mlx-metal": "0.32.4",
}


# These choose their code for the real system when they are imported.
_CHOSEN = (ctypes.util, urllib.request, httpx, psutil)
MACOS = "26.2"


def become_a_mac() -> None:
    """From here on this process runs on macOS. Call it before the agent is imported."""
    sysconfig.get_config_vars()  # read once, from a file named after the system
    sys.platform = "darwin"
    platform.system = lambda: "Darwin"
    platform.machine = lambda: "arm64"
    platform.release = lambda: "25.2.0"
    platform.mac_ver = lambda *_: (MACOS, ("", "", ""), "arm64")
    platform.libc_ver = lambda *_: ("", "")


class AppleEnergyMonitor:
    readings = 0

    def get_cumulative_energy(self) -> SimpleNamespace:
        self.readings += 1
        return SimpleNamespace(cpu_total_mj=900 * self.readings, gpu_mj=4000 * self.readings)


def plant(commands: Path) -> None:
    become_a_mac()
    from bench_agent.machine import macos, text
    from bench_agent.run import _ask_interpreter, worker_process

    os.environ["PATH"] = os.pathsep.join([str(commands), os.environ["PATH"]])
    text.COMMANDS = str(commands)
    text.command_output.__kwdefaults__["timeout_seconds"] = TIMEOUT_SECONDS
    macos.PROFILER_TIMEOUT_SECONDS = TIMEOUT_SECONDS  # type: ignore[assignment]
    worker = [sys.executable, str(HERE / "mac_worker.py")]
    worker_process.worker_command = lambda python=None: worker
    zeus = ModuleType("zeus_apple_silicon")
    zeus.AppleEnergyMonitor = AppleEnergyMonitor  # type: ignore[attr-defined]
    sys.modules["zeus_apple_silicon"] = zeus
    real = _ask_interpreter.versions

    def versions(found: Sequence[Any]) -> dict[str, str]:
        here = {name: version for name, version in real([*found]).items() if name not in ELSEWHERE}
        return here | PACKAGES if here else here

    _ask_interpreter.versions = versions


def main() -> None:
    plant(Path(sys.argv[1]))
    from bench_agent.cli.main import main as agent

    sys.argv = ["bench-agent", *sys.argv[2:]]
    agent()


if __name__ == "__main__":
    main()
