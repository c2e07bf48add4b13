"""Check GPUs: Apple's with TensorFlow's plug-in, NVIDIA's driver, and each framework's build."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench_protocol.payload.machine import Gpu

from ..base.install_hints import FOR_CUDA_13
from ..machine import nvidia as driver
from ..machine.text import file_text
from .finding import Finding, fail, ok, skip, warn
from .frameworks import CUDA_12, CUDA_13, FrameworkProbe, Software, at_least, reinstall, release

PLUGIN, GOOD_PLUGIN = "tensorflow-metal", "1.2.0"
# TensorFlow's versions that the plug-in loads into, and the NumPy that each allows. The plug-in
# finds TensorFlow's library by the name it was linked with; TensorFlow 2.20 renamed it. 1.1.0 with
# 2.18: tensorflow issue 84167. Sources: docs/adr/0001.
NUMPY_BELOW: dict[tuple[int, ...], str] = {(2, 18): "2.1", (2, 19): "2.2"}
FIRST_WITH_OTHER_NAME = "2.20"
TENSORFLOW = "tensorflow>=2.18,<2.20"
SOUND = (TENSORFLOW, f"{PLUGIN}=={GOOD_PLUGIN}", "numpy<2.2", "keras>=3.12,<4")

# Requirements of each MLX build (ml-explore/mlx, docs/src/install.rst).
DRIVERS = {CUDA_12: "550.54.14", CUDA_13: "580"}
BUILDS = {CUDA_12: "mlx-cuda-12", CUDA_13: "mlx-cuda-13"}
MLX_CAPABILITY = "7.5"
INSTALL_DRIVER = {
    "ubuntu-drivers": "sudo ubuntu-drivers install && sudo reboot",
    "apt-get": "sudo apt-get install -y nvidia-driver && sudo reboot",
    "dnf": "sudo dnf install -y nvidia-open && sudo reboot",
}
CONTAINER = 'docker run --rm -it --gpus all -v "$PWD:/work" -w /work python:3.13 bash'
NO_GPU = "no NVIDIA driver with a visible GPU"
BUS = Path("/sys/bus/pci/devices")


@dataclass(frozen=True)
class Nvidia:
    """``present``: the bus has an NVIDIA GPU, or its kernel module is loaded. ``problem``: NVML's
    error if it cannot start, or why its GPUs are not CUDA's. ``names`` and ``capabilities`` of the
    visible GPUs, such as ``9.0``. ``hidden``: CUDA_VISIBLE_DEVICES lets none through."""

    present: bool = False
    driver: str | None = None
    problem: str | None = None
    names: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    hidden: bool = False

    @property
    def usable(self) -> bool:
        return bool(self.driver or self.names) and not self.hidden


def read_nvidia(gpus: Sequence[Gpu], environ: Mapping[str, str] = os.environ) -> Nvidia:
    """The driver, and the GPUs that the frameworks may see."""
    of_nvml = driver.driver_version()
    seen = [gpu for gpu in gpus if gpu.kind == "cuda"]
    hidden = of_nvml is not None and not seen and "CUDA_VISIBLE_DEVICES" in environ
    lists_none = "the CUDA driver lists no GPU" if of_nvml and not seen and not hidden else None
    return Nvidia(
        present=bool(file_text(driver.KERNEL_MODULE)) or any(_on_bus()),
        driver=None if lists_none else of_nvml or next((gpu.driver for gpu in seen), None),
        problem=lists_none or (None if of_nvml else driver.why_no_driver()),
        names=tuple(gpu.name for gpu in seen),
        capabilities=tuple(gpu.compute_capability for gpu in seen if gpu.compute_capability),
        hidden=hidden,
    )


def _on_bus() -> Iterator[bool]:
    """For each device on the bus: whether it is an NVIDIA display or 3D controller."""
    for device in sorted(BUS.glob("*")):
        vendor = file_text(device / "vendor").strip()
        yield vendor == "0x10de" and file_text(device / "class").startswith("0x03")


def check_metal(frameworks: Mapping[str, FrameworkProbe], apple_silicon: bool) -> Iterator[Finding]:
    """Check that every framework sees the Mac's GPU. JAX has no build of its own for it: jax-mps is
    another project's plug-in."""
    if not apple_silicon:
        yield skip("no Mac with Apple's processor")
        return
    for name, seen in frameworks.items():
        if "metal" in seen.devices:
            untested = " through jax-mps, which was never tested on a Mac" if name == "jax" else ""
            yield ok(f"{name} sees Apple's GPU{untested}", of=name)
        elif seen.devices and name == "jax":
            sentence = "jax runs on the CPU; its plug-in jax-mps needs an environment of its own"
            yield skip(sentence, of=name)
        elif seen.devices:
            yield warn(f"{name} runs on the CPU only", reinstall(name, seen.software), of=name)


