"""Check the operating system, Python, the processor, power and the source of energy."""

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator

from ..base.install_hints import Pip, needs_own_environment
from ..machine.sensors import Power
from .finding import Finding, fail, ok, skip, warn

OLDEST_PYTHON, NEWEST_PYTHON = (3, 11), (3, 14)
OLDEST_MACOS_FOR_MLX = (14,)
# pip installs MLX's wheels for macOS 26 from 26.0 on; their libraries are built for this one.
MLX_BUILT_FOR = (26, 2)
OLDEST_GLIBC_FOR_MLX = (2, 35)
# Run in the checkout; uv downloads a Python if the system has none.
NEW_ENVIRONMENT = (
    "{fetch}{uv} venv --python 3.13 .venv313 && "
    "{uv} pip install --python .venv313 --require-hashes -r locks/agent.txt {locks} && "
    "{uv} pip install --python .venv313 --no-deps ./shared ./agent"
)
NATIVE_PYTHON = (
    'arch -arm64 /bin/zsh -c "curl -LsSf https://astral.sh/uv/install.sh | sh && '
    '~/.local/bin/uv venv --python cpython-3.13-macos-aarch64 .venv313"'
)
UPDATE_MACOS = "sudo softwareupdate --install --all --restart"
CONTAINER = 'docker run --rm -it -v "$PWD:/work" -w /work python:3.13 bash'


def check_system(system: str, wsl: int | None, version: tuple[int, ...]) -> Iterator[Finding]:
    """Check the system: native Windows has no GPU wheels, old systems have no MLX wheels.
    ``version``: of macOS, empty elsewhere."""
    release, built_for = (".".join(map(str, each)) for each in (version, MLX_BUILT_FOR))
    if system == "Windows":
        sentence = "native Windows is not supported: the frameworks' GPU wheels are for Linux"
        yield fail(sentence, "wsl --install -d Ubuntu-24.04")
    elif wsl == 1:
        sentence = "WSL 1 translates system calls, has no GPU and cannot be compared with anything"
        yield fail(sentence, 'wsl.exe --set-version "$WSL_DISTRO_NAME" 2')
    elif system == "Darwin" and version and version < OLDEST_MACOS_FOR_MLX:
        sentence = f"macOS {release}: MLX has wheels for macOS 14 and newer only"
        yield warn(sentence, UPDATE_MACOS)
    elif system == "Darwin" and MLX_BUILT_FOR[:1] <= version < MLX_BUILT_FOR:
        libraries = f"MLX's libraries for macOS 26 are built for {built_for} and newer"
        yield warn(f"macOS {release}: {libraries}", UPDATE_MACOS)
    elif system in ("Linux", "Darwin"):
        yield ok(f"{system} is supported" + (" (WSL 2)" if wsl else ""))
    else:
        yield warn(f"nothing was ever tested on {system or 'this system'}")


def check_python(version: tuple[int, int], system: str) -> Iterator[Finding]:
    """Check that the frameworks have wheels for this Python."""
    release = f"Python {'.'.join(map(str, version))}"
    if OLDEST_PYTHON <= version <= NEWEST_PYTHON:
        own = needs_own_environment("tensorflow", system.lower(), version)
        but = " but TensorFlow, which has an environment of its own" if own else ""
        yield ok(f"{release} has wheels of every framework{but}")
        return
    fetch, uv = uv_command()
    names = ("mlx", "torch", "energy") if system == "Darwin" else ("tensorflow", "mlx")
    locks = " ".join(f"-r locks/{name}.txt" for name in names)
    hint = NEW_ENVIRONMENT.format(locks=locks, fetch=fetch, uv=uv)
    yield warn(f"{release} was never tested, and some frameworks may have no wheel for it", hint)


def uv_command(which: Callable[[str], str | None] = shutil.which) -> tuple[str, str]:
    """The command that installs uv if it is missing (ends in ``&&``), and the command for uv."""
    if which("uv"):
        return "", "uv"
    python = shlex.quote(sys.executable)
    return f"{python} -m pip install uv && ", f"{python} -m uv"


def check_architecture(system: str, machine: str, translated: bool) -> Iterator[Finding]:
    """Check for Rosetta and QEMU: a Python of another architecture measures the translator."""
    if translated:
        native = "arm64" if machine.lower() in ("x86_64", "amd64") else "amd64"
        image = CONTAINER.replace("run", f"run --platform linux/{native}", 1)
        sentence = f"this Python is for {machine} and runs translated: no GPU, wrong speeds"
        yield fail(sentence, NATIVE_PYTHON if system == "Darwin" else image)
    elif system == "Darwin" and machine != "arm64":
        yield warn("an Intel Mac: no framework has current wheels for it")
    elif machine.lower() in ("x86_64", "amd64", "arm64", "aarch64"):
        yield ok(f"a native Python for {machine}")
    else:
        yield warn(f"no framework has wheels for {machine or 'this processor'}")


def check_glibc(system: str, glibc: tuple[int, ...]) -> Iterator[Finding]:
    """Check the C library: MLX needs a recent glibc. ``glibc``: empty for another library."""
    release = ".".join(map(str, glibc))
    if system != "Linux":
        yield skip("only Linux has it")
    elif not glibc:
        sentence = "the C library is not glibc (Alpine?): no framework has wheels for it"
        yield fail(sentence, CONTAINER)
    elif glibc < OLDEST_GLIBC_FOR_MLX:
        needed = "MLX needs 2.35 or newer (Ubuntu 22.04, Debian 12)"
        yield warn(f"glibc {release}: {needed}", CONTAINER)
    else:
        yield ok(f"glibc {release} is new enough for MLX")


def check_connections(problem: str | None) -> Iterator[Finding]:
    """Check that proxies, certificates and the read token can be used; ``problem``: why not."""
    if problem is None:
        yield ok("proxies and certificates can be used")
    else:
        sentence, _, hint = problem.partition("; fix: ")
        yield warn(f"no server can be asked: {sentence}", hint or None)


def check_power(power: Power, system: str) -> Iterator[Finding]:
    """Check for battery and low-power mode: both slow everything down."""
    if power.on_battery is None and power.low_power_mode is None:
        yield skip("no battery, or the system does not report one")
        return
    if power.low_power_mode:
        mac = f"sudo pmset -a {'powermode' if power.mode else 'lowpowermode'} 0"
        hint = mac if system == "Darwin" else "powerprofilesctl set performance"
        yield warn("low-power mode slows everything down", hint, of="mode")
    if power.on_battery:
        sentence = "on battery, which slows everything down"
        yield warn(sentence, "connect the charger", of="battery")
    if not (power.low_power_mode or power.on_battery):
        good = {
            "on mains power": power.on_battery is False,
            "no low-power mode": power.low_power_mode is False,
            "High Power Mode": power.mode == "high-power",
        }
        yield ok(", ".join(words for words, holds in good.items() if holds))


def check_energy(source: str | None, problem: str | None, system: str) -> Iterator[Finding]:
    """Check whether results will contain energy. Speed does not need it."""
    sentence = f"results will contain no energy: {problem}"
    if source is not None:
        yield ok(f"energy comes from {source}")
    elif system == "Darwin":
        yield warn(sentence, Pip().install_extras("energy"))
    else:
        yield skip(sentence)
