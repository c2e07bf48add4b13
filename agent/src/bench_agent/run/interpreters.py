"""Interpreters: the Pythons whose frameworks this machine measures.

The agent's own is always the first. ``environments.json`` in the agent's folder holds the paths of
the others; what they have is asked each time. A worker starts under the first interpreter that has
its framework on its device.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from bench_protocol.base.units import Wire

from .. import engines
from ..base.errors import HomeProblem, UsageProblem
from ..base.home import Home, write_durably
from ..base.install_hints import Pip
from ..worker.environment import worker_environment
from . import _ask_interpreter

SCRIPT = Path(_ask_interpreter.__file__)
ANSWER_SECONDS = 60.0
# A description has some kilobytes, with all distributions some hundred.
MOST_PRINTED = 16 * 1024 * 1024
OLDEST_PYTHON = (3, 11)


class SharedLibraries(Wire):
    """Distributions that install the same shared libraries with different content: how many, and
    the name of one."""

    distributions: tuple[str, ...]
    libraries: int
    example: str


class Description(Wire):
    """The description that an interpreter gives of itself: see :mod:`._ask_interpreter`.

    ``prefix``: folder of its environment. ``agent``: version of its bench-agent. ``source``:
    digest of the agent's source files; ``installed``: of the names and versions of all
    distributions. ``modules``: those of the frameworks' that it has.
    ``packages`` and ``shared`` are empty unless asked for.
    """

    python: str
    prefix: str
    agent: str | None
    source: str | None
    installed: str
    has_pip: bool
    modules: tuple[str, ...]
    packages: dict[str, str]
    shared: tuple[SharedLibraries, ...]


class _Added(Wire):
    """The content of ``environments.json``: absolute paths, in the order of their choice."""

    interpreters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Interpreter:
    """An interpreter and its answer.

    ``path`` is None for the agent's own. ``description`` is None if it gave no answer. A worker
    can start under it unless there is a ``problem``; ``hint`` is the command that fixes it.
    """

    path: str | None
    description: Description | None
    problem: str | None = None
    hint: str | None = None

    @property
    def place(self) -> str:
        return self.path or sys.executable

    @property
    def pip(self) -> Pip:
        has_pip = self.description.has_pip if self.description else None
        return Pip(self.place, has_pip)

    @property
    def frameworks(self) -> tuple[str, ...]:
        return tuple(n for n in engines.names() if self.has(n))

    def has(self, framework: str) -> bool:
        """Whether a worker can use the framework here, if its import works."""
        if self.problem or self.description is None:
            return False
        return engines.engine_named(framework).import_name in self.description.modules


def every(home: Home, *, packages: bool = False) -> tuple[Interpreter, ...]:
    """The agent's own interpreter, then the added ones.

    Args:
        packages: ask for all distributions too, which takes longer.

    Raises:
        HomeProblem: ``environments.json`` cannot be read.
    """
    here = own(packages=packages)
    with ThreadPoolExecutor() as pool:
        others = pool.map(lambda path: ask(path, here, packages=packages), added(home))
        return here, *others


def own(*, packages: bool = False) -> Interpreter:
    answer = json.dumps(_ask_interpreter.describe(_modules(), packages))
    return Interpreter(None, Description.model_validate_json(answer))


def ask(path: str, here: Interpreter, *, packages: bool = False) -> Interpreter:
    """Ask another interpreter what it has. Never raises: what is wrong is its ``problem``.
    ``here``: the agent's own, whose bench-agent it must have too."""
    description = _description(path, packages=packages)
    if isinstance(description, str):
        return Interpreter(path, None, description)
    problem = _why_no_worker(description, here)
    hint = Interpreter(path, description).pip.install_agent() if problem else None
    return Interpreter(path, description, problem, hint)


def describe(path: str | None, *, packages: bool = True) -> Description | None:
    """Describe what an interpreter has installed; None if it gives no answer."""
    if path is None:
        return own(packages=packages).description
    description = _description(path, packages=packages)
    return None if isinstance(description, str) else description


