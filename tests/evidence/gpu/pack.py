"""Pack what a CUDA machine without a network needs: sources, and wheels of what it lacks.

The machine has Python 3.12, PyTorch and JAX for CUDA, NumPy, SciPy and pyarrow. Their versions are
not those of the locks, so wheels are installed there without a check of requirements.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from deploy.locks import ROOT, versions
from packaging.utils import canonicalize_name, parse_wheel_filename

MOST_BYTES = 55_000_000
LOCKS = ("agent", "server", "energy")
PROJECT = ("shared", "agent", "server")
# The sources that the steps run.
SOURCES = ("benchmarks", "deploy", "locks", "tests/evidence/gpu", "tests/evidence/__init__.py")
ENVIRONMENT = {
    "os_name": "posix",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "python_version": "3.12",
    "python_full_version": "3.12.3",
}
THERE = re.compile(
    r"(numpy|scipy|pyarrow|jax|jaxlib|torch|triton|ml-dtypes|opt-einsum|nvidia-c.*)$"
)
PLATFORMS = (*(f"manylinux_2_{minor}_x86_64" for minor in range(5, 40)), "manylinux2014_x86_64")


class NotPacked(Exception):
    """The folder is not complete; the message says what is missing."""


def pack(folder: Path, *, wheels: bool = True, kept: Path | None = None) -> str:
    """Fill an empty or missing folder; returns a line about it.

    Args:
        wheels: if false, leave them out; then no package index is needed.
        kept: the folder of recomputations of ``python -m benchmarks.limits --only figures``.

    Raises:
        NotPacked: a wheel is missing, the folder is not empty, or it is larger than 55 MB.
    """
    if folder.exists() and any(folder.iterdir()):
        raise NotPacked(f"{folder} is not empty: name a new one")
    sources(folder / "src")
    shutil.copy(ROOT / "tests/evidence/gpu/start.py", folder)
    if kept:
        shutil.copytree(kept, folder / "kept")
    if wheels:
        download(folder / "wheels")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        raise NotPacked(f"{folder} has {size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f}")
    count = len(list(folder.glob("wheels/*.whl")))
    return f"{folder}: {size / 1e6:.1f} MB, {count} wheels; there: python3 start.py facts"


def sources(folder: Path) -> None:
    """Copy the tracked sources as they are in the working tree."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *SOURCES]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(lambda name: (ROOT / name).is_file(), listed.splitlines()):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)


def wanted() -> dict[str, str]:
    """Name and version of every package that the machine lacks."""
    found = versions(LOCKS, ENVIRONMENT)
    return {name: version for name, version in found.items() if not THERE.match(name)}


def download(folder: Path) -> None:
    """Download the wheels of dependencies and build the project's."""
    folder.mkdir()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(f"{name}=={version}\n" for name, version in wanted().items())
        file.flush()
        command = [*pip, "download", "-qq", "--no-deps", "--only-binary", ":all:"]
        command += ["--python-version", "3.12", "--implementation", "cp"]
        command += [word for abi in ("cp312", "abi3", "none") for word in ("--abi", abi)]
        command += [word for name in PLATFORMS for word in ("--platform", name)]
        _run([*command, "--dest", str(folder), "--requirement", file.name])
    _run([*pip, "wheel", "-qq", "--no-deps", "-w", str(folder), *(f"./{name}" for name in PROJECT)])
    if missing := sorted(set(wanted()) - set(_names(folder))):
        raise NotPacked(f"no wheel of {', '.join(missing)}")


def _names(folder: Path) -> Iterator[str]:
    for path in folder.glob("*.whl"):
        yield canonicalize_name(parse_wheel_filename(path.name)[0])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise NotPacked(done.stderr.strip()[-2000:] or f"pip ended with {done.returncode}")
