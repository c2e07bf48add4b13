"""The schema's version: bring a database to it, and refuse to work on another one.

Only :func:`migrate` imports Alembic: a server that starts, and each request of ``/readyz``, compare
two versions.
"""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, column, inspect, select, table

from . import privileges
from .tables import Table

PACKAGE = Path(__file__).resolve().parents[1]
# Alembic's table, of one row.
VERSION = table("alembic_version", column("version_num"))


class SchemaMismatch(RuntimeError):
    """The database is not at the version this program works with; the message says what to run."""


def migrations_folder() -> Path:
    """The migrations: in an installed wheel inside the package, in a checkout at its root."""
    for folder in (PACKAGE / "migrations", PACKAGE.parents[2] / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise FileNotFoundError("the migrations are missing from this installation of bench-server")


def head() -> str:
    """The newest version these migrations know. Their files are named by version, in order."""
    files = (migrations_folder() / "versions").glob("[0-9]*_*.py")
    newest = max((file.name.partition("_")[0] for file in files), default=None)
    if newest is None:
        raise FileNotFoundError(f"no migration in {migrations_folder()}")
    return newest


def current(engine: Engine) -> str | None:
    """The database's version, None where nothing was migrated yet."""
    with engine.connect() as connection:
        if not inspect(connection).has_table(VERSION.name):
            return None
        version: str | None = connection.scalar(select(VERSION.c.version_num))
        return version


def migrate(engine: Engine) -> None:
    """Upgrade the database to :func:`head`; on PostgreSQL, grant the server's role its privileges.

    Raises:
        SchemaMismatch: the database is at a version that this program does not know.
    """
    from alembic import command
    from alembic.config import Config

    _refuse_newer(current(engine))
    config = Config()
    # Alembic reads this option through ConfigParser, where % begins an interpolation.
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["metadata"] = Table.metadata
    with engine.execution_options(write=True).connect() as connection:
        _check_foreign_keys(connection, False)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        privileges.grant(connection)
        connection.commit()
        _check_foreign_keys(connection, True)


def require_current(engine: Engine) -> None:
    """Return if the database is at :func:`head`.

    Raises:
        SchemaMismatch: it is empty, older or newer.
    """
    version, wanted = current(engine), head()
    if version is None:
        raise SchemaMismatch("the database has no tables yet; run: bench-server migrate")
    _refuse_newer(version)
    if version != wanted:
        raise SchemaMismatch(
            f"the database is at version {version}, this program needs {wanted}; "
            "run: bench-server migrate"
        )


def _check_foreign_keys(connection: Connection, check: bool) -> None:
    """Switch SQLite's checks. SQLite changes a table by copying it, and dropping the old copy must
    cascade nowhere. The setting has no effect inside a transaction."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.dbapi_connection
        driver.execute(f"PRAGMA foreign_keys = {'ON' if check else 'OFF'}")


def _refuse_newer(version: str | None) -> None:
    if version is not None and version > head():
        raise SchemaMismatch(
            f"the database is at version {version}, which is newer than this program knows "
            f"({head()}); run: pip install --upgrade bench-server"
        )