def require(paths: Iterable[str]) -> None:
    """Check that workers can start under the interpreters of a run that goes on.

    Raises:
        UsageProblem: under one of them they cannot.
    """
    here = own()
    for asked in (ask(path, here) for path in paths):
        if asked.problem:
            fresh = "or start a new run: bench-agent run --fresh"
            hint = f"fix: {asked.hint}, {fresh}" if asked.hint else fresh
            raise UsageProblem(f"{asked.place}: {asked.problem}; {hint}")


def _description(path: str, *, packages: bool) -> Description | str:
    more = ["--packages"] if packages else []
    script = SCRIPT.read_text(encoding="utf-8")
    try:
        return Description.model_validate_json(_printed([path, "-c", script, *_modules(), *more]))
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    except ValueError:  # no answer, or a path that is none
        return "is no Python that answers"


def _printed(command: list[str]) -> bytes:
    """The first bytes that a program prints within its time; neither it nor a child of it lives
    longer."""
    with subprocess.Popen(
        command,
        env=worker_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:

        def end() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        late = threading.Timer(ANSWER_SECONDS, end)
        late.start()
        try:
            return process.stdout.read(MOST_PRINTED) if process.stdout else b""
        finally:
            late.cancel()
            end()


def _why_no_worker(there: Description, here: Interpreter) -> str | None:
    expected = here.description
    if tuple(map(int, there.python.split(".")[:2])) < OLDEST_PYTHON:
        return f"Python {there.python} is too old: 3.11 or newer is needed"
    if there.agent is None:
        return "bench-agent is not installed there"
    if expected and there.agent != expected.agent:
        return f"bench-agent there has version {there.agent}, this one {expected.agent}"
    if expected and there.source != expected.source:
        return "bench-agent there has other source files than this one"
    return None


def _modules() -> list[str]:
    return [engines.engine_named(name).import_name for name in engines.names()]


def added(home: Home) -> tuple[str, ...]:
    """Paths of the added interpreters.

    Raises:
        HomeProblem: the file cannot be read.
    """
    try:
        return _Added.model_validate_json(home.environments.read_bytes()).interpreters
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, ValidationError) as error:
        hint = "remove it and add the interpreters again"
        raise HomeProblem(f"{home.environments} cannot be read; {hint}") from error


def add(home: Home, place: Path) -> Interpreter:
    """Add an interpreter, or that of a virtual environment's folder; twice changes nothing.

    Raises:
        UsageProblem: no worker can start under it, or it is the agent's own.
        HomeProblem: ``environments.json`` cannot be read or written.
    """
    path, here = interpreter_in(place), own()
    asked = ask(path, here)
    if asked.problem:
        hint = asked.hint or "name a Python interpreter, or the folder of a virtual environment"
        raise UsageProblem(f"{path}: {asked.problem}\n  fix: {hint}")
    before = [ask(other, here) for other in added(home)]
    if _prefix(asked) == _prefix(here):
        raise UsageProblem(f"{path} is the agent's own interpreter, which is always used")
    if _prefix(asked) not in map(_prefix, before):
        _write(home, (*added(home), path))
    return asked


def remove(home: Home, place: Path) -> None:
    """Remove an added interpreter; its environment stays as it is.

    Raises:
        UsageProblem: it was not added.
        HomeProblem: ``environments.json`` cannot be read or written.
    """
    there, gone = added(home), {interpreter_in(place), str(place)}
    left = tuple(path for path in there if path not in gone)
    if left == there:
        names = ", ".join(there) or "none"
        raise UsageProblem(f"{place} was not added; added are: {names}")
    _write(home, left)


def interpreter_in(place: Path) -> str:
    """The absolute path of an interpreter; of a folder, that in its ``bin``. Symbolic links stay:
    the link in a virtual environment is what makes Python use its packages."""
    try:
        whole = place.expanduser().absolute()
        str(whole).encode()  # it goes into a file of JSON
    except (RuntimeError, OSError, UnicodeEncodeError):
        raise UsageProblem(f"{place} is in no folder that is there; write the whole path") from None
    return str(whole if whole.is_file() else whole / "bin" / "python")


def _prefix(interpreter: Interpreter) -> str | None:
    return interpreter.description.prefix if interpreter.description else None


def _write(home: Home, paths: tuple[str, ...]) -> None:
    content = _Added(interpreters=paths).model_dump_json(indent=2)
    write_durably(home.environments, content.encode())
