"""Check the NVIDIA driver, and the frameworks' CUDA builds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..base.install_hints import FOR_CUDA_13
from .finding import Finding
from .frameworks import FrameworkProbe
from .software import CUDA_12, CUDA_13, Software
from .versions import at_least

# Requirements of each MLX build (ml-explore/mlx, docs/src/install.rst).
DRIVERS = {CUDA_12: "550.54.14", CUDA_13: "580"}
BUILDS = {CUDA_12: "mlx-cuda-12", CUDA_13: "mlx-cuda-13"}
MLX_CAPABILITY = "7.5"
INSTALL_DRIVER = {
    "ubuntu-drivers": "sudo ubuntu-drivers install && sudo reboot",
    "apt-get": "sudo apt-get install -y nvidia-driver && sudo reboot",
    "dnf": "sudo dnf install -y nvidia-open && sudo reboot",
}


@dataclass(frozen=True)
class Nvidia:
    """``on_bus``: the bus has an NVIDIA GPU. ``problem``: NVML's error if it cannot start.

    ``kernel_driver``: the kernel module is loaded. ``capabilities`` of the visible
    GPUs, such as ``9.0``. ``hidden``: CUDA_VISIBLE_DEVICES lets none through.
    """

    on_bus: bool = False
    kernel_driver: bool = False
    driver: str | None = None
    problem: str | None = None
    capabilities: tuple[str, ...] = ()
    hidden: bool = False


def check_driver(nvidia: Nvidia, container: bool, tools: tuple[str, ...]) -> Iterator[Finding]:
    """Check that a GPU on the bus has a driver, and that kernel module and library agree.

    Args:
        tools: those of :data:`INSTALL_DRIVER` that are on PATH.
    """
    if nvidia.driver and nvidia.hidden:
        yield Finding(
            "nvidia-driver",
            "warn",
            "CUDA_VISIBLE_DEVICES hides every GPU from the frameworks",
            "unset CUDA_VISIBLE_DEVICES",
        )
    elif nvidia.driver:
        yield Finding("nvidia-driver", "ok", f"NVIDIA driver {nvidia.driver}")
    elif not (nvidia.on_bus or nvidia.kernel_driver):
        yield Finding("nvidia-driver", "skip", "no NVIDIA GPU")
    elif "mismatch" in (nvidia.problem or "").lower():
        yield Finding(
            "nvidia-driver",
            "fail",
            "the driver was updated; kernel module and library differ until the next reboot",
            "sudo reboot",
        )
    elif container:
        yield Finding(
            "nvidia-driver",
            "warn",
            "there is an NVIDIA GPU, but this container was started without it",
            'docker run --rm -it --gpus all -v "$PWD:/work" -w /work python:3.12 bash',
        )
    else:
        yield Finding(
            "nvidia-driver",
            "warn",
            f"there is an NVIDIA GPU, but no working driver ({nvidia.problem or 'not installed'})",
            next((INSTALL_DRIVER[tool] for tool in INSTALL_DRIVER if tool in tools), None),
        )


def check_cuda_tensorflow(nvidia: Nvidia, seen: FrameworkProbe | None) -> Iterator[Finding]:
    """Check that TensorFlow sees the GPU if the driver works."""
    software = seen.software if seen else Software()
    packages, pip = software.packages, software.pip
    if not _usable(nvidia):
        yield Finding("cuda-tensorflow", "skip", "no NVIDIA driver with a visible GPU")
    elif seen is None or not seen.installed:
        yield Finding("cuda-tensorflow", "skip", "TensorFlow is not installed")
    elif "cuda" in seen.devices:
        yield Finding("cuda-tensorflow", "ok", "TensorFlow sees the NVIDIA GPU")
    elif software.cuda == CUDA_13:
        yield Finding(
            "cuda-tensorflow",
            "warn",
            "TensorFlow is built for CUDA 12, and its environment has CUDA 13's libraries",
            pip.separate_environments(),
        )
    elif "tensorflow-cpu" in packages:
        yield Finding(
            "cuda-tensorflow",
            "warn",
            "tensorflow-cpu is a build without GPU",
            f"{pip.uninstall('tensorflow-cpu')} && {pip.install_extras('tensorflow-cuda')}",
        )
    else:
        version = packages.get("tensorflow")
        pin = f"=={version}" if version else ""
        yield Finding(
            "cuda-tensorflow",
            "warn",
            "TensorFlow does not see the GPU: CUDA's libraries are missing or do not fit",
            pip.install(f"tensorflow[and-cuda]{pin}"),
        )


def check_cuda_mlx(nvidia: Nvidia, seen: FrameworkProbe | None) -> Iterator[Finding]:
    """Check MLX's CUDA build: a driver that is new enough, and one CUDA with its environment."""
    software = seen.software if seen else Software()
    packages, pip = software.packages, software.pip
    driver, mlx = nvidia.driver or "", packages.get("mlx")
    pin = f"=={mlx}" if mlx else ""
    installed = [cuda for cuda, build in BUILDS.items() if build in packages]
    if not _usable(nvidia):
        yield Finding("cuda-mlx", "skip", "no NVIDIA driver with a visible GPU")
    elif seen is None or not seen.installed:
        yield Finding("cuda-mlx", "skip", "MLX is not installed")
    elif not any(
        at_least(capability, MLX_CAPABILITY) for capability in nvidia.capabilities or ("9",)
    ):
        capabilities = ", ".join(nvidia.capabilities)
        yield Finding(
            "cuda-mlx", "skip", f"MLX needs compute capability 7.5; this has {capabilities}"
        )
    elif not at_least(driver, DRIVERS[CUDA_12]):
        yield Finding(
            "cuda-mlx",
            "fail" if installed else "warn",
            f"driver {driver} is too old for MLX: cuda12 needs {DRIVERS[CUDA_12]}",
            INSTALL_DRIVER["apt-get"],
        )
    elif installed == [CUDA_13] and not at_least(driver, DRIVERS[CUDA_13]):
        yield Finding(
            "cuda-mlx",
            "fail",
            f"driver {driver} is too old for MLX's cuda13, which needs {DRIVERS[CUDA_13]}",
            pip.separate_environments(),
        )
    elif "cuda" in seen.devices:
        yield Finding("cuda-mlx", "ok", "MLX sees the NVIDIA GPU")
    elif installed:
        files = pip.reinstall(f"mlx{pin}", f"{BUILDS[installed[0]]}{pin}")
        yield Finding(
            "cuda-mlx",
            "warn",
            "MLX's CUDA build does not see the GPU: its CUDA libraries are missing",
            f"{files} && {pip.install(f'mlx[{installed[0]}]{pin}')}",
        )
    else:
        # The CUDA that is there: a second one would install over its files.
        cuda = software.cuda or CUDA_12
        yield Finding(
            "cuda-mlx",
            "warn",
            "MLX is a build without GPU",
            pip.replace(("mlx-cpu", "mlx"), f"mlx[{cuda}]{pin}"),
        )


def check_cuda_others(
    nvidia: Nvidia, frameworks: Mapping[str, FrameworkProbe]
) -> Iterator[Finding]:
    """Check that JAX and PyTorch see the GPU if the driver works: their CPU builds do not."""
    if not _usable(nvidia):
        yield Finding("cuda", "skip", "no NVIDIA driver with a visible GPU")
        return
    for name in FOR_CUDA_13:
        seen = frameworks.get(name, FrameworkProbe(installed=False))
        if not seen.devices:
            yield Finding(f"cuda.{name}", "skip", f"{name} is not installed or cannot be used")
        elif "cuda" in seen.devices:
            yield Finding(f"cuda.{name}", "ok", f"{name} sees the NVIDIA GPU")
        else:
            software = seen.software
            yield Finding(
                f"cuda.{name}",
                "warn",
                f"{name} runs on the CPU only",
                software.pip.install_cuda_13(name, cuda_12=software.cuda == CUDA_12),
            )


def _usable(nvidia: Nvidia) -> bool:
    return nvidia.driver is not None and not nvidia.hidden
