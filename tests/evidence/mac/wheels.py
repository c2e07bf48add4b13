"""The wheels of a Mac's two environments: download them, and check that they fit."""

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from deploy import locks
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename

from .symbols import Library, read_library

LOCKS = ("agent", "server", "tools", "mlx", "energy", "jax", "torch")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLUG_IN_PYTHONS = ("3.11", "3.12")
# MLX's wheels for macOS 26 hold libraries for 26.2: doctor warns on older ones.
SYSTEMS = ((14, 0), (15, 0), (26, 2))
LIBRARIES = (".dylib", ".so")
GIGABYTE = 2**30
# What the download takes, and as much again for the largest wheel's libraries.
NEEDED_BYTES = 4 * GIGABYTE


@dataclass(frozen=True)
class Target:
    """An environment of a Mac: its macOS and its Python, such as (14, 0) and ``3.12``. ``plug_in``:
    the second environment, that of Apple's plug-in for TensorFlow."""

    macos: tuple[int, int]
    python: str
    plug_in: bool = False

    def __str__(self) -> str:
        second = f", {locks.ALONE}" if self.plug_in else ""
        return f"macOS {self.version}, Python {self.python}{second}"

    @property
    def version(self) -> str:
        return ".".join(map(str, self.macos))

    @property
    def environment(self) -> dict[str, str]:
        """The values of its markers."""
        return {
            "os_name": "posix",
            "sys_platform": "darwin",
            "platform_system": "Darwin",
            "platform_machine": "arm64",
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
        }

    @property
    def tags(self) -> tuple[Tag, ...]:
        """The tags of the wheels that it can install, the best first."""
        major, minor = map(int, self.python.split("."))
        platforms = list(mac_platforms(self.macos, "arm64"))
        version, interpreter = (major, minor), f"cp{major}{minor}"
        return (
            *cpython_tags(version, platforms=platforms),
            *compatible_tags(version, interpreter, platforms),
        )


TARGETS = (
    *(Target(macos, python) for macos in SYSTEMS for python in PYTHONS),
    *(Target(macos, python, True) for macos in SYSTEMS for python in PLUG_IN_PYTHONS),
)


class DownloadFailed(Exception):
    """The index has no such wheel, or it or the disk failed; the message says which."""


@cache
def pins(target: Target) -> tuple[tuple[str, str], ...]:
    """Name and version of every package of a Mac's environment but our own."""
    names = (locks.ALONE,) if target.plug_in else LOCKS
    return tuple(locks.versions(names, target.environment).items())


def download(target: Target, folder: Path) -> None:
    """Download the wheels of a Mac into a folder; those that are there are kept.

    Raises:
        DownloadFailed: not all of them came.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(f"{name}=={version}\n" for name, version in pins(target))
        file.flush()
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-qq"]
        command += ["--no-deps", "--only-binary", ":all:", "--python-version", target.python]
        command += ["--platform", f"macosx_{target.version.replace('.', '_')}_arm64"]
        command += ["--dest", str(folder), "--requirement", file.name]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise DownloadFailed(done.stderr.strip()[-2000:] or f"pip ended with {done.returncode}")


def chosen(target: Target, folder: Path) -> tuple[list[Path], list[str]]:
    """The wheels that a Mac would install, and a line for each package that has none."""
    order = {tag: number for number, tag in enumerate(target.tags)}
    wheels, problems = [], []
    for name, version in pins(target):
        ranked = sorted(
            (rank, path) for path, rank in _ranked(folder, name, version, order) if rank is not None
        )
        if ranked:
            wheels.append(ranked[0][1])
        else:
            problems.append(f"{name} {version} has no wheel for {target}")
    return wheels, problems


def _ranked(
    folder: Path, name: str, version: str, order: dict[Tag, int]
) -> Iterator[tuple[Path, int | None]]:
    for path in folder.glob("*.whl"):
        its_name, its_version, _, tags = parse_wheel_filename(path.name)
        if (its_name, str(its_version)) == (name, version):
            yield path, min((order[tag] for tag in tags if tag in order), default=None)


def too_new(wheel: Path, target: Target) -> list[str]:
    """A line for each library of a wheel that needs a newer macOS than the Mac's.

    Raises:
        ValueError: a library has no part for arm64.
    """
    return [
        f"{wheel.name}: {name} needs macOS {'.'.join(map(str, oldest))}"
        for name, oldest in _oldest(wheel)
        if oldest[:2] > target.macos
    ]


@cache
def _oldest(wheel: Path) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((library.name, library.oldest_macos) for library in libraries_in(wheel))


def libraries_in(wheel: Path, names: str = "") -> Iterator[Library]:
    """The Mach-O libraries of a wheel, those whose path matches a pattern.

    Raises:
        ValueError: one of them is none for arm64.
    """
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        for name in archive.namelist():
            if name.endswith(LIBRARIES) and re.search(names, name):
                path = Path(archive.extract(name, folder))
                yield read_library(str(path), name)
                path.unlink()


def first_bytes(wheel: Path, name: str) -> bytes:
    """The first four bytes of a file in a wheel.

    Raises:
        LookupError: it is not there.
    """
    with zipfile.ZipFile(wheel) as archive, archive.open(name) as file:
        return file.read(4)


def wheel_of(name: str, wheels: Sequence[Path]) -> Path:
    """The wheel of a package.

    Raises:
        LookupError: there is none.
    """
    for wheel in wheels:
        if parse_wheel_filename(wheel.name)[0] == name:
            return wheel
    raise LookupError(f"no wheel of {name}")
