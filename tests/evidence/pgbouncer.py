"""PgBouncer in front of a cluster, in transaction mode: each transaction gets any of few
connections."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.fakes import postgres
from tests.fakes.waiting import wait_for

START_SECONDS = 20
PORT = 6432
Mode = Literal["session", "transaction", "statement"]


@dataclass
class Pooler:
    """A running PgBouncer on a socket in its folder, and on no port."""

    folder: Path
    program: str
    cluster: postgres.Cluster
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def url(self, database: str) -> str:
        return (
            f"postgresql+psycopg://{self.cluster.user}@/{database}?host={self.folder}&port={PORT}"
        )

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.program, str(self.folder / "ini")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **postgres.as_user(),
            )  # fmt: skip
        if not wait_for(lambda: any(self.folder.glob(".s.PGSQL.*")), START_SECONDS):
            raise RuntimeError(f"PgBouncer does not start: {(self.folder / 'log').read_text()}")

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        (self.folder / f".s.PGSQL.{PORT}").unlink(missing_ok=True)


def running(
    cluster: postgres.Cluster,
    size: int = 3,
    mode: Mode = "transaction",
    loopback_port: int | None = None,
) -> AbstractContextManager[Pooler]:
    """A pooler of ``size`` connections to each database, until the context ends; on its socket
    without a password, or at a port of loopback with the passwords of PostgreSQL.

    Raises:
        FileNotFoundError: there is no PgBouncer.
    """
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        raise FileNotFoundError("no PgBouncer; run: apt-get install pgbouncer")
    listening = f"listen_port = {PORT}\nauth_type = trust\n"
    if loopback_port is not None:
        listening = (
            f"listen_addr = 127.0.0.1\nlisten_port = {loopback_port}\nauth_type = scram-sha-256\n"
            f"auth_user = {cluster.user}\n"
            "auth_query = SELECT usename, passwd FROM pg_shadow WHERE usename = $1\n"
        )
    return _running(cluster, program, size, mode, listening)


@contextmanager
def _running(
    cluster: postgres.Cluster, program: str, size: int, mode: Mode, listening: str
) -> Iterator[Pooler]:
    folder = postgres.new_folder(cluster.folder.parent)
    users = folder / "users"
    users.write_text(f'"{cluster.user}" ""\n')
    (folder / "ini").write_text(
        f"[databases]\n* = host={cluster.folder} port={cluster.port}\n"
        f"[pgbouncer]\nunix_socket_dir = {folder}\n{listening}"
        f"auth_file = {users}\npool_mode = {mode}\ndefault_pool_size = {size}\n"
        # After a restart of PostgreSQL it is asked again at once, and not after 15 s.
        "server_login_retry = 1\n"
    )
    pooler = Pooler(folder, program, cluster)
    try:
        pooler.start()
        yield pooler
    finally:
        pooler.kill()
        shutil.rmtree(folder, ignore_errors=True)
