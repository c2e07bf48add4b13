"""Where the agent keeps its things: key, salt, outbox, logs. ``BENCH_HOME`` moves it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from .problems import HomeProblem


@dataclass(frozen=True)
class Home:
    """Paths inside the agent's folder. Nothing is created by looking."""

    root: Path

    @property
    def key(self) -> Path:
        return self.root / "keys" / "machine.pem"

    @property
    def salt(self) -> Path:
        return self.root / "keys" / "salt"

    @property
    def outbox(self) -> Path:
        return self.root / "outbox"

    @property
    def journal(self) -> Path:
        return self.root / "run.json"

    @property
    def paces(self) -> Path:
        return self.root / "paces.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"


def find_home(environ: Mapping[str, str] = os.environ) -> Home:
    """``BENCH_HOME``, or the platform's folder for a user's application data."""
    chosen = environ.get("BENCH_HOME")
    return Home(Path(chosen).expanduser() if chosen else platformdirs.user_data_path("trainmark"))


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner may enter.

    Raises:
        HomeProblem: it cannot be made.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HomeProblem(
            f"cannot make {path}: {error.strerror}; choose another folder with BENCH_HOME"
        ) from error
    return path


def write_new_private(path: Path, content: bytes) -> None:
    """Create a file with mode 0600; never follow or overwrite one that is there.

    Raises:
        FileExistsError: there is one already.
        HomeProblem: it cannot be written.
    """
    private_folder(path.parent)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise
    except OSError as error:
        raise HomeProblem(f"cannot write {path}: {error.strerror}") from error


def read_private(path: Path) -> bytes:
    """Read a file that nobody else may read.

    Raises:
        FileNotFoundError: there is none.
        HomeProblem: others may read it, or it cannot be read.
    """
    try:
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            raise HomeProblem(f"{path} is readable by others (mode {mode:o}): chmod 600 {path}")
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise HomeProblem(
            f"cannot read {path}: {error.strerror}; choose another folder with BENCH_HOME"
        ) from error
