"""The commands of ``bench-server`` besides ``serve``."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from sqlalchemy.exc import SQLAlchemyError

from bench_protocol.base import format as people

from ..db import migrate as migrations
from ..db.store import Store
from ..projection import reindex as reindexing
from ..projection.projector import Projector
from ..ranking import published
from . import cosign as cosigners
from . import data as data_commands
from . import operator
from . import recompute as recomputing
from .options import DatabaseUrl
from .project import no_traceback, progress_line, run_until_signal
from .setup import no_answer, open_store, opened, read_settings, shown, stop

# Join the lines of a paragraph, as the group of these commands does.
others = typer.Typer(rich_markup_mode="markdown")


@others.command()
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
    print(f"{where}: {changed}")


@others.command()
def reindex(database_url: DatabaseUrl = None) -> None:
    """Rebuild the boards from the log, from its first entry."""
    with (
        open_store(database_url) as (store, _),
        no_traceback(),
        progress_line() as report,
    ):
        count = reindexing.reindex(store, report)
    print(f"projected {count:,} log entries again")


@others.command()
def project(
    once: Annotated[bool, typer.Option("--once", help="Stop at the log's present end.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Apply new log entries to the boards, for servers with BENCH_SERVER_PROJECT=no."""
    with open_store(database_url) as (store, _):
        if not once:
            run_until_signal(Projector(store))
            return
        with no_traceback():
            count = Projector(store).catch_up()
    print(f"the boards include {count:,} log entries")


@others.command()
def recompute(
    once: Annotated[bool, typer.Option("--once", help="Stop when no job is left.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Recompute the traces of results on one core, at the lowest priority."""
    with open_store(database_url) as (store, settings):
        count = recomputing.work(store, settings, once)
    print(f"{people.plural(count, 'recomputation job')} done")


@others.command()
def cosign(database_url: DatabaseUrl = None) -> None:
    """Ask witnesses for today's cosignatures of the log, as serve does once a day."""
    with open_store(database_url) as (store, settings):
        witnesses = cosigners.cosigners_of(settings)
        if not witnesses:
            raise stop("no witness is configured: set BENCH_SERVER_WITNESSES first")
        asked = cosigners.once(store, witnesses, datetime.now(UTC))
    for witness, outcome in asked:
        signed = isinstance(outcome, int)
        print(f"{witness.name}: {f'signed {outcome:,} entries' if signed else outcome}")
    rest = "; the others have signed today" if len(asked) < len(witnesses) else ""
    print(f"asked {len(asked)} of {len(witnesses)} witnesses{rest}")
    if any(not isinstance(outcome, int) for _, outcome in asked):
        raise typer.Exit(1)


@others.command()
def import_published(database_url: DatabaseUrl = None) -> None:
    """Import the figures of other sources that come with this program, at trust level 0."""
    with open_store(database_url) as (store, _), store.writing() as session:
        new, there = published.import_published(session)
    print(f"imported {new} published figures; {there - new} were there already")


others.add_typer(operator.keys, name="keys")
others.add_typer(operator.owners, name="owners")
others.add_typer(operator.results, name="results")
others.command()(data_commands.export)
others.command()(data_commands.backup)
others.command()(data_commands.restore)
others.command()(operator.create_invite)
others.command()(operator.verify_log)
