"""The commands that doctor prints, for this system's own tools."""

import shlex
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec

# Package managers with the package that each names for a need; the first that is there is used.
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


def pip(*arguments: str, python: str = sys.executable, has_pip: bool | None = None) -> str:
    """A pip command for the Python that runs the agent; uv's where that Python has no pip.

    Args:
        arguments: ``install`` or ``uninstall`` first.
        has_pip: whether this Python has pip; found out where not given.
    """
    has_pip = find_spec("pip") is not None if has_pip is None else has_pip
    if has_pip:
        return shlex.join((python, "-m", "pip", *arguments))
    action, *rest = (word for word in arguments if word != "-y")
    return shlex.join(("uv", "pip", action, "--python", python, *rest))


def pip_install(*requirements: str) -> str:
    """Install into the agent's Python."""
    return pip("install", *requirements)


def pip_replace(old: tuple[str, ...], *requirements: str) -> str:
    """Uninstall, then install: two distributions that hold the same files."""
    return f"{pip('uninstall', '-y', *old)} && {pip_install(*requirements)}"


def uv_command(which: Which = shutil.which) -> str:
    """uv, fetched first where it is missing."""
    if which("uv"):
        return "uv"
    return f"{shlex.quote(sys.executable)} -m uv"


def system_package(need: str, which: Which = shutil.which) -> str | None:
    """Install a compiler (``g++``) or a fast BLAS (``blas``); None without a known manager."""
    sudo = "sudo " if which("sudo") else ""
    for name, command, packages in MANAGERS:
        if which(name):
            return f"{sudo}{command.format(sudo=sudo)} {packages[need]}"
    return None
