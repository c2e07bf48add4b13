"""Checks from any machine that the pins resolve for every platform and Python that we support.

``uv pip compile`` evaluates environment markers for the platform it is told. It names macOS 13
unless told otherwise; current MLX wants 14. It resolves names, not files: packages of cuDNN for
CUDA 12 and for CUDA 13 resolve together and install the same files, so each set of extras is also
checked for one build of cuDNN and of NCCL.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12")
# What `make install` installs on a machine with an NVIDIA driver, each into an environment of its
# own: the first and the last. The one between is the last without MLX.
CUDA = ("tensorflow-cuda,mlx-cuda", "torch,jax-cuda", "torch,jax-cuda,mlx-cuda13")
# uv's name of each platform, and the agent's extras that are installed there.
PLATFORMS = {
    "aarch64-apple-darwin": ("metal,jax,torch",),
    "x86_64-manylinux_2_35": ("tensorflow,mlx,jax,torch", *CUDA),
    "aarch64-manylinux_2_35": ("tensorflow,mlx,jax,torch", *CUDA),
}
MACOS = "14.0"
CUDA_LIBRARY = re.compile(r"^nvidia-(cudnn|nccl)-cu\d+(?===)", re.MULTILINE)
OUR_OWN = ("bench-agent", "bench-server", "bench-protocol")


def requirements(extras: str) -> str:
    """All that one environment can hold: the agent with its extras, the server, the tests."""
    return (
        f"{ROOT / 'shared'}\n"
        f"bench-agent[{extras}] @ {(ROOT / 'agent').as_uri()}\n"
        f"bench-server[postgresql] @ {(ROOT / 'server').as_uri()}\n"
        f"-r {ROOT / 'requirements-dev.txt'}\n"
    )


class DoesNotResolve(Exception):
    """No versions fit the pins; the message is uv's."""


def resolved(platform: str, python: str, extras: str, macos: str = MACOS) -> str:
    """What one environment holds, as ``uv pip compile`` writes it.

    Args:
        platform: a key of :data:`PLATFORMS`.
        python: such as ``3.12``.
        macos: the oldest version that the wheels must run on; other systems ignore it.

    Raises:
        DoesNotResolve: the pins do not fit together.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder) / "requirements.in", Path(folder) / "requirements.txt"
        asked.write_text(requirements(extras), encoding="utf-8")
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet"]
        command += ["--only-binary", ":all:"]
        for name in OUR_OWN:
            command += ["--no-binary", name]
        command += ["--python-platform", platform, "--python-version", python]
        command += ["--constraint", str(ROOT / "constraints.txt")]
        command += ["--output-file", str(answer), str(asked)]
        done = subprocess.run(
            command,
            env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": macos},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise DoesNotResolve(done.stderr.strip())
        return answer.read_text(encoding="utf-8")


def problem_of(platform: str, python: str, extras: str) -> str | None:
    """Why the extras cannot be one environment, or None."""
    try:
        packages = resolved(platform, python, extras)
    except DoesNotResolve as problem:
        return f"DOES NOT RESOLVE\n{problem}"
    return mixture(packages, cuda="cuda" in extras)


def mixture(resolved: str, *, cuda: bool) -> str | None:
    """Why these packages are no single build of CUDA's libraries, or None.

    Args:
        resolved: the output of ``uv pip compile``.
        cuda: the environment is for an NVIDIA GPU, so cuDNN and NCCL must be there.
    """
    builds: dict[str, list[str]] = {"cudnn": [], "nccl": []}
    for package in CUDA_LIBRARY.finditer(resolved):
        builds[package[1]].append(package[0])
    for library, packages in builds.items():
        if len(packages) > 1:
            return f"TWO BUILDS of {library} would share their files: {', '.join(packages)}"
        if cuda and not packages:
            return f"NO {library}"
    return None


def main() -> int:
    """Print one line a combination; 1 if any does not resolve or mixes builds."""
    failed = 0
    for platform, choices in PLATFORMS.items():
        for extras in choices:
            for python in PYTHONS:
                problem = problem_of(platform, python, extras)
                failed += problem is not None
                print(f"{platform:24} Python {python} [{extras}]: {problem or 'ok'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
