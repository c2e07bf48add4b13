"""The pip commands that install frameworks, for the Python that runs the agent.

They name sources on this disk or the frameworks' own distributions. The agent is in no package
index: ``pip install bench-agent`` would install a stranger's package of that name.
"""

import shlex
import sys
from collections.abc import Iterator
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

CHECKOUT = Path(__file__).parents[4]


def pip(*arguments: str, python: str = sys.executable, has_pip: bool | None = None) -> str:
    """A pip command for the Python that runs the agent; uv's if that Python has no pip.

    Args:
        arguments: ``install`` or ``uninstall`` first.
        has_pip: whether this Python has pip; None checks it.
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
    """Uninstall, then install: for two distributions that contain the same files."""
    return f"{pip('uninstall', '-y', *old)} && {pip_install(*requirements)}"


def install_extras(*extras: str, checkout: Path = CHECKOUT) -> str:
    """Install the requirements of the agent's extras; in a checkout, at the tested versions.

    Args:
        extras: as in ``agent/pyproject.toml``.
        checkout: folder of the sources this agent runs from, if it does.
    """
    constraints = checkout / "constraints.txt"
    if constraints.is_file():
        agent = f"{checkout / 'agent'}[{','.join(extras)}]"
        shared = str(checkout / "shared")
        return pip_install("-c", str(constraints), "-e", shared, "-e", agent)
    return pip_install(*dict.fromkeys(_requirements(extras)))


def _requirements(extras: tuple[str, ...]) -> Iterator[str]:
    """Requirements of the installed agent's extras on this platform, from its metadata."""
    for line in requires("bench-agent") or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker and any(marker.evaluate({"extra": extra}) for extra in extras):
            requirement.marker = None
            yield str(requirement)
