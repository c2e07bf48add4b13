"""Commands about the server's data: migrate, import-published, export, backup, restore."""

from pathlib import Path
from typing import Annotated, cast

import typer
from sqlalchemy.exc import SQLAlchemyError

from ..db import backup as backups
from ..db import migrate as migrations
from ..db.store import Store, utc_now
from ..export import daily as daily_dumps
from ..export import formats
from ..ranking import published
from .options import DatabaseUrl
from .setup import no_answer, open_store, opened, read_settings, shown, stop


def migrate(database_url: DatabaseUrl = None) -> None:
    """Bring the database to this program's version."""
    settings, url_from = read_settings(database_url=database_url)
    store = opened(Store, settings, url_from)
    try:
        before = migrations.current(store.engine)
        migrations.migrate(store.engine)
        after = migrations.current(store.engine)
    except migrations.SchemaMismatch as error:
        raise stop(str(error)) from None
    except SQLAlchemyError as error:
        raise no_answer(error) from None
    where = shown(settings.database_url)
    changed = f"already at {after}" if before == after else f"{before or 'empty'} -> {after}"
    print(f"{where}: schema {changed}")


def import_published(database_url: DatabaseUrl = None) -> None:
    """Import the figures of other sources that come with this program, at trust level 0."""
    with open_store(database_url) as (store, _), store.writing() as session:
        new, there = published.import_published(session)
    print(f"imported {new} published figures; {there - new} were there already")


def export(
    to: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="FILE.csv, FILE.jsonl or FILE.parquet")
    ] = None,
    daily: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for today's dump in all three formats."),
    ] = None,
    keep_days: Annotated[
        int, typer.Option(min=1, metavar="N", help="Daily dumps to keep, at least 1.")
    ] = 30,
    database_url: DatabaseUrl = None,
) -> None:
    """Write every result to a file, or today's dump into a folder."""
    form = to.suffix[1:] if to else None
    if (to is None) == (daily is None) or (to and form not in daily_dumps.FORMATS):
        endings = ", ".join(f".{name}" for name in daily_dumps.FORMATS)
        raise stop(f"name a file that ends in one of {endings}, or --daily FOLDER")
    made: list[Path] = []
    try:
        with open_store(database_url) as (store, _):
            if to is not None:
                daily_dumps.write(store, cast("formats.Format", form), to)
                made = [to]
            elif daily is not None:
                made = daily_dumps.write_daily(store, daily, utc_now().date(), keep_days)
    except OSError as error:
        raise stop(f"cannot write: {error}") from None
    for path in made:
        print(path)


def backup(
    to: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="New file; the server may keep running.")
    ] = None,
    daily: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for today's backup.")
    ] = None,
    keep_days: Annotated[
        int, typer.Option(min=1, metavar="N", help="Daily backups to keep, at least 1.")
    ] = 30,
    database_url: DatabaseUrl = None,
) -> None:
    """Write a consistent copy of the database to a file, or today's backup into a folder."""
    if (to is None) == (daily is None):
        raise stop("name a new file, or --daily FOLDER")
    try:
        with open_store(database_url) as (store, _):
            if to is not None:
                count = backups.backup(store.engine, to)
            elif daily is not None:
                to, count = backups.backup_daily(store.engine, daily, utc_now().date(), keep_days)
    except (backups.NotEmpty, OSError) as error:
        raise stop(str(error)) from None
    print(f"{to}: {count:,} rows; keep the server's keys with it (BENCH_SERVER_KEYS_DIR)")


def restore(
    backup: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that bench-server backup made.")
    ],
    database_url: DatabaseUrl = None,
) -> None:
    """Copy a backup into an empty, migrated database, SQLite or PostgreSQL."""
    try:
        with open_store(database_url) as (store, _):
            count = backups.restore(store.engine, backup)
    except (backups.NoBackup, backups.NotEmpty, migrations.SchemaMismatch) as error:
        raise stop(str(error)) from None
    print(f"{count:,} rows from {backup}")
