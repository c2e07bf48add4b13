"""The check of the pins: one build of cuDNN and of NCCL in each set that is installed together."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("check_pins", ROOT / "deploy" / "check_pins.py")
assert SPEC is not None
assert SPEC.loader is not None
check_pins = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_pins)

# As `uv pip compile` wrote it, shortened.
CUDA_12 = """\
mlx==0.32.4
    # via bench-agent (agent)
mlx-cuda-12==0.32.4
    # via mlx
nvidia-cudnn-cu12==9.28.0.42
    # via
    #   mlx-cuda-12
    #   tensorflow
nvidia-nccl-cu12==2.32.3
    # via
    #   mlx-cuda-12
    #   tensorflow
tensorflow==2.21.0
    # via bench-agent (agent)
"""
CUDA_13 = """\
nvidia-cudnn-cu13==9.20.0.48
    # via torch
nvidia-nccl-cu13==2.29.7
    # via torch
torch==2.13.0
"""


def test_one_build_is_no_problem() -> None:
    assert check_pins.mixture(CUDA_12, cuda=True) is None
    assert check_pins.mixture(CUDA_13, cuda=True) is None
    assert check_pins.mixture("tensorflow-cpu==2.21.0\n", cuda=False) is None


def test_two_builds_are_a_mixture_that_resolving_does_not_see() -> None:
    problem = check_pins.mixture(CUDA_12 + CUDA_13, cuda=True)
    assert "nvidia-cudnn-cu12, nvidia-cudnn-cu13" in problem


def test_a_set_for_a_gpu_without_its_libraries_is_none() -> None:
    assert check_pins.mixture("tensorflow-cpu==2.21.0\n", cuda=True) == "NO cudnn"


@pytest.mark.parametrize("variable", ["EXTRAS", "CUDA13_EXTRAS"])
def test_what_make_installs_beside_an_nvidia_driver_is_checked(variable: str) -> None:
    lines = (ROOT / "Makefile").read_text().splitlines()
    (extras,) = {
        line.split("=")[1].strip()
        for line in lines
        if line.partition(" ")[0] == variable and "cuda" in line
    }
    assert extras in check_pins.CUDA
    assert extras in check_pins.PLATFORMS["x86_64-manylinux_2_35"]
