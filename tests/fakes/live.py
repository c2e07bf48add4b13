"""A real ``bench-server`` process on a free loopback port."""

import multiprocessing
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

START_SECONDS = 30
STARTING = "Starting Trainmark's server ...\n"
# Forked from a process that has imported the server, which takes most of a start.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["bench_server.cli.start", "bench_server.app"])


@contextmanager
def running_server(database_url: str, home: Path) -> Iterator[str]:
    """Serve a migrated database; yield the address."""
    environment = os.environ | {
        "BENCH_SERVER_DATABASE_URL": database_url,
        "BENCH_SERVER_KEYS_DIR": str(home / "server-keys"),
    }
    log = home / "server.log"
    said, out = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_serve, args=(environment, out, log))
    process.start()
    out.close()
    try:
        lines = ""
        while not lines.endswith("\n") or lines == STARTING:
            assert said.poll(START_SECONDS), f"{lines!r}\n{log.read_text()}"
            if not (read := os.read(said.fileno(), 4096)):
                break
            lines += read.decode()
        match = re.fullmatch(STARTING + r"listening on (http://127\.0\.0\.1:\d+)\n", lines)
        assert match, f"{lines!r}\n{log.read_text()}"
        yield match.group(1)
    finally:
        process.terminate()
        process.join(timeout=15)
        assert process.exitcode is not None, "the server did not end"


def _serve(environment: dict[str, str], out: Connection, log: Path) -> None:
    from bench_server.cli.main import main

    os.environ.clear()
    os.environ.update(environment)
    with Path(os.devnull).open() as nothing, log.open("w") as file:
        for number, opened in enumerate((nothing, out, file)):
            os.dup2(opened.fileno(), number)
    out.close()
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)  # workers are given its number
    main(["serve", "--port", "0"])
