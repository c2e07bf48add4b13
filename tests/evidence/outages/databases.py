"""Databases to harm: SQLite files, a durable PostgreSQL, also behind PgBouncer, and each on a disk
that can fill up."""

import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tests.evidence import pgbouncer
from tests.fakes import postgres

from bench_server.db import migrate
from bench_server.db.store import open_engine

POSTGRESQL = ("postgresql", "pgbouncer")
KINDS = ("sqlite", *POSTGRESQL)
DISK_MIB = {"sqlite": 24} | dict.fromkeys(POSTGRESQL, 192)
# The disk is filled in steps of these.
FILL_BYTES = (1 << 20, 4096, 1)


class Missing(Exception):
    """A part that a fault needs is not here; the message says what."""


@dataclass(frozen=True)
class Database:
    """An empty, migrated database.

    ``disk``: the mounted folder it lies in, if its disk can fill up. ``pooler``: what ``url`` leads
    through, if anything.
    """

    kind: str
    url: str
    cluster: postgres.Cluster | None = None
    disk: Path | None = None
    pooler: pgbouncer.Pooler | None = None

    def read_only(self, yes: bool) -> None:
        """Let PostgreSQL refuse writes, as a standby does, or accept them again."""
        assert self.cluster is not None
        state = "on" if yes else "off"
        self.cluster.execute(f"ALTER SYSTEM SET default_transaction_read_only = {state}")
        self.cluster.execute("SELECT pg_reload_conf()")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let another program hold SQLite's lock for writing."""
        holder = sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=30)
        try:
            holder.execute("BEGIN IMMEDIATE")
            yield
        finally:
            holder.rollback()
            holder.close()

    @contextmanager
    def full(self) -> Iterator[None]:
        """Fill the disk."""
        assert self.disk is not None
        filler = self.disk / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in FILL_BYTES:
                with suppress(OSError):
                    while file.write(bytes(size)) == size:
                        pass
        try:
            yield
        finally:
            filler.unlink()


@contextmanager
def database(
    kind: str,
    folder: Path,
    *,
    on_disk: bool = False,
    cluster: postgres.Cluster | None = None,
    log_apart: bool = False,
) -> Iterator[Database]:
    """Make a migrated database below ``folder``.

    Args:
        on_disk: on a small disk of its own.
        cluster: the PostgreSQL to use, where it needs no disk of its own.
        log_apart: PostgreSQL's write-ahead log lies in ``folder``, outside of the disk.

    Raises:
        Missing: this system or user cannot mount the disk, or has no PgBouncer.
    """
    if on_disk:
        log = folder if log_apart else None
        with small_disk(DISK_MIB[kind]) as disk, _made(kind, disk, None, log) as made:
            yield replace(made, disk=disk)
        return
    with _made(kind, folder, cluster) as made:
        yield made


@contextmanager
def _made(
    kind: str, folder: Path, cluster: postgres.Cluster | None, log: Path | None = None
) -> Iterator[Database]:
    if kind == "sqlite":
        url = f"sqlite:///{folder / 'server.db'}"
        _migrate(url)
        yield Database(kind, url)
        return
    for each in (folder, log):
        if cluster is None and each is not None:
            each.chmod(0o711)  # PostgreSQL's account must be able to enter a temporary folder.
    here = cluster or postgres.start(durable=True, folder=folder, log=log)
    try:
        name = f"outages_{abs(hash(folder)):x}"
        here.create(name)
        with _pooler(kind, here) as pooler:
            url = (pooler or here).url(name)
            _migrate(url)
            yield Database(kind, url, here, pooler=pooler)
    finally:
        if cluster is None:
            here.stop()


@contextmanager
def _pooler(kind: str, cluster: postgres.Cluster) -> Iterator[pgbouncer.Pooler | None]:
    if kind != "pgbouncer":
        yield None
        return
    try:
        made = pgbouncer.running(cluster)
    except FileNotFoundError as error:
        raise Missing(str(error)) from None
    with made as pooler:
        yield pooler


def _migrate(url: str) -> None:
    engine = open_engine(url)
    migrate.migrate(engine)
    engine.dispose()


@contextmanager
def small_disk(mebibytes: int) -> Iterator[Path]:
    """A disk of that size, mounted at a new folder that PostgreSQL's account may enter.

    Raises:
        Missing: this system or user cannot.
    """
    folder = Path(tempfile.mkdtemp(prefix="trainmark-disk-"))
    options = f"size={mebibytes}m,mode=0755"
    try:
        mounting = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
        subprocess.run(mounting, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        folder.rmdir()
        raise Missing("a disk that fills up needs Linux and root") from None
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()
