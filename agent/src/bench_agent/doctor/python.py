"""Check Python and the operating system."""

from collections.abc import Iterator

from .finding import Finding
from .fixes import uv_command

TESTED = ((3, 11), (3, 12))
# tensorflow-metal's wheels end here.
METAL_LAST_PYTHON = (3, 12)
OLDEST_MACOS_FOR_MLX = (14,)
# pip installs MLX's wheels for macOS 26 from 26.0 on; their libraries are built for this one.
MLX_BUILT_FOR = (26, 2)
OLDEST_GLIBC_FOR_MLX = (2, 35)
# Run in the checkout; uv downloads a Python if the system has none.
NEW_ENVIRONMENT = (
    "{fetch}{uv} venv --python 3.12 .venv312 && "
    "{uv} pip install --python .venv312 --require-hashes -r locks/agent.txt {locks} && "
    "{uv} pip install --python .venv312 --no-deps ./shared ./agent"
)


def check_system(system: str, wsl: int | None, version: tuple[int, ...]) -> Iterator[Finding]:
    """Check the system: native Windows has no GPU wheels, old systems have no MLX wheels.

    Args:
        system: ``platform.system()``.
        wsl: version of the Windows Subsystem for Linux.
        version: of macOS, empty elsewhere.
    """
    if system == "Windows":
        yield Finding(
            "system",
            "fail",
            "native Windows is not supported: the frameworks' GPU wheels are for Linux",
            "wsl --install -d Ubuntu-24.04",
        )
    elif wsl == 1:
        yield Finding(
            "system",
            "fail",
            "WSL 1 translates system calls, has no GPU and cannot be compared with anything",
            'wsl.exe --set-version "$WSL_DISTRO_NAME" 2',
        )
    elif system == "Darwin" and version and version < OLDEST_MACOS_FOR_MLX:
        release = ".".join(map(str, version))
        yield Finding(
            "system",
            "warn",
            f"macOS {release}: MLX has wheels for macOS 14 and newer only",
            "sudo softwareupdate --install --all --restart",
        )
    elif system == "Darwin" and MLX_BUILT_FOR[:1] <= version < MLX_BUILT_FOR:
        release, built_for = (".".join(map(str, each)) for each in (version, MLX_BUILT_FOR))
        yield Finding(
            "system",
            "warn",
            f"macOS {release}: MLX's libraries for macOS 26 are built for {built_for} and newer",
            "sudo softwareupdate --install --all --restart",
        )
    elif system in ("Linux", "Darwin"):
        yield Finding("system", "ok", f"{system} is supported" + (" (WSL 2)" if wsl else ""))
    else:
        yield Finding("system", "warn", f"nothing was ever tested on {system or 'this system'}")


def check_python(version: tuple[int, int], system: str, machine: str) -> Iterator[Finding]:
    """Check that the frameworks have wheels for this Python.

    Args:
        machine: ``platform.machine()``.
    """
    release = ".".join(map(str, version))
    names = ("tensorflow", "mlx", *(("energy",) if system == "Darwin" else ()))
    locks = " ".join(f"-r locks/{name}.txt" for name in names)
    fetch, uv = uv_command()
    hint = NEW_ENVIRONMENT.format(locks=locks, fetch=fetch, uv=uv)
    if version < TESTED[0]:
        yield Finding(
            "python", "fail", f"Python {release} is too old: 3.11 or 3.12 is needed", hint
        )
    elif system == "Darwin" and machine == "arm64" and version > METAL_LAST_PYTHON:
        yield Finding(
            "python",
            "warn",
            f"tensorflow-metal has no wheel for Python {release}: TensorFlow would not see the GPU",
            hint,
        )
    elif version not in TESTED:
        yield Finding(
            "python",
            "warn",
            f"Python {release} was never tested, and some frameworks may have no wheel for it",
            hint,
        )
    else:
        yield Finding("python", "ok", f"Python {release} has wheels of every framework")


def check_architecture(system: str, machine: str, rosetta: bool) -> Iterator[Finding]:
    """Check for Rosetta: a Python for Intel on Apple silicon measures the translator.

    Args:
        rosetta: this process is translated.
    """
    if rosetta:
        yield Finding(
            "architecture",
            "fail",
            "this Python is for Intel and runs translated by Rosetta: no GPU, wrong speeds",
            'arch -arm64 /bin/zsh -c "curl -LsSf https://astral.sh/uv/install.sh | sh && '
            '~/.local/bin/uv venv --python cpython-3.12-macos-aarch64 .venv312"',
        )
    elif system == "Darwin" and machine != "arm64":
        yield Finding(
            "architecture",
            "warn",
            "an Intel Mac: no framework has current wheels for it",
        )
    elif machine.lower() in ("x86_64", "amd64", "arm64", "aarch64"):
        yield Finding("architecture", "ok", f"a native Python for {machine}")
    else:
        yield Finding(
            "architecture", "warn", f"no framework has wheels for {machine or 'this processor'}"
        )


def check_glibc(system: str, glibc: tuple[int, ...]) -> Iterator[Finding]:
    """Check the C library: MLX on Linux needs a recent one.

    Args:
        glibc: its version, empty for another C library.
    """
    if system != "Linux":
        yield Finding("glibc", "skip", "only Linux has it")
    elif not glibc:
        yield Finding(
            "glibc",
            "fail",
            "the C library is not glibc (Alpine?): no framework has wheels for it",
            'docker run --rm -it -v "$PWD:/work" -w /work python:3.12 bash',
        )
    elif glibc < OLDEST_GLIBC_FOR_MLX:
        release = ".".join(map(str, glibc))
        yield Finding(
            "glibc",
            "warn",
            f"glibc {release}: MLX needs 2.35 or newer (Ubuntu 22.04, Debian 12)",
            'docker run --rm -it -v "$PWD:/work" -w /work python:3.12 bash',
        )
    else:
        yield Finding("glibc", "ok", f"glibc {'.'.join(map(str, glibc))} is new enough for MLX")
