"""Check each interpreter's packages and each framework: installed, imports, sees a device, passes
its self-tests."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.version import InvalidVersion, Version

from bench_protocol.catalogue.matrix import Precision

from .. import engines
from ..base.install_hints import CUDA_12_LIBRARY, Pip, extras_for, has_cuda_12, install_note
from ..base.messages import Probe
from ..base.precisions import ALL_PRECISIONS, too_old
from ..machine import macos
from ..run.interpreters import Interpreter
from ..run.patience import Place
from ..run.self_test import Outcome, recipes_for
from .finding import Finding, fail, ok, skip, warn

CUDA_12, CUDA_13 = "cuda12", "cuda13"
MLX_BACKENDS = ("mlx-metal", "mlx-cpu", "mlx-cuda-12", "mlx-cuda-13")
BUNDLED_BLAS = "bundled reference BLAS"
# Package managers: what comes before a package, and the packages of a compiler and a fast BLAS.
# The first manager that is installed is used.
MANAGERS = {
    "apt-get": ("apt-get update && {sudo}apt-get install -y", "g++", "libopenblas0"),
    "dnf": ("dnf install -y", "gcc-c++", "openblas"),
    "yum": ("yum install -y", "gcc-c++", "openblas"),
    "pacman": ("pacman -S --needed", "gcc", "openblas"),
    "zypper": ("zypper install -y", "gcc-c++", "libopenblas0"),
    "apk": ("apk add", "g++", "openblas"),
}


# Variables that change a precision whatever the framework was told.
OVERRIDES = (
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "ONEDNN_DEFAULT_FPMATH_MODE",
)


@dataclass(frozen=True)
class Software:
    """The packages of one interpreter (versions by normalised name), and the commands that change
    them. ``place``: goes into a sentence; empty for the agent's own interpreter."""

    packages: Mapping[str, str] = field(default_factory=dict)
    pip: Pip = field(default_factory=Pip)
    place: str = ""

    @property
    def cuda(self) -> str | None:
        """The CUDA whose cuDNN is installed; None without one. CUDA 12 where both are, because
        TensorFlow has no other."""
        if CUDA_12_LIBRARY in self.packages:
            return CUDA_12
        return CUDA_13 if "nvidia-cudnn-cu13" in self.packages else None


@dataclass(frozen=True)
class FrameworkProbe:
    """The answer of one framework's probe, ``devices`` like ``("metal", "cpu")``. ``software``: the
    packages of its interpreter, the one that its GPU's workers start under if it sees one."""

    installed: bool
    devices: tuple[str, ...] = ()
    version: str | None = None
    blas: str | None = None
    problem: str | None = None
    software: Software = field(default_factory=Software)


def software_of(interpreter: Interpreter) -> Software:
    there = interpreter.description
    place = f" in {interpreter.path}" if interpreter.path else ""
    return Software(there.packages if there else {}, interpreter.pip, place)


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version: ``2.19.1rc0`` is (2, 19, 1); empty for an unreadable one."""
    try:
        return Version(version).release
    except InvalidVersion:
        return ()


def at_least(version: str, limit: str) -> bool:
    """Whether a version is the limit or newer. False for an unreadable version."""
    return release(version) >= release(limit)


def check_environments(every: Sequence[Interpreter], unreadable: str | None) -> Iterator[Finding]:
    """One finding for each added interpreter: whether a worker can start under it.
    ``unreadable``: why their list cannot be read."""
    if unreadable:
        yield fail(unreadable)
    elif len(every) == 1:
        yield skip("no interpreter was added to the agent's own")
    for interpreter in every[1:]:
        if interpreter.problem:
            sentence = f"{interpreter.place}: {interpreter.problem}; runs leave it out"
            yield fail(sentence, interpreter.hint)
        else:
            frameworks = ", ".join(interpreter.frameworks) or "no framework"
            yield ok(f"{interpreter.place} has {frameworks}")


def check_shared_libraries(every: Sequence[Interpreter]) -> Iterator[Finding]:
    """Check that no two distributions install different content into one file.

    Which content is there depends on the order of their installation, and reinstalling one leaves
    a mixture. cuDNN and NCCL for CUDA 12 and for CUDA 13 are such pairs; pip reports nothing.
    """
    sound = True
    for interpreter in every:
        for group in interpreter.description.shared if interpreter.description else ():
            sound = False
            names = " and ".join(group.distributions)
            others = f" and {group.libraries - 1} more" if group.libraries > 1 else ""
            where = f"{group.example}{others}{software_of(interpreter).place}"
            advice = "make separate environments, one for each CUDA"
            hint = interpreter.pip.separate_environments()
            yield fail(f"{names} both install {where}: {advice}", hint)
    if sound:
        yield ok("no two packages install the same library file")


def check_frameworks(frameworks: Mapping[str, FrameworkProbe]) -> Iterator[Finding]:
    """One finding for each framework, and a failure if none works."""
    for name, seen in frameworks.items():
        software = seen.software
        if not seen.installed:
            hint = software.pip.install_framework(name, cuda_12=software.cuda == CUDA_12)
            yield skip(f"{name} is not installed{install_note(name)}", hint, of=name)
        elif seen.devices:
            version = f" {seen.version}" if seen.version else ""
            devices = ", ".join(seen.devices)
            yield ok(f"{name}{version} sees {devices}{software.place}", of=name)
        else:
            why = seen.problem or "it sees no device"
            sentence = f"{name} is installed{software.place} but cannot be used: {why}"
            yield fail(sentence, reinstall(name, software), of=name)
    if not any(seen.devices for seen in frameworks.values()):
        extras = extras_for(frameworks or ("mlx",), cuda_12=has_cuda_12())
        sentence = "no framework works here, so nothing can be measured"
        yield fail(sentence, Pip().install_extras(*extras))


def reinstall(name: str, software: Software) -> str:
    """The command that reinstalls a framework's distributions at their versions, and what they need
    and lack. Never the agent itself: its name in an index is a stranger's package."""
    packages, pip = software.packages, software.pip
    requirements = [
        # MLX and its backend have one version.
        f"{package}=={packages.get('mlx', version) if package in MLX_BACKENDS else version}"
        for package, version in sorted(packages.items())
        if package == name or package.startswith(f"{name}-")
    ]
    if not requirements:
        return pip.install_extras(name)
    return f"{pip.reinstall(*requirements)} && {pip.install(*requirements)}"


