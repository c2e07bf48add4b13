"""Check each framework: installed, imports, sees devices; MLX: backend, fast BLAS, compiler."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..base.install_hints import Pip, extras_for, has_cuda_12, size_note
from .finding import Finding
from .fixes import system_package
from .software import CUDA_12, CUDA_13, Software

MLX_BACKENDS = ("mlx-metal", "mlx-cpu", "mlx-cuda-12", "mlx-cuda-13")
BUNDLED_BLAS = "bundled reference BLAS"


@dataclass(frozen=True)
class FrameworkProbe:
    """The answer of one framework's probe.

    ``devices`` like ``("metal", "cpu")``; ``libraries`` as the engine reports them. ``software``:
    the packages of its interpreter, the one that its GPU's workers start under if it sees one.
    """

    installed: bool
    devices: tuple[str, ...] = ()
    version: str | None = None
    libraries: Mapping[str, str] | None = None
    problem: str | None = None
    software: Software = field(default_factory=Software)


def check_frameworks(frameworks: Mapping[str, FrameworkProbe]) -> Iterator[Finding]:
    """One finding for each framework, and a failure if none works."""
    usable = [name for name, seen in frameworks.items() if seen.devices]
    for name, seen in frameworks.items():
        place = seen.software.place
        if not seen.installed:
            cuda_12 = seen.software.cuda == CUDA_12
            install = seen.software.pip.install_framework(name, cuda_12=cuda_12)
            sentence = f"{name} is not installed{size_note(name)}"
            yield Finding(f"frameworks.{name}", "skip", sentence, install)
        elif seen.devices:
            devices = ", ".join(seen.devices)
            version = f" {seen.version}" if seen.version else ""
            yield Finding(f"frameworks.{name}", "ok", f"{name}{version} sees {devices}{place}")
        else:
            yield Finding(
                f"frameworks.{name}",
                "fail",
                f"{name} is installed{place} but cannot be used: "
                f"{seen.problem or 'it sees no device'}",
                reinstall(name, seen.software),
            )
    if not usable:
        extras = extras_for(frameworks or ("mlx",), cuda_12=has_cuda_12())
        yield Finding(
            "frameworks",
            "fail",
            "no framework works here, so nothing can be measured",
            Pip().install_extras(*extras),
        )


def reinstall(name: str, software: Software) -> str:
    """The command that reinstalls a framework's distributions at their versions, and installs
    what they need and lack.

    Never the agent itself: its name in an index is a stranger's package.
    """
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


def check_metal(frameworks: Mapping[str, FrameworkProbe], apple_silicon: bool) -> Iterator[Finding]:
    """Check that every framework with a GPU build sees the Mac's GPU.

    JAX has none of its own: jax-mps is another project's plug-in.
    """
    if not apple_silicon:
        yield Finding("metal", "skip", "no Mac with Apple's processor")
        return
    for name, seen in frameworks.items():
        if "metal" in seen.devices:
            untested = " through jax-mps, which was never tested on a Mac" if name == "jax" else ""
            yield Finding(f"metal.{name}", "ok", f"{name} sees Apple's GPU{untested}")
        elif seen.devices and name == "jax":
            yield Finding(
                "metal.jax",
                "skip",
                "jax runs on the CPU; its plug-in jax-mps needs an environment of its own",
            )
        elif seen.devices:
            yield Finding(
                f"metal.{name}",
                "warn",
                f"{name} runs on the CPU only",
                reinstall(name, seen.software),
            )


def check_mlx_backend(software: Software, system: str) -> Iterator[Finding]:
    """Check MLX's backend on Linux. ``pip install mlx`` installs none; both need one version."""
    packages, pip = software.packages, software.pip
    mlx = packages.get("mlx")
    if mlx is None:
        yield Finding("mlx-backend", "skip", "MLX is not installed")
        return
    backends = {name: packages[name] for name in MLX_BACKENDS if name in packages}
    extra = "" if system == "Darwin" else "[cpu]"
    if not backends:
        yield Finding(
            "mlx-backend",
            "fail",
            f"MLX {mlx} has no backend: importing it fails",
            pip.install(f"mlx{extra}=={mlx}"),
        )
        return
    odd = [f"{name} {version}" for name, version in backends.items() if version != mlx]
    if odd:
        # Pinned: without a version pip leaves an installed backend alone. Both are reinstalled:
        # they write into one folder, and removing one breaks the other.
        wanted = [f"{name}=={mlx}" for name, version in backends.items() if version != mlx]
        yield Finding(
            "mlx-backend",
            "fail",
            f"MLX {mlx} with {', '.join(odd)}: the two must have one version",
            pip.reinstall(f"mlx=={mlx}", *wanted),
        )
    elif len(backends) > 1:
        yield Finding(
            "mlx-backend",
            "warn",
            f"MLX has several backends, which write the same files: {', '.join(backends)}",
            _only_backend(mlx, backends, software),
        )
    else:
        yield Finding("mlx-backend", "ok", f"MLX {mlx} with {', '.join(backends)}")


def check_mlx_blas(mlx: FrameworkProbe | None, system: str) -> Iterator[Finding]:
    """MLX's own BLAS on Linux CPUs is about twenty times slower than a fast BLAS."""
    if system != "Linux" or mlx is None or not mlx.devices or "cuda" in mlx.devices:
        yield Finding("mlx-blas", "skip", "only MLX on a Linux CPU needs a BLAS")
        return
    blas = (mlx.libraries or {}).get("blas", BUNDLED_BLAS)
    if blas == BUNDLED_BLAS:
        yield Finding(
            "mlx-blas",
            "warn",
            "MLX computes matrix products with its slow reference BLAS",
            system_package("blas"),
        )
    else:
        yield Finding("mlx-blas", "ok", f"MLX computes matrix products with {blas}")


def check_compiler(mlx: FrameworkProbe | None, system: str, compiler: bool) -> Iterator[Finding]:
    """On Linux CPUs ``mx.compile`` builds kernels with g++ while it runs.

    Args:
        compiler: g++ is on PATH.
    """
    if system != "Linux" or mlx is None or not mlx.installed or "cuda" in mlx.devices:
        yield Finding("compiler", "skip", "only MLX on a Linux CPU compiles with g++")
    elif compiler:
        yield Finding("compiler", "ok", "g++ for MLX's compiled kernels is installed")
    else:
        yield Finding(
            "compiler",
            "warn",
            "g++ is missing: MLX's tuned recipe runs without compiled kernels, slower",
            system_package("g++"),
        )


def _only_backend(mlx: str, backends: Mapping[str, str], software: Software) -> str:
    """Keep one backend: for the GPU, and for the CUDA that is there."""
    unwanted = "mlx-cuda-12" if software.cuda == CUDA_13 else "mlx-cuda-13"
    kept = min(backends, key=lambda name: (name == "mlx-cpu", name == unwanted))
    pip = software.pip
    return f"{pip.uninstall(*backends)} && {pip.reinstall(f'mlx=={mlx}', f'{kept}=={mlx}')}"
