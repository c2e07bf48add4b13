"""A real ``bench-server`` in a process of its own, on a free loopback port."""

import os
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 30
MAIN = "from bench_server.cli import main; main()"


@contextmanager
def running_server(database_url: str, home: Path) -> Iterator[str]:
    """Serve a migrated database; gives the address."""
    environment = os.environ | {
        "BENCH_SERVER_DATABASE_URL": database_url,
        "BENCH_SERVER_KEYS_DIR": str(home / "server-keys"),
    }
    with (home / "server.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "serve", "--port", "0"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else ""
        found = re.fullmatch(r"listening on (http://127\.0\.0\.1:\d+)\n", line)
        assert found, f"{line!r}\n{(home / 'server.log').read_text()}"
        yield found.group(1)
    finally:
        process.terminate()
        process.wait(timeout=15)
