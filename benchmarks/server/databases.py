"""Databases with results in them: SQLite files in a temporary folder, one durable PostgreSQL."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import func, make_url, select
from tests.fakes import postgres

from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.db.tables import Submission
from bench_server.log.server_keys import load_authority
from bench_server.projection import position

from . import seed, world


@dataclass(frozen=True)
class Database:
    """A database with results, and a folder for the server's keys."""

    kind: str
    url: str
    place: Path
    stored: int

    def count(self) -> int:
        """Results in it now."""
        store = Store(self.url)
        try:
            with store.reading() as session:
                return session.scalar(select(func.count()).select_from(Submission)) or 0
        finally:
            store.close()

    def age_challenges(self) -> None:
        """Make the challenges as old as the runs that are bound to them are long."""
        store = Store(self.url)
        try:
            world.age(store)
        finally:
            store.close()

    def lag(self) -> int:
        """Log entries that are not projected yet."""
        store = Store(self.url)
        try:
            with store.reading() as session:
                return position.lag(session).entries
        finally:
            store.close()


@contextmanager
def databases(kinds: list[str]) -> Iterator["Databases"]:
    """Makes databases on request, and removes them at the end.

    Raises:
        FileNotFoundError: PostgreSQL's programs are not installed; the message says how.
    """
    cluster = postgres.start(durable=True) if "postgresql" in kinds else None
    with tempfile.TemporaryDirectory(prefix="trainmark-benchmark-") as folder:
        try:
            yield Databases(Path(folder), cluster)
        finally:
            if cluster:
                cluster.stop()


@dataclass
class Databases:
    """Makes databases with a number of results, each with its own folder for the server's keys."""

    folder: Path
    cluster: postgres.Cluster | None
    made: int = 0

    def new(self, kind: str, size: int) -> Database:
        """A database with this number of results."""
        database = self.empty(kind)
        store = Store(database.url)
        try:
            authority = load_authority(world.ORIGIN, database.place / "keys")
            return replace(database, stored=seed.seed(store, authority, size))
        finally:
            store.close()

    def empty(self, kind: str) -> Database:
        """A migrated database without results."""
        self.made += 1
        name = f"benchmark_{self.made}"
        place = self.folder / name
        place.mkdir()
        url = f"sqlite:///{place / 'server.db'}"
        if kind == "postgresql":
            assert self.cluster is not None
            self.cluster.create(name)
            url = self.cluster.url(name)
        store = Store(url)
        try:
            migrate.migrate(store.engine)
        finally:
            store.close()
        return Database(kind, url, place, 0)

    def remove(self, database: Database) -> None:
        """Free the disk that a database takes."""
        shutil.rmtree(database.place)
        if self.cluster is not None and database.kind == "postgresql":
            self.cluster.drop(make_url(database.url).database or "")