def check_pair(software: Software, apple_silicon: bool) -> Iterator[Finding]:
    """Check that TensorFlow and Apple's plug-in load together, from the metadata of the interpreter
    that TensorFlow's workers start under: a wrong pair breaks the import itself."""
    packages, install = software.packages, software.pip.install
    tensorflow = packages.get("tensorflow") or packages.get("tensorflow-macos")
    plugin, numpy = packages.get(PLUGIN), packages.get("numpy", "")
    pair = f"{PLUGIN} {plugin} with TensorFlow {tensorflow}"
    numpy_below = NUMPY_BELOW.get(release(tensorflow or "")[:2])
    if plugin is None and not apple_silicon:
        yield skip("Apple's plug-in is for Macs only")
    elif plugin is None and tensorflow is None:
        yield skip("TensorFlow is not installed")
    elif plugin is None:
        hint = install(*((f"{PLUGIN}=={GOOD_PLUGIN}",) if numpy_below else SOUND))
        yield warn(f"TensorFlow {tensorflow} without {PLUGIN}: the CPU only", hint)
    elif tensorflow is None:
        hint = install(TENSORFLOW, *SOUND[2:])
        yield fail(f"{PLUGIN} {plugin} is installed without TensorFlow", hint)
    elif at_least(tensorflow, FIRST_WITH_OTHER_NAME):
        wrong = [SOUND[1]] if plugin != GOOD_PLUGIN else []
        wrong += [SOUND[2]] if at_least(numpy, "2.2") else []
        sentence = f"{pair} cannot load: importing TensorFlow fails; 2.19 is the last that works"
        yield fail(sentence, install(TENSORFLOW, *wrong))
    elif numpy_below is None:
        sentence = f"{pair} is not among the pairs that are known to load and compute correctly"
        yield warn(sentence, install(*SOUND))
    elif plugin != GOOD_PLUGIN:
        sentence = f"{pair} is known to fail; {GOOD_PLUGIN} is the one for it"
        yield fail(sentence, install(f"{PLUGIN}=={GOOD_PLUGIN}"))
    elif at_least(numpy, numpy_below):
        sentence = f"NumPy {numpy} is newer than TensorFlow {tensorflow} allows"
        yield warn(sentence, install(f"numpy<{numpy_below}"))
    else:
        yield ok(f"{pair} loads")


def check_driver(nvidia: Nvidia, container: bool, tools: Sequence[str]) -> Iterator[Finding]:
    """Check that a GPU on the bus has a driver, and that kernel module and library agree.
    ``tools``: those of :data:`INSTALL_DRIVER` that are on PATH."""
    if nvidia.hidden:
        sentence = "CUDA_VISIBLE_DEVICES hides every GPU from the frameworks"
        yield warn(sentence, "unset CUDA_VISIBLE_DEVICES")
    elif nvidia.names and nvidia.problem:
        lacking = f"NVML does not answer ({nvidia.problem}), so its use, heat and power are unknown"
        yield ok(f"the CUDA driver lists {nvidia.names[0]}; {lacking}")
    elif nvidia.driver:
        yield ok(f"NVIDIA driver {nvidia.driver}")
    elif not nvidia.present:
        yield skip("no NVIDIA GPU")
    elif "mismatch" in (nvidia.problem or "").lower():
        sentence = "the driver was updated; kernel module and library differ until the next reboot"
        yield fail(sentence, "sudo reboot")
    elif container:
        sentence = "there is an NVIDIA GPU, but this container was started without it"
        yield warn(sentence, CONTAINER)
    else:
        why = nvidia.problem or "not installed"
        hint = next((INSTALL_DRIVER[tool] for tool in INSTALL_DRIVER if tool in tools), None)
        yield warn(f"there is an NVIDIA GPU, but no working driver ({why})", hint)


