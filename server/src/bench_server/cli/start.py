"""Start the server: settings, database, keys, then the application."""

import os
from contextlib import nullcontext

import typer
from sqlalchemy.exc import SQLAlchemyError

from ..db import migrate
from ..db.store import Store
from ..log import writer
from ..log.server_keys import KeysProblem, load_authority
from . import serve
from .countersign import countersigning_daily
from .project import projecting
from .recompute import recomputing
from .setup import no_answer, opened, read_settings, stop


def start(host: str | None, port: int | None, database_url: str | None) -> None:
    """Serve until a signal ends it. Each argument overrides its setting.

    Raises:
        typer.Exit: it was interrupted, or the error was printed.
    """
    settings, url_from = read_settings(host=host, port=port, database_url=database_url)
    store = opened(Store, settings, url_from)
    try:
        migrate.require_current(store.engine)
        authority = load_authority(settings.origin, settings.keys_folder)
        with store.writing() as session:
            writer.begin(session, authority)
        with (
            projecting(store) if settings.project == "yes" else nullcontext(),
            recomputing(store, settings) if settings.recomputes else nullcontext(),
            countersigning_daily(store, settings),
        ):
            if settings.workers > 1:
                # Workers read the environment, so the options are put there too.
                os.environ["BENCH_SERVER_DATABASE_URL"] = settings.database_url
                serve.serve_workers(
                    settings.host, settings.port, settings.workers, settings.trusted_proxies
                )
                return
            from ..app import create_app  # here: with several workers only these need it

            app = create_app(settings, store, authority=authority)
            serve.serve(app, settings.host, settings.port, settings.trusted_proxies)
    except (migrate.SchemaMismatch, KeysProblem) as error:
        raise stop(str(error)) from None
    except SQLAlchemyError as error:
        raise no_answer(error) from None
    except OSError as error:
        raise stop(f"cannot listen on {settings.host} port {settings.port}: {error}") from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
