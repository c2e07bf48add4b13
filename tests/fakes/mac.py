"""macOS' commands as programs on a path of their own, with the behaviour of the real ones.

Exit status, standard error, absence and slowness are those of the real commands; their values are
invented.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench_agent.machine import macos, text

APPLE = Path(__file__).parent / "apple"
NAMES = ("sysctl", "system_profiler", "ioreg", "pmset", "notifyutil", "caffeinate")
# Apple's sysctl (system_cmds 979.100.8 to 1026.100.5): unknown names go to standard error, and
# their number is the exit status. Before, the program ended at the first. -i passes them over.
SYSCTL = """
for name in names:
    if name in known:
        print(f"{name}: {known[name]}")
    elif not ignored:
        print(f"sysctl: unknown oid '{name}'", file=sys.stderr)
        unknown += 1
        if ends_at_first:
            sys.exit(1)
sys.exit(unknown)
"""


# What macOS' commands print of a Mac on mains power: pmset, by its arguments.
PMSET = {
    "-g": "System-wide power settings:\nCurrently in use:\n powermode            2\n sleep 1\n",
    "-g batt": "Now drawing from 'AC Power'\n -InternalBattery-0 (id=1)\t81%; charging\n",
}
IOREG_PLATFORM = """+-o J416c  <class IOPlatformExpertDevice, id 0x100000221, registered>
    {
      "IOPlatformSerialNumber" = "PLANTEDSER1A"
      "IOPlatformUUID" = "5EC2E7ED-0000-4000-8000-00000000CAFE"
    }
"""
# A command that waits for its death, as caffeinate and a stuck system_profiler do.
WAITS = "import signal\nsignal.pause()\n"


class Commands:
    """A folder of stand-ins; a command not written is absent. ``calls``: a line each start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def command(self, name: str, program: str) -> None:
        path = self.folder / name
        noted = (
            f"open({str(self._calls)!r}, 'a').write(' '.join([{name!r}, *sys.argv[1:]]) + '\\n')"
        )
        path.write_text(f"#!{sys.executable} -IS\nimport sys\n{noted}\n{program}")
        path.chmod(0o755)

    def prints(self, name: str, text: str) -> None:
        self.command(name, f"print({text!r}, end='')")

    def by_arguments(self, name: str, answers: Mapping[str, str]) -> None:
        refusal = f"sys.exit({name!r} + ': unknown argument')"
        self.command(
            name,
            f"answers = {dict(answers)!r}\nasked = ' '.join(sys.argv[1:])\n"
            f"print(answers[asked], end='') if asked in answers else {refusal}\n",
        )

    def sysctl(self, recorded: str, *, ends_at_first: bool = False) -> None:
        """``recorded``: lines for the names it knows; ``ends_at_first``: as before macOS 14.4."""
        known = dict(line.split(": ", 1) for line in recorded.splitlines())
        self.command(
            "sysctl",
            f"known = {known!r}\nends_at_first = {ends_at_first}\n"
            "ignored = '-i' in sys.argv\n"
            "names = [name for name in sys.argv[1:] if name != '-i']\n"
            f"unknown = 0\n{SYSCTL}",
        )

    def whole_mac(self) -> None:
        self.sysctl((APPLE / "m5max_super.sysctl.txt").read_text())
        self.prints("system_profiler", (APPLE / "m5max_super.profile.json").read_text())
        gpu = (APPLE / "m3max.ioreg.txt").read_text().replace("M3 Max", "M5 Max")
        self.by_arguments(
            "ioreg",
            {
                "-r -d 1 -c IOPlatformExpertDevice": IOREG_PLATFORM,
                "-r -d 1 -w 0 -c IOAccelerator": gpu,
            },
        )
        self.by_arguments("pmset", PMSET)
        self.prints("notifyutil", "com.apple.system.thermalpressurelevel 0\n")
        self.command("caffeinate", WAITS)
        self.command("powermetrics", "sys.exit('powermetrics must be invoked as the superuser')")

    def every(self, program: str) -> None:
        for name in NAMES:
            self.command(name, program)

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []

    @property
    def _calls(self) -> Path:
        return self.folder / ".calls"


class FakeMac(Commands):
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder)
        monkeypatch.setattr(text, "COMMANDS", str(folder))
        for name in ("sysctl", "profile"):  # without their caches
            monkeypatch.setattr(macos, name, getattr(macos, name).__wrapped__)
