"""``bench-agent`` in a forked process whose surroundings are hostile: its streams, folders, limits
and user. Only the frameworks, the training and the length of waits are stand-ins."""

import os
import pwd
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pynvml  # noqa: F401 - another user may not read the interpreter, so all is imported here
from tests.fakes.live import Ran, forked
from tests.fakes.results import make_measurement

from bench_agent.base.messages import Answer, FoundDevice, Job, Probe
from bench_agent.cli import doctor, main, setup
from bench_agent.cli import run as cli_run
from bench_agent.doctor import table
from bench_agent.machine import sensors
from bench_agent.remote import connection
from bench_agent.remote.client import Client
from bench_agent.run import interpreters, run
from bench_agent.run.forms import Forms
from bench_agent.run.idle_gate import IdleGate
from bench_agent.run.interpreters import Description, Interpreter
from bench_agent.run.self_test import SelfTests
from bench_protocol.payload.readings import Conditions
from bench_protocol.payload.result import Measured

SECONDS = 60
OWN = Interpreter(
    None,
    Description(
        python="3.11.7",
        prefix=sys.prefix,
        agent="0.1.0",
        source=None,
        installed="0" * 64,
        has_pip=True,
        modules=("mlx.core",),
        packages={},
        shared=(),
    ),
)
CPU = FoundDevice(kind="cpu", index=0, name="CPU")
OPEN = IdleGate(look=lambda device: Conditions())
NOBODY = 54321  # a user without an account
# The new process does these things before the command begins.
DEEDS: dict[str, Callable[[Path], Any]] = {
    "stdin closed": lambda _: os.close(0),
    "stdout closed": lambda _: os.close(1),
    "stderr closed": lambda _: os.close(2),
    "stdout full": lambda _: os.dup2(os.open("/dev/full", os.O_WRONLY), 1),
    "stderr full": lambda _: os.dup2(os.open("/dev/full", os.O_WRONLY), 2),
    "stdout unread": lambda _: _unread(1),
    "stderr unread": lambda _: _unread(2),
    "cwd gone": lambda folder: (os.chdir(_made(folder / "gone")), (folder / "gone").rmdir()),
    "cwd read-only": lambda _: os.chdir("/proc"),
    "few files": lambda _: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)),
    "small files": lambda _: (
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
        resource.setrlimit(resource.RLIMIT_FSIZE, (2500, 2500)),
    ),
    "umask 077": lambda _: os.umask(0o77),
    "umask 000": lambda _: os.umask(0),
    "umask 777": lambda _: os.umask(0o777),
    "no account": lambda folder: _become(folder, NOBODY),
}


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _unread(number: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    os.dup2(writing, number)


def _become(folder: Path, user: int) -> None:
    """Another user, without an account. One who may not read the interpreter cannot start it."""
    pwd.getpwuid = _no_account
    levels = Path(sys.executable).resolve().parents
    if os.getuid() or not all(level.stat().st_mode & 0o001 for level in levels):
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)
    os.setgid(user)
    os.setuid(user)


def _no_account(user: int) -> Any:
    raise KeyError(f"getpwuid(): uid not found: {user}")


def ends(
    words: tuple[str, ...], folder: Path, variables: Mapping[str, str | None], *deeds: str
) -> Ran:
    """Run a command; its folder is ``home`` in ``folder``. None as the value unsets a variable."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    given = {**kept, "BENCH_HOME": str(folder / "home"), **variables}
    environ = {name: value for name, value in given.items() if value is not None}
    return forked(_run, (words, folder, environ, deeds), SECONDS)


def _run(
    words: tuple[str, ...],
    folder: Path,
    environ: dict[str, str],
    deeds: tuple[str, ...],
    out: Path,
    err: Path,
) -> None:
    os.environ.clear()
    os.environ.update(environ)
    with Path(os.devnull).open() as nothing, out.open("w") as output, err.open("w") as file:
        for number, opened in enumerate((nothing, output, file)):
            os.dup2(opened.fileno(), number)
    for deed in deeds:
        DEEDS[deed](folder)
    sys.stdin = sys.__stdin__ = _stream(0)
    sys.stdout = sys.__stdout__ = _stream(1)
    sys.stderr = sys.__stderr__ = _stream(2)
    sys.argv = ["bench-agent", *words]
    _stand_in()
    os._exit(_code(main.main))


def _stream(number: int) -> Any:
    """Make it as Python does at its start."""
    coding, _, errors = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    with suppress(OSError):
        os.fstat(number)
        how = errors or ("backslashreplace" if number == 2 else "strict")
        mode = "w" if number else "r"
        return open(number, mode, encoding=coding or "utf-8", errors=how, closefd=False)
    return None


def _code(program: Callable[[], None]) -> int:
    """The exit status as Python makes it, with what it complains about at its end."""
    code: Any = 0
    try:
        program()
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError) as error:
            with suppress(Exception):
                os.write(2, f"Exception ignored in: {stream}: {error}\n".encode())
            code = 120
    return code if isinstance(code, int) else int(code is not None)


def _stand_in() -> None:
    answers = {(None, "mlx"): Probe(devices=(CPU,), environment=None)}
    for module in (setup, doctor, table):
        module.probe_each = lambda *_, **__: answers  # type: ignore[attr-defined]
    interpreters.own = lambda *, packages=False: OWN
    sensors.SAMPLE_SECONDS = 0.01
    SelfTests.refusal = lambda self, planned: None  # type: ignore[method-assign]
    Forms.choice = lambda self, planned: None  # type: ignore[method-assign]
    cli_run.run_plan = lambda journal, context: run.run_plan(
        journal, replace(context, run_job=measure, gate=OPEN)
    )
    connection.WHOLE_SECONDS = 1.0
    connection.MAX_ANSWER_BYTES = 1 << 20
    hasty = {"sleep": lambda seconds: None, "timeout": 0.5, "patience_seconds": 3.0}
    for each in (connection.Connection, Client):
        waits = each.__init__.__kwdefaults__
        waits |= {name: value for name, value in hasty.items() if name in waits}


def measure(job: Job, *others: Any) -> Answer:
    return Answer(outcome=Measured(measurement=make_measurement(job.cell)), environment=None)