def check_cuda(nvidia: Nvidia, frameworks: Mapping[str, FrameworkProbe]) -> Iterator[Finding]:
    """Check that each framework sees the NVIDIA GPU if the driver works."""
    if not nvidia.usable:
        yield skip(NO_GPU)
        return
    for name, seen in frameworks.items():
        if not seen.installed:
            yield skip(f"{name} is not installed", of=name)
        elif name == "mlx" and (finding := _too_old_for_mlx(nvidia, seen.software)):
            yield finding
        elif "cuda" in seen.devices:
            yield ok(f"{name} sees the NVIDIA GPU", of=name)
        elif name == "mlx":
            yield _mlx_without_cuda(seen.software)
        elif name == "tensorflow":
            yield _tensorflow_without_cuda(seen.software)
        elif seen.devices and name in FOR_CUDA_13:
            cuda_12 = seen.software.cuda == CUDA_12
            hint = seen.software.pip.install_cuda_13(name, cuda_12=cuda_12)
            yield warn(f"{name} runs on the CPU only", hint, of=name)
        else:
            yield skip(f"{name} cannot be used", of=name)


def _tensorflow_without_cuda(software: Software) -> Finding:
    packages, pip = software.packages, software.pip
    if software.cuda == CUDA_13:
        why = "TensorFlow is built for CUDA 12, and its environment has CUDA 13's libraries"
        return warn(why, pip.separate_environments(), of="tensorflow")
    if "tensorflow-cpu" in packages:
        hint = f"{pip.uninstall('tensorflow-cpu')} && {pip.install_extras('tensorflow-cuda')}"
        return warn("tensorflow-cpu is a build without GPU", hint, of="tensorflow")
    version = packages.get("tensorflow")
    hint = pip.install(f"tensorflow[and-cuda]{f'=={version}' if version else ''}")
    why = "TensorFlow does not see the GPU: CUDA's libraries are missing or do not fit"
    return warn(why, hint, of="tensorflow")


def _mlx_builds(software: Software) -> list[str]:
    return [cuda for cuda, build in BUILDS.items() if build in software.packages]


def _too_old_for_mlx(nvidia: Nvidia, software: Software) -> Finding | None:
    """Name the GPU or the driver if it is too old for MLX's CUDA build."""
    version, builds = nvidia.driver, _mlx_builds(software)
    if not any(at_least(one, MLX_CAPABILITY) for one in nvidia.capabilities or ("9",)):
        capabilities = ", ".join(nvidia.capabilities)
        return skip(f"MLX needs compute capability 7.5; this has {capabilities}", of="mlx")
    if version is None:
        return None
    if not at_least(version, DRIVERS[CUDA_12]):
        sentence = f"driver {version} is too old for MLX: cuda12 needs {DRIVERS[CUDA_12]}"
        finding = fail if builds else warn
        return finding(sentence, INSTALL_DRIVER["apt-get"], of="mlx")
    if builds == [CUDA_13] and not at_least(version, DRIVERS[CUDA_13]):
        needed = f"MLX's cuda13, which needs {DRIVERS[CUDA_13]}"
        hint = software.pip.separate_environments()
        return fail(f"driver {version} is too old for {needed}", hint, of="mlx")
    return None


def _mlx_without_cuda(software: Software) -> Finding:
    pip, version = software.pip, software.packages.get("mlx")
    pin, builds = f"=={version}" if version else "", _mlx_builds(software)
    if builds:
        files = pip.reinstall(f"mlx{pin}", f"{BUILDS[builds[0]]}{pin}")
        sentence = "MLX's CUDA build does not see the GPU: its CUDA libraries are missing"
        return warn(sentence, f"{files} && {pip.install(f'mlx[{builds[0]}]{pin}')}", of="mlx")
    # The CUDA that is there: a second one would install over its files.
    hint = pip.replace(("mlx-cpu", "mlx"), f"mlx[{software.cuda or CUDA_12}]{pin}")
    return warn("MLX is a build without GPU", hint, of="mlx")
