"""Check the NVIDIA driver, and the frameworks' CUDA builds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..base.install_hints import install_extras, pip, pip_install, pip_replace
from .finding import Finding
from .frameworks import FrameworkProbe
from .versions import at_least

# Requirements of each MLX build (ml-explore/mlx, docs/src/install.rst).
MLX_CUDA_13_DRIVER, MLX_CUDA_12_DRIVER = "580", "550.54.14"
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


def check_cuda_tensorflow(
    nvidia: Nvidia, seen: FrameworkProbe | None, packages: Mapping[str, str]
) -> Iterator[Finding]:
    """Check that TensorFlow sees the GPU if the driver works."""
    if not _usable(nvidia):
        yield Finding("cuda-tensorflow", "skip", "no NVIDIA driver with a visible GPU")
    elif seen is None or not seen.installed:
        yield Finding("cuda-tensorflow", "skip", "TensorFlow is not installed")
    elif "cuda" in seen.devices:
        yield Finding("cuda-tensorflow", "ok", "TensorFlow sees the NVIDIA GPU")
    elif "tensorflow-cpu" in packages:
        yield Finding(
            "cuda-tensorflow",
            "warn",
            "tensorflow-cpu is a build without GPU",
            f"{pip('uninstall', '-y', 'tensorflow-cpu')} && {install_extras('tensorflow-cuda')}",
        )
    else:
        version = packages.get("tensorflow")
        pin = f"=={version}" if version else ""
        yield Finding(
            "cuda-tensorflow",
            "warn",
            "TensorFlow does not see the GPU: CUDA's libraries are missing or do not fit",
            pip_install(f"tensorflow[and-cuda]{pin}"),
        )


def check_cuda_mlx(
    nvidia: Nvidia, seen: FrameworkProbe | None, packages: Mapping[str, str]
) -> Iterator[Finding]:
    """Check that the driver is new enough for MLX's CUDA build."""
    mlx = packages.get("mlx")
    driver = nvidia.driver or ""
    fitting = fitting_extra(driver)
    pin = f"=={mlx}" if mlx else ""
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
    elif fitting is None:
        yield Finding(
            "cuda-mlx",
            "fail" if _has_cuda_build(packages) else "warn",
            f"driver {driver} is too old for MLX: cuda12 needs {MLX_CUDA_12_DRIVER}",
            INSTALL_DRIVER["apt-get"],
        )
    elif "mlx-cuda-13" in packages and fitting == "cuda12":
        yield Finding(
            "cuda-mlx",
            "fail",
            f"driver {driver} is too old for MLX's cuda13, which needs {MLX_CUDA_13_DRIVER}",
            pip_replace(("mlx-cuda-13",), f"mlx[cuda12]{pin}"),
        )
    elif "cuda" in seen.devices:
        yield Finding("cuda-mlx", "ok", "MLX sees the NVIDIA GPU")
    elif _has_cuda_build(packages):
        yield Finding(
            "cuda-mlx",
            "warn",
            "MLX's CUDA build does not see the GPU: its CUDA libraries are missing",
            pip_install("--force-reinstall", f"mlx[{fitting}]{pin}"),
        )
    else:
        yield Finding(
            "cuda-mlx",
            "warn",
            "MLX is a build without GPU",
            pip_replace(("mlx-cpu",), "--force-reinstall", f"mlx[{fitting}]{pin}"),
        )


def fitting_extra(driver: str) -> str | None:
    """MLX's extra for a driver, or None if the driver is too old for all of them."""
    if at_least(driver, MLX_CUDA_13_DRIVER):
        return "cuda13"
    return "cuda12" if at_least(driver, MLX_CUDA_12_DRIVER) else None


def _usable(nvidia: Nvidia) -> bool:
    return nvidia.driver is not None and not nvidia.hidden


def _has_cuda_build(packages: Mapping[str, str]) -> bool:
    return bool({"mlx-cuda-12", "mlx-cuda-13"} & packages.keys())
