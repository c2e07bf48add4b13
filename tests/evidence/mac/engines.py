"""The engines' tests with the versions of a Mac's environments, each in one of their own.

The Mac's pins are constraints on this system's wheels: MLX for the CPU and JAX, then TensorFlow.
PyTorch is left out: outside macOS its usual wheel brings CUDA, which is gigabytes.
"""

import re
import subprocess
import sys
from pathlib import Path

from deploy.locks import ROOT

from .wheels import SYSTEMS, Target, pins

TOOLS = ("pytest", "pytest-timeout", "hypothesis")
# TensorFlow's name on x86-64 Linux.
ALIASES = {"tensorflow": ("tensorflow-cpu",)}
SUMMARY = re.compile(r"^[0-9]+ (?:passed|failed|error|skipped).*$", re.MULTILINE)


class StepFailed(Exception):
    """A command failed; the message is its last lines."""


def constraints(target: Target) -> str:
    """The Mac's pins as constraints, also under the names that packages have elsewhere."""
    lines = [
        f"{alias}=={version}"
        for name, version in pins(target)
        for alias in (name, *ALIASES.get(name, ()))
    ]
    return "\n".join(lines) + "\n"


def target(*, plug_in: bool) -> Target:
    """A Mac's environment with this interpreter's version of Python."""
    major, minor = sys.version_info[:2]
    return Target(SYSTEMS[0], f"{major}.{minor}", plug_in)


def install(folder: Path, target: Target) -> Path:
    """Make an environment with the Mac's versions.

    Returns:
        Its interpreter.

    Raises:
        StepFailed: it cannot be installed.
    """
    limits = folder.with_suffix(".txt")
    limits.parent.mkdir(parents=True, exist_ok=True)
    limits.write_text(constraints(target), encoding="utf-8")
    python, uv = folder / "bin" / "python", [sys.executable, "-m", "uv"]
    run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)])
    command = [*uv, "pip", "install", "--quiet", "--no-sources", "--python", str(python)]
    command += ["--only-binary", ":all:", "--no-binary", "bench-protocol"]
    command += ["--no-binary", "bench-agent"]
    command += ["--constraint", str(limits), "--editable", str(ROOT / "shared")]
    command += [
        "--editable",
        f"{ROOT / 'agent'}[{'tensorflow' if target.plug_in else 'mlx,jax'}]",
        *TOOLS,
    ]
    run(command)
    return python


def tested(python: str | Path, *tests: str) -> str:
    """Run tests under an interpreter.

    Returns:
        pytest's summary: how many passed.

    Raises:
        StepFailed: a test failed, or none ran.
    """
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", "-m", "not long"]
    output = run([*command, "--timeout", "600", *tests], cwd=ROOT)
    found = SUMMARY.findall(output)
    return str(found[-1]) if found else "passed"


def run(command: list[str], cwd: Path | None = None) -> str:
    """Run a command and return its output.

    Raises:
        StepFailed: its exit status is not 0.
    """
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-30:])
        raise StepFailed(f"{' '.join(command[:5])} ... ended with {done.returncode}\n{last}")
    return done.stdout
