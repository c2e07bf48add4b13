"""Start the server: settings, address, database, keys, then the application."""

import os
import socket
from contextlib import nullcontext
from functools import partial

import typer
from sqlalchemy.exc import SQLAlchemyError

from ..settings import Settings, child_environment
from .listening import OWN_SOCKETS, bind
from .setup import no_answer, opened, read_settings, stop


def start(host: str | None, port: int | None, database_url: str | None) -> None:
    """Clients are refused until the application is ready. Raises typer.Exit if the user interrupted
    it, or the start failed and printed its error."""
    settings, url_from = read_settings(host=host, port=port, database_url=database_url)
    if not settings.origin_fits:
        raise stop(
            f"BENCH_SERVER_ORIGIN is not set, and others can reach this server: its log would be "
            f"named {settings.origin} for ever. Set it to the server's address without https://, "
            "such as trainmark.example"
        )
    own_sockets = settings.workers > 1 and OWN_SOCKETS
    try:
        bound = bind(settings.host, settings.port, shared=own_sockets)
    except OSError as error:
        raise stop(f"cannot listen on {settings.host} port {settings.port}: {error}") from None
    try:
        _serve(settings, url_from, bound)
    except SQLAlchemyError as error:
        raise no_answer(error) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _serve(settings: Settings, url_from: str, bound: socket.socket) -> None:
    # Imported here, because an address that is taken is reported at once.
    from ..db import migrate
    from ..db.store import Store
    from ..log import writer
    from ..log.server_keys import KeysProblem, load_authority
    from .cosign import cosigning_daily
    from .project import projecting
    from .recompute import recomputing

    store = opened(Store, settings, url_from)
    try:
        migrate.require_current(store.engine)
        authority = load_authority(settings.origin, settings.keys_folder)
        with store.writing() as session:
            writer.begin(session, authority)
    except (migrate.SchemaMismatch, KeysProblem) as error:
        raise stop(str(error)) from None
    from . import serve

    if settings.workers > 1:
        os.environ.update(child_environment(settings))
        run = partial(serve.serve_workers, bound, settings)
    else:
        from ..app import create_app  # with several workers only these need it

        # Import before the threads below start: their work would slow the imports down.
        app = create_app(settings, store, authority=authority)
        run = partial(serve.serve, app, bound, settings)
    with (
        projecting(store) if settings.project == "yes" else nullcontext(),
        recomputing(store, settings) if settings.recomputes else nullcontext(),
        cosigning_daily(store, settings),
    ):
        run()
