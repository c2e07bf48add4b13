"""The agent's folder: key, salt, outbox, logs. ``BENCH_HOME`` moves it."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import platformdirs

from bench_protocol.base import strict_json
from bench_protocol.base.errors import MalformedJson

from .errors import HomeProblem

MOST_BYTES = 64 * 1024 * 1024
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
NO_HOME = "this user has no home folder; set {setting} to a folder of your own"
FREE_SPACE = "free space there or move the folder (BENCH_HOME), then: bench-agent run --resume"


class Home:
    """Paths inside the agent's folder. Reading a path creates nothing."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self.key: Final = root / "keys" / "machine.pem"
        self.salt: Final = root / "keys" / "salt"
        self.outbox: Final = root / "outbox"
        self.journal: Final = root / "run.json"
        self.measured_times: Final = root / "paces.json"
        self.probes: Final = root / "probes.json"
        self.self_tests: Final = root / "self_tests.json"
        self.environments: Final = root / "environments.json"
        self.servers: Final = root / "servers"
        self.logs: Final = root / "logs"

    def command(self, words: str) -> str:
        """The command line that runs the agent with this folder, for any Unix shell."""
        called = f"{program()} {words}"
        with suppress(HomeProblem):
            if self.root == user_folder():
                return called
        return f"BENCH_HOME={shlex.quote(str(self.root))} {called}"


def program() -> str:
    """The agent's command: its name alone if it is on PATH, else its full path."""
    beside = Path(sys.executable).with_name("bench-agent")
    on_path = shutil.which("bench-agent")
    return shlex.quote(str(beside)) if on_path is None and beside.exists() else "bench-agent"


def find_home(environ: Mapping[str, str] = os.environ) -> Home:
    """``BENCH_HOME``, or the platform's folder for a user's application data.

    Raises:
        HomeProblem: there is neither.
    """
    return Home(chosen_folder(environ, "BENCH_HOME") or user_folder())


def chosen_folder(environ: Mapping[str, str], setting: str, default: str = "") -> Path | None:
    """The folder that a setting names, or the default; None where both are empty.

    Raises:
        HomeProblem: it begins with ``~``, and that user has no home folder.
    """
    chosen = environ.get(setting, "").strip() or default
    try:
        return Path(chosen).expanduser() if chosen else None
    except RuntimeError:
        raise HomeProblem(NO_HOME.format(setting=setting)) from None


def user_folder() -> Path:
    """The platform's folder for this user's application data.

    Raises:
        HomeProblem: the user has no home folder, or it is relative to the working folder.
    """
    with suppress(RuntimeError):
        folder = platformdirs.user_data_path("trainmark")
        if folder.is_absolute():
            return folder
    raise HomeProblem(NO_HOME.format(setting="BENCH_HOME"))


def read_json(path: Path) -> Any:
    """The content of a file of the agent's own.

    Raises:
        HomeProblem: it is damaged or cannot be read.
    """
    try:
        return strict_json.loads(path.read_bytes(), max_bytes=MOST_BYTES)
    except FileNotFoundError:
        raise
    except (OSError, MalformedJson) as error:
        why = error.strerror if isinstance(error, OSError) else error.detail
        raise HomeProblem(f"{path} cannot be read: {why}; move it away: it is damaged") from None


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner may enter, durably; else raise ``HomeProblem``."""
    try:
        made = [level for level in (path, *path.parents) if not level.exists()]
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for level in made:
            sync_folder(level.parent)
    except OSError as error:
        raise HomeProblem(
            f"cannot make {path}: {error.strerror}; choose another folder with BENCH_HOME"
        ) from error
    return path


def write_durably(path: Path, content: bytes) -> None:
    """Write a file of mode 0600 so that after a power cut it is complete or absent.

    It is on disk when this returns: its content, then its name in the folder.

    Raises:
        HomeProblem: it cannot be written.
    """
    with _written(path, content) as partial:
        partial.replace(path)


def read_or_make_private(path: Path, make: Callable[[], bytes]) -> bytes:
    """Read a private file; make it first where there is none. No file is overwritten.

    Raises:
        HomeProblem: others may read it, or it cannot be read or written.
    """
    with suppress(FileNotFoundError):
        return _read_private(path)
    with suppress(FileExistsError), _written(path, make()) as partial:  # another agent was faster
        try:
            path.hardlink_to(partial)
        finally:
            partial.unlink()
    return _read_private(path)


@contextmanager
def _written(path: Path, content: bytes) -> Iterator[Path]:
    """A temporary file beside ``path`` with the content on disk; the block renames it."""
    private_folder(path.parent)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.unlink(missing_ok=True)
        with os.fdopen(os.open(partial, NEW_FILE, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield partial
        sync_folder(path.parent)
    except FileExistsError:
        raise
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise HomeProblem(f"cannot write {path}: {error.strerror}; {FREE_SPACE}") from error


def sync_folder(path: Path) -> None:
    """Put a folder's names on disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read_private(path: Path) -> bytes:
    try:
        for place, right in ((path, 600), (path.parent, 700)):
            mode = place.stat().st_mode & 0o777
            if mode & 0o077:
                raise HomeProblem(
                    f"{place} is open to others (mode {mode:o}): chmod {right} {place}"
                )
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise HomeProblem(
            f"cannot read {path}: {error.strerror}; choose another folder with BENCH_HOME"
        ) from error
