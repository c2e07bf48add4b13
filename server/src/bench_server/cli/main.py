"""``bench-server``: the commands of who runs a server."""

import os
from typing import Annotated

import typer
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from .. import __version__
from ..app import create_app
from ..db import migrate as schema
from ..db.store import Store
from ..ingest import reindex as reindexing
from ..log import log
from ..log.server_keys import KeysProblem, load_authority
from ..ranking import published
from . import data as copies
from . import operator
from . import serve as serving
from .startup import DatabaseUrl, no_answer, open_store, opened, read_settings, stop

main = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",  # lines of a paragraph belong together
    pretty_exceptions_enable=False,
)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"bench-server {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", is_eager=True, callback=_say_version, help="Show the version."),
]


@main.callback()
def program(version: Version = False) -> None:
    """Trainmark's server. Settings come from BENCH_SERVER_*."""


@main.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Serve API and pages until interrupted."""
    settings, url_from = read_settings(host=host, port=port, database_url=database_url)
    store = opened(Store, settings, url_from)
    try:
        schema.require_current(store.engine)
        authority = load_authority(settings.origin, settings.keys_folder)
        with store.writing() as session:
            log.begin(session, authority)
        if settings.workers > 1:
            store.close()
            # Workers read the environment; options stand in it too.
            os.environ["BENCH_SERVER_DATABASE_URL"] = settings.database_url
            serving.serve_workers(
                settings.host, settings.port, settings.workers, settings.trusted_proxies
            )
            return
        app = create_app(settings, store, authority=authority)
        serving.serve(app, settings.host, settings.port, settings.trusted_proxies)
    except (schema.SchemaMismatch, KeysProblem) as error:
        raise stop(str(error)) from None
    except SQLAlchemyError as error:
        raise no_answer(error) from None
    except OSError as error:
        raise stop(f"cannot listen on {settings.host} port {settings.port}: {error}") from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@main.command()
def migrate(
    to: Annotated[str, typer.Option(help="Version to go to; 'base' removes every table.")] = "head",
    lose: Annotated[
        bool, typer.Option("--lose", help="Go back even where that throws data away for good.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Bring the database to this program's version."""
    settings, url_from = read_settings(database_url=database_url)
    store = opened(Store, settings, url_from)
    try:
        before = schema.current(store.engine)
        lost = schema.lost_by(store.engine, to)
        if lost and not lose:
            raise stop(
                f"--to {to} would throw away {', '.join(lost)} for good; run: bench-server backup "
                "FILE, then the same with --lose"
            )
        schema.migrate(store.engine, to)
        after = schema.current(store.engine)
        # A step makes derived columns and leaves filling them to the program that reads them.
        rebuilt = 0
        if before and before != after == schema.head():
            rebuilt = reindexing.reindex(store, settings.origin)
    except schema.UnknownVersion as error:
        raise stop(f"--to: {error}") from None
    except schema.SchemaMismatch as error:
        raise stop(str(error)) from None
    except SQLAlchemyError as error:
        raise no_answer(error) from None
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
    with open_store(database_url) as (store, settings):
        count = reindexing.reindex(store, settings.origin)
        print(f"rebuilt what is derived from {count:,} results")


@main.command()
def import_published(database_url: DatabaseUrl = None) -> None:
    """Take in the published figures this program brings, at trust level 0."""
    with open_store(database_url) as (store, _), store.writing() as session:
        new, there = published.import_published(session)
    print(f"{new} published figures are new, of {there}")


main.add_typer(operator.keys, name="keys")
main.add_typer(operator.owners, name="owners")
main.add_typer(operator.results, name="results")
main.command()(copies.export)
main.command()(copies.backup)
main.command()(copies.restore)
main.command()(operator.create_invite)
main.command()(operator.verify_log)
