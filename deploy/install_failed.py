"""The page that ``make install`` and ``make demo`` end with where pip failed: what worked, what did
not, and one command for each way on.

Standard library only: nothing is installed yet. ``python deploy/install_failed.py EXTRAS``.
"""

import platform
import shutil
import sys
from collections.abc import Iterator

GIGABYTE = 1e9
# Room for the wheels and what they unpack to: 8 GB were installed for NVIDIA GPUs.
NEEDED_GIGABYTES = {"tensorflow-cuda,mlx-cuda": 12}
OTHERWISE_GIGABYTES = 4


def page(extras: str, free_bytes: int) -> str:
    """The page.

    Args:
        extras: the frameworks that were to be installed, with commas.
        free_bytes: free space of the disk with this folder.
    """
    return "\n".join(("", *_lines(extras, free_bytes)))


def _lines(extras: str, free_bytes: int) -> Iterator[str]:
    yield "What worked"
    yield f"  Python {platform.python_version()} made the environment .venv"
    yield ""
    yield "What did not"
    yield f"  pip could not install Trainmark with {extras}. Its error is above."
    yield "  Nothing was measured."
    needed = NEEDED_GIGABYTES.get(extras, OTHERWISE_GIGABYTES)
    if free_bytes < needed * GIGABYTE:
        free = free_bytes / GIGABYTE
        yield f"  {free:.1f} GB are free on this disk; the installation needs about {needed} GB."
        yield "      free some space, then: make demo"
    yield "  Try again, for a network that failed:"
    yield "      make demo"
    for words, other in OTHERS.get(extras, ()):
        yield f"  {words}:"
        yield f"      make demo EXTRAS={other}"
    yield ""
    yield "For an issue: pip's error, and this line:"
    yield f"      {platform.platform()}, {platform.machine()}, Python {platform.python_version()}"


# Smaller sets of frameworks, for wheels that do not exist for this system.
OTHERS = {
    "mlx,torch,energy": (("Without MLX", "torch,energy"), ("Without PyTorch", "mlx,energy")),
    "tensorflow-cuda,mlx-cuda": (
        ("Without MLX", "tensorflow-cuda"),
        ("On the processor alone", "tensorflow,mlx"),
    ),
    "tensorflow,mlx": (("Without MLX", "tensorflow"), ("Without TensorFlow", "mlx")),
}


if __name__ == "__main__":
    print(page(sys.argv[1], shutil.disk_usage(".").free), file=sys.stderr)
