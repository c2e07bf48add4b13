"""Our programs in real processes, forked from one that has their imports: they take most of a
start."""

import importlib
import json
import logging
import multiprocessing
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

START_SECONDS = 30
COMMAND_SECONDS = 240
# Settings without any rate limit.
NO_LIMITS = {
    f"BENCH_SERVER_{name}_RATE": "off" for name in ("ADDRESS", "KEY", "ENROLL", "CHALLENGE", "ACT")
}
STARTING = "Starting Trainmark's server ...\n"
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        *(f"bench_server.{name}" for name in ("app", "cli.start", "cli.data", "cli.verify_log")),
        *(f"bench_agent.cli.{name}" for name in ("plan", "report", "results", "submit", "verify")),
        "tests.evidence.hostile.agent",
    ]
)


class Ran(NamedTuple):
    code: int | None
    stdout: str
    stderr: str

    def json(self) -> Any:
        return json.loads(self.stdout)


def run(entry: str, arguments: tuple[str, ...], environment: dict[str, str]) -> Ran:
    """Run a command to its end; ``entry``: the module whose ``main`` gets the arguments."""
    ran = forked(_run, (entry, arguments, environment), COMMAND_SECONDS)
    if ran.code is None:
        raise TimeoutError(f"{arguments}: {ran.stdout}\n{ran.stderr}")
    return ran


def forked(program: Callable[..., None], arguments: tuple[Any, ...], seconds: float) -> Ran:
    """Call a function in a process, with its arguments and two files for what it prints; the code
    is None where it was killed after ``seconds``."""
    with TemporaryDirectory() as folder:
        files = Path(folder) / "out", Path(folder) / "err"
        process = FORKS.Process(target=program, args=(*arguments, *files))
        process.start()
        process.join(seconds)
        code = process.exitcode
        if code is None:
            process.kill()
            process.join()
        return Ran(code, *(path.read_bytes().decode("utf-8", "surrogateescape") for path in files))


@contextmanager
def running_server(
    database_url: str,
    home: Path,
    *,
    log_level: int | None = None,
    port: int = 0,
    **settings: str,
) -> Iterator[str]:
    """Serve a migrated database. Nothing is recomputed by default: most results are invented."""
    arguments = ("serve", "--port", str(port))
    process = Program(database_url, home, *arguments, log_level=log_level, **settings)
    try:
        yield process.address()
    finally:
        process.stop()


class Program:
    """``bench-server`` in a process; ``log_level``: of every logger, None: the program's."""

    entry = "bench_server.cli.main"

    def __init__(
        self,
        database_url: str,
        home: Path,
        *arguments: str,
        log_level: int | None = None,
        **settings: str,
    ) -> None:
        given = {"BENCH_SERVER_DATABASE_URL": database_url} if database_url else {}
        environment = os.environ | {
            **given,
            "BENCH_SERVER_KEYS_DIR": str(home / "server-keys"),
            "BENCH_SERVER_RECOMPUTE": "no",
            **settings,
        }
        self._log = home / "server.log"
        self._output, out = FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(
            target=_run, args=(self.entry, arguments, environment, out, self._log, log_level)
        )
        self._process.start()
        out.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def lines(self, count: int) -> str:
        lines = ""
        while lines.count("\n") < count:
            assert self._output.poll(START_SECONDS), f"{lines!r}\n{self._log.read_text()}"
            if not (read := os.read(self._output.fileno(), 4096)):
                break
            lines += read.decode()
        return lines

    def address(self) -> str:
        lines = self.lines(2)
        match = re.fullmatch(STARTING + r"listening on (http://127\.0\.0\.1:\d+)\n", lines)
        assert match, f"{lines!r}\n{self._log.read_text()}"
        return match.group(1)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def stop(self) -> None:
        self._process.terminate()
        self._process.join(timeout=15)
        assert self._process.exitcode is not None, "the program did not end"


def _run(
    entry: str,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    out: Connection | Path,
    log: Path,
    log_level: int | None = None,
) -> None:
    main = importlib.import_module(entry).main
    os.environ.clear()
    os.environ.update(environment)
    output = out.open("w") if isinstance(out, Path) else out
    with Path(os.devnull).open() as nothing, output, log.open("a") as file:
        for number, opened in enumerate((nothing, output, file)):
            os.dup2(opened.fileno(), number)
    if log_level is not None:
        logging.basicConfig(level=log_level)
        logging.getLogger("sqlalchemy").setLevel(log_level)  # it sets its own
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)  # workers are given its number
    # Those that it was started with may have been files, and a pipe cannot be sought.
    sys.stdout, sys.stderr = (os.fdopen(number, "w", 1, closefd=False) for number in (1, 2))
    main(list(arguments))
