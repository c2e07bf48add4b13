"""Set-up of ``make test COMPLETE=1`` besides Python packages: compiler, fonts, browser, PyTorch.

Each part is installed without questions. If a part cannot be installed, its tests fail, and the
reason names the command that installs it (left_out.py). The Makefile runs this once per virtual
environment. PyTorch is installed even if its only build for this machine includes CUDA.
"""

import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from tests import browser

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
LOG = Path(sys.prefix) / "set-up.log"
FONTS = Path("/usr/share/fonts")
DOWNLOAD_SECONDS = 600.0


REFRESH = ("apt-get", "update")
INSTALL = ("apt-get", "install", "-y", "--no-install-recommends")
COMPILER, BROWSER = "g++", "chromium"
FONT_PACKAGES = ("fonts-liberation", "fonts-dejavu-core")


def bring_compiler() -> bool:
    """MLX compiles with g++ on Linux; its tests take twice as long without."""
    return sys.platform == "darwin" or bool(shutil.which(COMPILER)) or _install(COMPILER)


def bring_fonts(folder: Path = FONTS) -> bool:
    names = ("LiberationSans-", "DejaVuSans.")
    return all(any(folder.rglob(f"{name}*")) for name in names) or _install(*FONT_PACKAGES)


def fonts_command() -> str:
    """The command that installs the fonts, for a user who can enter a password."""
    if not _has_manager():
        return "install the fonts Liberation and DejaVu"
    return shlex.join([*_sudo(), *INSTALL, *FONT_PACKAGES])


def bring_browser(starts: Callable[[], bool]) -> bool:
    """Playwright's browser needs no administrator, but may lack libraries of the system."""
    if starts():
        return True
    if run("playwright", "install", "--only-shell", "chromium") and (
        starts() or (run("playwright", "install-deps", "chromium", seconds=None) and starts())
    ):
        return True
    return _install(BROWSER) and starts()


def browser_command() -> str:
    # Ubuntu's package of Chromium is an empty one that needs snapd.
    if not _has_manager() or _system() == "ubuntu":
        return f"{BIN / 'playwright'} install --with-deps --only-shell chromium"
    steps = (REFRESH, (*INSTALL, BROWSER))
    return " && ".join(shlex.join([*_sudo(), *step]) for step in steps)


def bring_torch() -> bool:
    """Never with CUDA beside TensorFlow's: two builds of cuDNN would install the same files."""
    if find_spec("torch"):
        return True
    install = ("pip", "install", "--no-input", "-r", str(ROOT / "locks" / "torch-cpu.txt"))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        if not run(*install, "--dry-run", "--report", str(report)):
            return False
        planned = json.loads(report.read_text(encoding="utf-8"))["install"]
    names = [package["metadata"]["name"] for package in planned]
    if any(name.startswith(("nvidia-", "cuda-")) for name in names) and find_spec("nvidia"):
        print("  the build for this machine brings a second CUDA", flush=True)
        return False
    return run(*install, seconds=None)


def run(*command: str, seconds: float | None = DOWNLOAD_SECONDS) -> bool:
    """No terminal, no input; ``seconds`` is None for what must not be left half installed."""
    print("  " + shlex.join(command), flush=True)
    with LOG.open("ab") as log:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError:
            return False
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        if process.poll() is None:
            with suppress(PermissionError):  # started by sudo: it goes on
                os.killpg(process.pid, signal.SIGTERM)


def _has_manager() -> bool:
    return shutil.which(INSTALL[0]) is not None


def _install(*packages: str) -> bool:
    """Install system packages with apt-get, as root or with a passwordless sudo."""
    quiet = (*_sudo("-n"), "env", "DEBIAN_FRONTEND=noninteractive")
    return (
        _has_manager()
        and run(*quiet, *REFRESH)
        and run(*quiet, *INSTALL, "--download-only", *packages)
        and run(*quiet, *INSTALL, *packages, seconds=None)
    )


def _sudo(*options: str) -> tuple[str, ...]:
    return () if os.geteuid() == 0 else ("sudo", *options)


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["ID"]
    except OSError:
        return sys.platform


def main() -> None:
    os.environ["PATH"] = os.pathsep.join([str(BIN), os.environ["PATH"]])
    parts = {
        "C++ compiler": bring_compiler,
        "fonts": bring_fonts,
        "browser": lambda: bring_browser(browser.starts),
        "PyTorch": bring_torch,
    }
    for name, bring in parts.items():
        print(f"Set-up of the tests: {name}", flush=True)
        if not bring():
            print(f"  not brought, its tests will be left out (see {LOG})", flush=True)


if __name__ == "__main__":
    main()
