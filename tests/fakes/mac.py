"""macOS' commands as programs on a path of their own, with the behaviour of the real ones.

Exit status, standard error, absence and slowness are those of the real commands; their values are
invented.
"""

import sys
from pathlib import Path

import pytest

from bench_agent.machine import macos, text

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


class FakeMac:
    """A folder of stand-in commands; a command that is not written is absent."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setattr(text, "COMMANDS", str(folder))
        for name in ("sysctl", "profile"):  # without their caches
            monkeypatch.setattr(macos, name, getattr(macos, name).__wrapped__)

    def command(self, name: str, program: str) -> None:
        """Write a command as a Python program."""
        path = self.folder / name
        path.write_text(f"#!{sys.executable} -IS\nimport sys\n{program}")
        path.chmod(0o755)

    def prints(self, name: str, text: str) -> None:
        """Write a command that prints the same for all arguments."""
        self.command(name, f"print({text!r}, end='')")

    def sysctl(self, recorded: str, *, ends_at_first: bool = False) -> None:
        """Write sysctl.

        Args:
            recorded: the lines that it prints for the names that this Mac knows.
            ends_at_first: as before macOS 14.4.
        """
        known = dict(line.split(": ", 1) for line in recorded.splitlines())
        self.command(
            "sysctl",
            f"known = {known!r}\nends_at_first = {ends_at_first}\n"
            "ignored = '-i' in sys.argv\n"
            "names = [name for name in sys.argv[1:] if name != '-i']\n"
            f"unknown = 0\n{SYSCTL}",
        )
