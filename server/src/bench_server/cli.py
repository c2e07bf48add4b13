"""``bench-server``: serve and migrate."""

from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from . import schema, serving
from .app import create_app
from .db import Store, open_engine
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
    settings = _settings(host=host, port=port, database_url=database_url)
    try:
        store = Store(settings.database_url)
        schema.require_current(store.engine)
        serving.serve(create_app(settings, store), settings.host, settings.port)
    except schema.SchemaMismatch as error:
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
    settings = _settings(database_url=database_url)
    try:
        engine = open_engine(settings.database_url)
        before = schema.current(engine)
        schema.migrate(engine, to)
    except schema.SchemaMismatch as error:
        raise _stop(str(error)) from None
    except SQLAlchemyError as error:
        raise _stop(f"the database does not answer: {error}") from None
    where = make_url(settings.database_url).render_as_string(hide_password=True)
    print(f"{where}: {before or 'empty'} -> {schema.current(engine) or 'empty'}")


def _settings(**given: object) -> Settings:
    try:
        settings = Settings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
        make_url(settings.database_url)
    except ValidationError as error:
        first = error.errors()[0]
        name = "_".join(str(part) for part in first["loc"]).upper()
        raise _stop(f"BENCH_SERVER_{name}: {first['msg']}") from None
    except ArgumentError as error:
        raise _stop(f"BENCH_SERVER_DATABASE_URL: {error}") from None
    return settings


def _stop(reason: str) -> typer.Exit:
    Console(stderr=True, soft_wrap=True).print(f"bench-server: {reason}", markup=False)
    return typer.Exit(2)
