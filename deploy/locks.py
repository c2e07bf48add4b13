"""``make locks``: the version and the hashes of every third-party package, one lock a file.

A lock is named like the extra of the agent whose packages it holds; ``agent`` and ``server`` hold
what these need themselves, ``tools`` and ``release`` what their ``.in`` files name. uv resolves for
every system and Python at once and keeps the versions that a lock already has. Each lock is
constrained by those before it, so that any of them can be installed together. ``tensorflow-metal``
is a whole environment: it needs older versions than the others.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "locks"
PIN = re.compile(r"^[\w.-]+==[^\\\n]+", re.MULTILINE)
# The extras with a lock; those that leave uv the least choice come first. `metal` is three of
# them. `jax-mps` has none: it needs another JAX.
EXTRAS = (
    *("tensorflow", "tensorflow-cuda", "torch", "jax", "jax-cuda"),
    *("mlx", "mlx-cuda", "mlx-cuda13", "energy"),
)
ALONE = "tensorflow-metal"
# PyTorch's wheels for the processor alone have other hashes than PyPI's, and not in every index.
# This is the version whose wheel the tests' machines have; it may be older than that of `torch`.
CPU_TORCH, CPU_TORCH_VERSION = "torch-cpu", "2.13.0"
CUDA = re.compile(r"^(nvidia|cuda|triton)\b")
HEADER = "# Written by `make locks` (README.md).\n"


@dataclass(frozen=True)
class Pin:
    """One version of a package, for the systems of a marker."""

    name: str
    version: str
    marker: Marker | None


class DoesNotResolve(Exception):
    """No versions satisfy the requirements; the message is uv's."""


def requirements() -> dict[str, list[str]]:
    """The third-party requirements of each lock, in the order in which locks are made."""
    protocol, agent, server = (_project(name) for name in ("shared", "agent", "server"))
    named = {extra: agent["optional-dependencies"][extra] for extra in EXTRAS}
    named["agent"] = protocol["dependencies"] + agent["dependencies"]
    postgresql = server["optional-dependencies"]["postgresql"]
    named["server"] = protocol["dependencies"] + server["dependencies"] + postgresql
    named[ALONE] = named["agent"] + agent["optional-dependencies"][ALONE]
    for name in ("tools", "release"):
        lines = (FOLDER / f"{name}.in").read_text(encoding="utf-8").splitlines()
        named[name] = [line for line in lines if not line.startswith("#")]
    return {
        name: [line for line in lines if not line.startswith("bench-protocol")]
        for name, lines in named.items()
    }


def _project(folder: str) -> dict[str, Any]:
    text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def pins(text: str) -> list[Pin]:
    """The pins of a lock."""
    return [_pin(Requirement(line.strip())) for line in PIN.findall(text)]


def _pin(line: Requirement) -> Pin:
    version = str(line.specifier).removeprefix("==")
    return Pin(canonicalize_name(line.name), version, line.marker)


def versions(
    names: Iterable[str], environment: dict[str, str], folder: Path = FOLDER
) -> dict[str, str]:
    """Name the versions that pip installs from some locks of a folder.

    Args:
        environment: values of markers, such as ``{"sys_platform": "darwin"}``; others are those of
            this interpreter.
    """
    return {
        pin.name: pin.version
        for name in names
        for pin in pins((folder / f"{name}.txt").read_text(encoding="utf-8"))
        if pin.marker is None or pin.marker.evaluate(environment)
    }


def write(folder: Path, arguments: list[str]) -> None:
    """Write all locks into a folder; the versions of the locks that lie there are kept.

    Args:
        arguments: further options for uv, such as ``--upgrade``.

    Raises:
        DoesNotResolve: a lock's requirements contradict each other or an earlier lock.
    """
    earlier: list[str] = []
    for name, lines in requirements().items():
        lock = folder / f"{name}.txt"
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "-", *arguments]
        command += ["--universal", "--python-version", "3.11", "--generate-hashes"]
        command += ["--no-header", "--no-annotate", "--no-emit-index-url"]
        command += [] if name == ALONE else earlier
        command += ["--output-file", str(lock)]
        text = "\n".join(lines)
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=folder)
        if done.returncode:
            raise DoesNotResolve(f"{name}: {done.stderr.strip()}")
        lock.write_text(HEADER + lock.read_text(encoding="utf-8"), encoding="utf-8")
        earlier += [] if name == ALONE else ["--constraint", str(lock)]
    torch = pins((folder / "torch.txt").read_text(encoding="utf-8"))
    lines = [_for_the_processor(pin) for pin in torch if not CUDA.match(pin.name)]
    (folder / f"{CPU_TORCH}.txt").write_text(HEADER + "".join(lines), encoding="utf-8")


def _for_the_processor(pin: Pin) -> str:
    version = CPU_TORCH_VERSION if pin.name == "torch" else pin.version
    marker = f" ; {pin.marker}" if pin.marker else ""
    return f"{pin.name}=={version}{marker}\n"


def outdated() -> list[str]:
    """The locks whose pins ``make locks`` would change."""
    with tempfile.TemporaryDirectory() as name:
        made = Path(shutil.copytree(FOLDER, name, dirs_exist_ok=True))
        write(made, [])
        return [
            lock.stem
            for lock in sorted(made.glob("*.txt"))
            if PIN.findall(lock.read_text()) != PIN.findall((FOLDER / lock.name).read_text())
        ]


def main() -> int:
    """Write the locks, or compare them with the requirements: 1 if one has to be written again."""
    parser = argparse.ArgumentParser(prog="make locks", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, name what changes")
    options, for_uv = parser.parse_known_args()
    if not options.check:
        write(FOLDER, for_uv)
        return 0
    names = outdated()
    print("\n".join(f"locks/{name}.txt is not what make locks writes" for name in names))
    return int(bool(names))


if __name__ == "__main__":
    sys.exit(main())
