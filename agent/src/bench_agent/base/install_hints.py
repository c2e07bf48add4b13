"""The pip commands that install frameworks, for the agent's Python or another interpreter.

They name sources on this disk or the frameworks' own distributions. The agent is in no package
index: ``pip install bench-agent`` would install a stranger's package of that name.
"""

import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

CHECKOUT = Path(__file__).parents[4]
CUDA_12_LIBRARY = "nvidia-cudnn-cu12"
# The agent's extras of each framework for an NVIDIA GPU, by the CUDA that they bring.
FOR_CUDA_12 = {"tensorflow": "tensorflow-cuda", "mlx": "mlx-cuda"}
FOR_CUDA_13 = {"jax": "jax-cuda", "torch": "torch"}
TENSORFLOW_LAST_PYTHON = (3, 13)


@dataclass(frozen=True)
class Pip:
    """The pip commands for one interpreter; uv's if that interpreter has no pip.

    Args:
        python: the interpreter's path.
        has_pip: whether it has pip; None checks the agent's own.
        checkout: folder of the sources this agent runs from, if it does.
    """

    python: str = sys.executable
    has_pip: bool | None = None
    checkout: Path = CHECKOUT

    def command(self, *arguments: str) -> str:
        """A command line; ``install`` or ``uninstall`` comes first."""
        has_pip = find_spec("pip") is not None if self.has_pip is None else self.has_pip
        if has_pip:
            return shlex.join((self.python, "-m", "pip", *arguments))
        action, *rest = (word for word in arguments if word != "-y")
        return shlex.join(("uv", "pip", action, "--python", self.python, *rest))

    def install(self, *requirements: str) -> str:
        return self.command("install", *requirements)

    def uninstall(self, *distributions: str) -> str:
        return self.command("uninstall", "-y", *distributions)

    def replace(self, old: tuple[str, ...], *requirements: str) -> str:
        """Uninstall, then install: for two distributions that contain the same files."""
        return f"{self.uninstall(*old)} && {self.install(*requirements)}"

    def reinstall(self, *pinned: str) -> str:
        """Write the files of these distributions again, and of no other: reinstalling what they
        need as well would mix the files of cuDNN for CUDA 12 and for CUDA 13."""
        return self.install("--force-reinstall", "--no-deps", *pinned)

    def install_extras(self, *extras: str) -> str:
        """Install the requirements of the agent's extras; in a checkout, at the tested versions.
        ``extras``: as in ``agent/pyproject.toml``."""
        if self.in_checkout:
            locks = (str(self.checkout / "locks" / f"{extra}.txt") for extra in extras)
            return self.install(*(word for lock in locks for word in ("-r", lock)))
        return self.install(*dict.fromkeys(_requirements(extras)))

    def install_framework(self, framework: str, *, cuda_12: bool) -> str | None:
        """Install a framework. One environment has one CUDA, so JAX and PyTorch never go into one
        with CUDA 12; None where that leaves no command. ``cuda_12``: this interpreter has the CUDA
        libraries that TensorFlow is built for."""
        if (cuda_12 and framework in FOR_CUDA_13) or needs_own_environment(framework):
            return self.second_environment()
        return self.install_extras(*extras_for((framework,), cuda_12=cuda_12))

    def install_cuda_13(self, framework: str, *, cuda_12: bool) -> str | None:
        """Install the CUDA build of JAX or PyTorch, as :meth:`install_framework`."""
        if cuda_12 or self.in_checkout:
            return self.second_environment()
        return self.replace((framework,), *_requirements((FOR_CUDA_13[framework],)))

    def second_environment(self) -> str | None:
        """Make the environment beside the agent's own for what does not fit into that: CUDA 13, or
        TensorFlow where it needs older versions; None outside of a checkout."""
        if not self.in_checkout:
            return None
        return shlex.join(("make", "-C", str(self.checkout), "install"))

    def install_agent(self) -> str | None:
        """Install this agent's sources; None outside of a checkout.

        Without the tested versions: they would replace packages of the other frameworks there.
        """
        if not self.in_checkout:
            return None
        return self.install("-e", str(self.checkout / "shared"), "-e", str(self.checkout / "agent"))

    def separate_environments(self) -> str | None:
        """Make the virtual environments again, one for each CUDA; None outside of a checkout."""
        if not self.in_checkout:
            return None
        return shlex.join(("make", "-C", str(self.checkout), "clean", "install", "frameworks"))

    @property
    def in_checkout(self) -> bool:
        return (self.checkout / "locks" / "agent.txt").is_file()


def extras_for(frameworks: Iterable[str], *, cuda_12: bool) -> tuple[str, ...]:
    """The agent's extras of those frameworks that one environment can hold. ``cuda_12``: it has the
    CUDA libraries that TensorFlow is built for."""
    if not cuda_12:
        return tuple(name for name in frameworks if not needs_own_environment(name))
    return tuple(FOR_CUDA_12.get(name, name) for name in frameworks if name not in FOR_CUDA_13)


def needs_own_environment(
    framework: str, system: str = sys.platform, python: tuple[int, int] = sys.version_info[:2]
) -> bool:
    """Whether a framework cannot share the agent's interpreter. Apple's plug-in for TensorFlow
    needs an older NumPy than JAX does, and TensorFlow has no build for Python 3.14."""
    return framework == "tensorflow" and (system == "darwin" or python > TENSORFLOW_LAST_PYTHON)


def install_note(
    framework: str, system: str = sys.platform, python: tuple[int, int] = sys.version_info[:2]
) -> str:
    """What is unusual about installing a framework, in brackets; else empty."""
    if needs_own_environment(framework, system, python):
        return " (it needs an environment of its own here)"
    brings_cuda = framework == "torch" and system.startswith("linux")
    return " (its usual wheel brings CUDA: gigabytes)" if brings_cuda else ""


def has_cuda_12() -> bool:
    """Whether the agent's own interpreter has the CUDA libraries that TensorFlow is built for."""
    try:
        return bool(version(CUDA_12_LIBRARY))
    except PackageNotFoundError:
        return False


def _requirements(extras: tuple[str, ...]) -> Iterator[str]:
    """Requirements of the installed agent's extras on this platform, from its metadata."""
    for line in requires("bench-agent") or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker and any(marker.evaluate({"extra": extra}) for extra in extras):
            requirement.marker = None
            yield str(requirement)
