"""The schema's version: bring a database to it, and refuse to work on another one.

Alembic is imported where a database is not at the newest version: a server that starts, and each
request of ``/readyz``, only compare two versions.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, column, func, inspect, select, table

from . import privileges

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

PACKAGE = Path(__file__).resolve().parents[1]
# Alembic's table, of one row.
VERSION = table("alembic_version", column("version_num"))
# What no other version can give back, by the version that brought its table. All else is derived.
ONLY_HERE = {
    "0001": {"submission": "results", "signing_key": "keys"},
    "0003": {
        "log_entry": "entries of the log",
        "owner": "owners",
        "invite": "invitations",
        "challenge": "challenges",
        "withdrawn": "marks of withdrawn results",
    },
    "0004": {"published_figure": "published figures"},
}


class SchemaMismatch(RuntimeError):
    """The database is not at the version this program works with; the message says what to run."""


class UnknownVersion(ValueError):
    """No migration has this name; the message lists them all."""


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


def migrate(engine: Engine, revision: str = "head") -> None:
    """Upgrade, or downgrade where ``revision`` is ``base`` or one before the database's own. On
    PostgreSQL the server's role then gets what it may do with the tables.

    Raises:
        UnknownVersion: there is no such version to go to.
        SchemaMismatch: the database is at a version this program does not know.
    """
    from alembic import command

    down = _is_down(engine, revision)
    with engine.execution_options(write=True).connect() as connection:
        _check_foreign_keys(connection, False)
        config = _config()
        config.attributes["connection"] = connection
        (command.downgrade if down else command.upgrade)(config, revision)
        privileges.grant(connection)
        connection.commit()
        _check_foreign_keys(connection, True)


def lost_by(engine: Engine, revision: str) -> list[str]:
    """What :func:`migrate` to ``revision`` would throw away for good, each with its number.

    Raises:
        UnknownVersion, SchemaMismatch: as :func:`migrate` does.
    """
    if not _is_down(engine, revision):
        return []
    undone = _newer_than(revision)
    only_here = {
        name: words
        for version, tables in ONLY_HERE.items()
        if version in undone
        for name, words in tables.items()
    }
    lost = []
    with engine.connect() as connection:
        there = inspect(connection).get_table_names()
        for name in filter(there.__contains__, only_here):
            count = connection.scalar(select(func.count()).select_from(table(name)))
            if count:
                lost.append(f"{count:,} {only_here[name]}")
    return lost


def require_current(engine: Engine) -> None:
    """Return if the database is at :func:`head`.

    Raises:
        SchemaMismatch: it is empty, older or newer.
    """
    current_version, wanted = current(engine), head()
    if current_version == wanted:
        return
    if current_version is None:
        raise SchemaMismatch("the database has no tables yet; run: bench-server migrate")
    if current_version in {script.revision for script in _scripts().walk_revisions()}:
        raise SchemaMismatch(
            f"the database is at version {current_version}, this program needs {wanted}; "
            "run: bench-server migrate"
        )
    raise SchemaMismatch(_newer(current_version))


def _check_foreign_keys(connection: Connection, check: bool) -> None:
    """SQLite changes a table by making it anew, and dropping the old one must cascade nowhere. It
    takes this setting only outside of a transaction."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.dbapi_connection
        driver.execute(f"PRAGMA foreign_keys = {'ON' if check else 'OFF'}")


def _is_down(engine: Engine, revision: str) -> bool:
    """Whether ``revision`` lies before the database's own; raises as :func:`migrate` does."""
    known_versions = {script.revision for script in _scripts().walk_revisions()}
    if revision not in {"base", "head", *known_versions}:
        possible = ", ".join(["base", *sorted(known_versions), "head"])
        raise UnknownVersion(f"there is no version {revision!r}; possible are {possible}")
    before = current(engine)
    if before is not None and before not in known_versions:
        raise SchemaMismatch(_newer(before))
    return revision != "head" and before in _newer_than(revision)


def _newer(current_version: str) -> str:
    return (
        f"the database is at version {current_version}, which is newer than this program knows "
        f"({head()}); run: pip install --upgrade bench-server"
    )


def _newer_than(revision: str) -> set[str]:
    scripts = _scripts()
    return {s.revision for s in scripts.iterate_revisions("head", revision)} - {revision}


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    # Alembic reads this option through ConfigParser, where % begins an interpolation.
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    return config


def _scripts() -> "ScriptDirectory":
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(_config())
