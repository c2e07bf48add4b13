"""``bench-server``: the commands of who runs a server."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar, cast

import typer
from pydantic import ValidationError
from rich.console import Console
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from . import backup as backups
from . import dumps, exports, log, published, schema, serving
from . import reindex as reindexing
from .app import create_app, utc_now
from .authority import KeysProblem, load_authority
from .db import Store, UnknownDatabase
from .settings import Settings

main = typer.Typer(
    help="Trainmark's server. Settings come from BENCH_SERVER_*.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
DatabaseUrl = Annotated[
    str | None, typer.Option(help="Database address, else BENCH_SERVER_DATABASE_URL.")
]


@main.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Serve API and pages until interrupted."""
    settings, url_from = _settings(host=host, port=port, database_url=database_url)
    store = _opened(Store, settings, url_from)
    try:
        schema.require_current(store.engine)
        authority = load_authority(settings.origin, settings.keys_folder)
        with store.writing() as session:
            log.begin(session, authority)
        app = create_app(settings, store, authority=authority)
        serving.serve(app, settings.host, settings.port, settings.trusted_proxies)
    except (schema.SchemaMismatch, KeysProblem) as error:
        raise _stop(str(error)) from None
    except SQLAlchemyError as error:
        raise _stop(f"the database does not answer: {error}") from None
    except OSError as error:
        raise _stop(f"cannot listen on {settings.host} port {settings.port}: {error}") from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@main.command()
def migrate(
    to: Annotated[str, typer.Option(help="Version to go to; 'base' removes every table.")] = "head",
    database_url: DatabaseUrl = None,
) -> None:
    """Bring the database to this program's version."""
    settings, url_from = _settings(database_url=database_url)
    store = _opened(Store, settings, url_from)
    try:
        before = schema.current(store.engine)
        schema.migrate(store.engine, to)
        after = schema.current(store.engine)
        # A step makes derived columns and leaves filling them to the program that reads them.
        rebuilt = 0
        if before and before != after == schema.head():
            rebuilt = reindexing.reindex(store, settings.origin)
    except schema.UnknownVersion as error:
        raise _stop(f"--to: {error}") from None
    except schema.SchemaMismatch as error:
        raise _stop(str(error)) from None
    except SQLAlchemyError as error:
        raise _stop(f"the database does not answer: {error}") from None
    where = make_url(settings.database_url).render_as_string(hide_password=True)
    if before == after:
        print(f"{where}: already at {after}" if after else f"{where}: already empty")
    else:
        print(f"{where}: {before or 'empty'} -> {after or 'empty'}")
        if rebuilt:
            print(f"rebuilt what is derived from {rebuilt:,} results")


@main.command()
def reindex(database_url: DatabaseUrl = None) -> None:
    """Rebuild what is derived from the received payloads."""
    with _store(database_url) as (store, settings):
        count = reindexing.reindex(store, settings.origin)
        print(f"rebuilt what is derived from {count:,} results")


@main.command()
def import_published(database_url: DatabaseUrl = None) -> None:
    """Take in the published figures this program brings, at trust level 0."""
    with _store(database_url) as (store, _), store.writing() as session:
        new, there = published.import_published(session)
    print(f"{new} published figures are new, of {there}")


@main.command()
def export(
    to: Annotated[Path | None, typer.Argument(help="FILE.csv, FILE.jsonl or FILE.parquet")] = None,
    daily: Annotated[
        Path | None, typer.Option(help="Folder for today's dump in all three formats.")
    ] = None,
    keep_days: Annotated[int, typer.Option(min=1, help="Daily dumps to keep.")] = 30,
    database_url: DatabaseUrl = None,
) -> None:
    """Write every result to a file, or today's dump into a folder."""
    form = to.suffix[1:] if to else None
    if (to is None) == (daily is None) or (to and form not in dumps.FORMATS):
        raise _stop(f"name a file that ends in {', '.join(dumps.FORMATS)}, or --daily FOLDER")
    try:
        with _store(database_url) as (store, _):
            if to is not None:
                dumps.write(store, cast("exports.Format", form), to)
            made = (
                [to]
                if to
                else dumps.write_daily(store, daily or Path(), utc_now().date(), keep_days)
            )
    except OSError as error:
        raise _stop(f"cannot write: {error}") from None
    for path in made:
        print(path)


@main.command()
def backup(
    to: Annotated[Path, typer.Argument(help="New file; the server may keep running.")],
    database_url: DatabaseUrl = None,
) -> None:
    """Copy the database, as it is at one moment, into a file."""
    try:
        with _store(database_url) as (store, _):
            count = backups.backup(store.engine, to)
    except (backups.NotEmpty, OSError) as error:
        raise _stop(str(error)) from None
    print(f"{to}: {count:,} rows; keep the server's keys with it (BENCH_SERVER_KEYS_DIR)")


@main.command()
def restore(
    backup: Annotated[Path, typer.Argument(help="A file that bench-server backup made.")],
    database_url: DatabaseUrl = None,
) -> None:
    """Copy a backup into an empty, migrated database of either kind."""
    try:
        with _store(database_url) as (store, _):
            count = backups.restore(store.engine, backup)
    except (backups.NotEmpty, schema.SchemaMismatch, OSError) as error:
        raise _stop(str(error)) from None
    print(f"{count:,} rows from {backup}")


@contextmanager
def _store(database_url: str | None) -> Iterator[tuple[Store, Settings]]:
    """The database at this program's version with the settings, or one line that says what is
    wrong."""
    settings, url_from = _settings(database_url=database_url)
    store = _opened(Store, settings, url_from)
    try:
        schema.require_current(store.engine)
        yield store, settings
    except schema.SchemaMismatch as error:
        raise _stop(str(error)) from None
    except SQLAlchemyError as error:
        raise _stop(f"the database does not answer: {error}") from None
    finally:
        store.close()


Opened = TypeVar("Opened")


def _opened(make: Callable[[str], Opened], settings: Settings, url_from: str) -> Opened:
    """What ``make`` makes of the database's address, or one line that says what is wrong."""
    try:
        return make(settings.database_url)
    except (UnknownDatabase, ArgumentError) as error:
        raise _stop(f"{url_from}: {error}") from None
    except ImportError:
        words = "the driver is not installed; run: pip install 'bench-server[postgresql]'"
        raise _stop(f"{url_from}: {words}") from None
    except OSError as error:
        raise _stop(f"{url_from}: cannot make the folder of the database: {error}") from None


def _settings(**given: object) -> tuple[Settings, str]:
    """The settings, and where the database's address comes from. Options go before variables, and
    whichever was wrong is named."""

    def source(name: str) -> str:
        variable = f"BENCH_SERVER_{name.upper()}"
        return variable if given.get(name) is None else f"--{name.replace('_', '-')}"

    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
        make_url(settings.database_url)
    except ValidationError as error:
        first = error.errors()[0]
        name = "_".join(str(part) for part in first["loc"])
        raise _stop(f"{source(name)}: {first['msg']}") from None
    except ArgumentError as error:
        raise _stop(f"{source('database_url')}: {error}") from None
    return settings, source("database_url")


def _stop(reason: str) -> typer.Exit:
    Console(stderr=True, soft_wrap=True).print(f"bench-server: {reason}", markup=False)
    return typer.Exit(2)
