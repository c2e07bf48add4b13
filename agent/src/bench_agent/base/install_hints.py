"""The pip commands that install frameworks, for the agent's Python or another interpreter.

They name sources on this disk or the frameworks' own distributions. The agent is in no package
index: ``pip install bench-agent`` would install a stranger's package of that name.
"""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

CHECKOUT = Path(__file__).parents[4]
CUDA_12_LIBRARY = "nvidia-cudnn-cu12"
FOR_CUDA_13 = ("jax", "torch")


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
        """Install requirements and what they need."""
        return self.command("install", *requirements)

    def uninstall(self, *distributions: str) -> str:
        """Remove distributions."""
        return self.command("uninstall", "-y", *distributions)

    def replace(self, old: tuple[str, ...], *requirements: str) -> str:
        """Uninstall, then install: for two distributions that contain the same files."""
        return f"{self.uninstall(*old)} && {self.install(*requirements)}"

    def reinstall(self, *pinned: str) -> str:
        """Write the files of these distributions again, and of no other.

        Reinstalling what they need as well would write one build of a library over the files of
        another (cuDNN of CUDA 12 and of CUDA 13).
        """
        return self.install("--force-reinstall", "--no-deps", *pinned)

    def install_extras(self, *extras: str) -> str:
        """Install the requirements of the agent's extras; in a checkout, at the tested versions.

        Args:
            extras: as in ``agent/pyproject.toml``.
        """
        if self.in_checkout:
            agent = f"{self.checkout / 'agent'}[{','.join(extras)}]"
            constraints, shared = self.checkout / "constraints.txt", self.checkout / "shared"
            return self.install("-c", str(constraints), "-e", str(shared), "-e", agent)
        return self.install(*dict.fromkeys(_requirements(extras)))

    def install_framework(self, framework: str, *, cuda_12: bool) -> str:
        """Install a framework; JAX and PyTorch beside CUDA 12 go into an environment of their own.

        Args:
            cuda_12: this interpreter has the CUDA libraries that TensorFlow is built for.
        """
        if cuda_12 and self.in_checkout and framework in FOR_CUDA_13:
            return shlex.join(("make", "-C", str(self.checkout), "frameworks"))
        return self.install_extras(framework)

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
        return (self.checkout / "constraints.txt").is_file()


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
