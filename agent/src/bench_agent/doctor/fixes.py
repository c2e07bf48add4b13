"""Commands that fix a problem with this system's package manager or uv."""

import shlex
import shutil
import sys
from collections.abc import Callable

# Package managers with their package for each need; the first one installed is used.
MANAGERS = (
    (
        "apt-get",
        "apt-get update && {sudo}apt-get install -y",
        {"g++": "g++", "blas": "libopenblas0"},
    ),
    ("dnf", "dnf install -y", {"g++": "gcc-c++", "blas": "openblas"}),
    ("yum", "yum install -y", {"g++": "gcc-c++", "blas": "openblas"}),
    ("pacman", "pacman -S --needed", {"g++": "gcc", "blas": "openblas"}),
    ("zypper", "zypper install -y", {"g++": "gcc-c++", "blas": "libopenblas0"}),
    ("apk", "apk add", {"g++": "g++", "blas": "openblas"}),
)
Which = Callable[[str], str | None]


def uv_command(which: Which = shutil.which) -> tuple[str, str]:
    """The command that installs uv if it is missing (ends in ``&&``), and the command for uv."""
    if which("uv"):
        return "", "uv"
    python = shlex.quote(sys.executable)
    return f"{python} -m pip install uv && ", f"{python} -m uv"


def system_package(need: str, which: Which = shutil.which) -> str | None:
    """Install a compiler (``g++``) or a fast BLAS (``blas``); None without a known manager."""
    sudo = "sudo " if which("sudo") else ""
    for name, command, packages in MANAGERS:
        if which(name):
            return f"{sudo}{command.format(sudo=sudo)} {packages[need]}"
    return None