def check_mlx_backend(software: Software, system: str) -> Iterator[Finding]:
    """Check MLX's backend on Linux. ``pip install mlx`` installs none; both need one version."""
    packages, pip = software.packages, software.pip
    mlx = packages.get("mlx")
    backends = {name: packages[name] for name in MLX_BACKENDS if name in packages}
    odd = [name for name, version in backends.items() if version != mlx]
    if mlx is None:
        yield skip("MLX is not installed")
    elif not backends:
        extra = "" if system == "Darwin" else "[cpu]"
        hint = pip.install(f"mlx{extra}=={mlx}")
        yield fail(f"MLX {mlx} has no backend: importing it fails", hint)
    elif odd:
        # Pinned: without a version pip leaves an installed backend alone. Both are reinstalled:
        # they write into one folder, and removing one breaks the other.
        hint = pip.reinstall(f"mlx=={mlx}", *(f"{name}=={mlx}" for name in odd))
        versions = ", ".join(f"{name} {backends[name]}" for name in odd)
        yield fail(f"MLX {mlx} with {versions}: the two must have one version", hint)
    else:
        yield ok(f"MLX {mlx} with {', '.join(backends)}")


def check_mlx_blas(mlx: FrameworkProbe | None, system: str) -> Iterator[Finding]:
    """MLX's own BLAS on Linux CPUs is about twenty times slower than a fast BLAS."""
    if system != "Linux" or mlx is None or not mlx.devices or "cuda" in mlx.devices:
        yield skip("only MLX on a Linux CPU needs a BLAS")
    elif mlx.blas in (None, BUNDLED_BLAS):
        sentence = "MLX computes matrix products with its slow reference BLAS"
        yield warn(sentence, system_package("blas"))
    else:
        yield ok(f"MLX computes matrix products with {mlx.blas}")


def check_compiler(mlx: FrameworkProbe | None, system: str, compiler: bool) -> Iterator[Finding]:
    """On Linux CPUs ``mx.compile`` builds kernels with g++; ``compiler``: it is on PATH."""
    if system != "Linux" or mlx is None or not mlx.installed or "cuda" in mlx.devices:
        yield skip("only MLX on a Linux CPU compiles with g++")
    elif compiler:
        yield ok("g++ for MLX's compiled kernels is installed")
    else:
        sentence = "g++ is missing: MLX's tuned recipe runs without compiled kernels, slower"
        yield warn(sentence, system_package("g++"))


def system_package(need: str, which: Callable[[str], str | None] = shutil.which) -> str | None:
    """Install a compiler (``g++``) or a fast BLAS (``blas``); None without a known manager."""
    sudo = "sudo " if which("sudo") else ""
    for manager, (command, compiler, blas) in MANAGERS.items():
        if which(manager):
            package = compiler if need == "g++" else blas
            return f"{sudo}{command.format(sudo=sudo)} {package}"
    return None


@dataclass(frozen=True)
class Tested:
    """A device in a precision, the outcome of its self-test, and its framework's packages."""

    place: Place
    precision: Precision
    outcome: Outcome
    software: Software


def to_test(probes: Mapping[str, Probe]) -> Iterator[tuple[Place, Precision]]:
    """Every framework on the first device of each kind, in each precision that it has there."""
    for framework in engines.names():
        for device in probes[framework].devices if framework in probes else ():
            if device.index:
                continue
            place = Place(framework, device.device, device.python)
            for precision in ALL_PRECISIONS:
                possible = recipes_for(framework, device.kind, precision)
                if possible and not too_old(device, precision, macos.version):
                    yield place, precision


def check_self_tests(
    tests: Sequence[Tested] | None, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """One finding for each self-test; ``tests`` is None if none was asked for."""
    if not tests:
        yield skip("only doctor --deep runs it" if tests is None else "no framework sees a device")
    overrides = [name for name in OVERRIDES if name in environ]
    for tested in tests or ():
        place = tested.place
        subject = f"{place.framework}-{place.device.kind}-{tested.precision}"
        what = f"{place} in {tested.precision}"
        if tested.outcome.problems:
            unset = f"unset {' '.join(overrides)}" if overrides else None
            hint = unset or reinstall(place.framework, tested.software)
            yield fail(f"{what} cannot be measured: {tested.outcome.words}", hint, of=subject)
        else:
            yield ok(f"{what} synchronises, computes and copies correctly", of=subject)
