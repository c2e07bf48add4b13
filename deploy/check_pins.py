"""Checks from any machine that the pins resolve for every platform and Python that we support.

``uv pip compile`` evaluates environment markers for the platform it is told. It names macOS 13
unless told otherwise; current MLX wants 14.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12")
# uv's name of each platform, and the agent's extras that are installed there.
PLATFORMS = {
    "aarch64-apple-darwin": ("metal,jax,torch",),
    "x86_64-manylinux_2_35": (
        "tensorflow,mlx,jax,torch",
        "tensorflow-cuda,mlx-cuda",
        "jax-cuda,torch,mlx-cuda",
    ),
    "aarch64-manylinux_2_35": ("tensorflow,mlx,jax,torch",),
}
MACOS = "14.0"


def resolves(platform: str, python: str, extras: str) -> str | None:
    """None if the pins resolve, else what uv says."""
    requirements = (
        f"{ROOT / 'shared'}\n"
        f"bench-agent[{extras}] @ {(ROOT / 'agent').as_uri()}\n"
        f"bench-server[postgresql] @ {(ROOT / 'server').as_uri()}\n"
        f"-r {ROOT / 'requirements-dev.txt'}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "requirements.in"
        asked.write_text(requirements, encoding="utf-8")
        done = subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "uv",
                    "pip",
                    "compile",
                    "--quiet",
                    "--only-binary",
                    ":all:",
                ),
                *("--no-binary", "bench-agent", "--no-binary", "bench-server"),
                *("--no-binary", "bench-protocol"),
                *("--python-platform", platform, "--python-version", python),
                *("--constraint", ROOT / "constraints.txt", "--output-file", Path(folder) / "out"),
                asked,
            ],
            env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": MACOS},
            capture_output=True,
            text=True,
        )
    return None if done.returncode == 0 else done.stderr.strip()


def main() -> int:
    """Print one line a combination; 1 if any does not resolve."""
    failed = 0
    for platform, choices in PLATFORMS.items():
        for extras in choices:
            for python in PYTHONS:
                problem = resolves(platform, python, extras)
                failed += problem is not None
                verdict = "ok" if problem is None else f"DOES NOT RESOLVE\n{problem}"
                print(f"{platform:24} Python {python} [{extras}]: {verdict}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
