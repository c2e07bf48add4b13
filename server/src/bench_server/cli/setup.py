"""Set-up of commands: settings, database, and one-line error messages."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TypeVar

import typer
from pydantic import ValidationError
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from bench_protocol.base.units import plain_text

from ..db import migrate
from ..db.store import UNAVAILABLE, Store, UnknownDatabase
from ..settings import PREFIX, Settings, secret_names, unknown

LONGEST_REASON = 4000
# Install from a checkout: the package is on no index yet.
INSTALL_DRIVER = "in a checkout: pip install ./shared './server[postgresql]'"


@contextmanager
def open_store(database_url: str | None) -> Iterator[tuple[Store, Settings]]:
    """The database at this program's version. Stop with one line on an error."""
    settings, url_from = read_settings(database_url=database_url)
    store = opened(Store, settings, url_from)
    try:
        migrate.require_current(store.engine)
        yield store, settings
    except migrate.SchemaMismatch as error:
        raise stop(str(error)) from None
    except SQLAlchemyError as error:
        raise no_answer(error) from None
    finally:
        store.close()


Opened = TypeVar("Opened")


def opened(make: Callable[[str], Opened], settings: Settings, url_from: str) -> Opened:
    """Call ``make`` with the database's address; stop with one line on an error."""
    try:
        return make(settings.database_url)
    except (UnknownDatabase, ArgumentError) as error:
        raise stop(f"{url_from}: {error}") from None
    except ImportError:
        words = f"the driver is not installed; {INSTALL_DRIVER}"
        raise stop(f"{url_from}: {words}") from None
    except OSError as error:
        raise stop(f"{url_from}: cannot make the folder of the database: {error}") from None


def read_settings(**options: object) -> tuple[Settings, str]:
    """Options override variables. An error names the wrong one and the valid values."""

    def source(name: str) -> str:
        variable = f"{PREFIX}{name.upper()}"
        return variable if options.get(name) is None else f"--{name.replace('_', '-')}"

    if wrong := unknown([*os.environ, *secret_names()]):
        raise stop(wrong)
    try:
        settings = Settings(**{name: value for name, value in options.items() if value is not None})  # type: ignore[arg-type]
        url = make_url(settings.database_url)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        # Only our own checks may quote the value: it can be a secret.
        reason = first.get("ctx", {}).get("error", "this value cannot be used")
        possible = Settings.model_fields[name].description
        raise stop(f"{source(name)}: {reason}; wanted: {possible}") from None
    except (ArgumentError, ValueError):  # ValueError: the port is no number
        possible = Settings.model_fields["database_url"].description
        raise stop(f"{source('database_url')}: not a database URL; wanted: {possible}") from None
    if url.get_backend_name() == "postgresql" and "@" in f"{url.host}{url.database}":
        # The driver's error would quote the part of the password after it.
        raise stop(f"{source('database_url')}: its password holds an @; write it as %40")
    return settings, source("database_url")


def shown(database_url: str) -> str:
    """A database's address without its passwords."""
    url = make_url(database_url).difference_update_query(("password", "sslpassword"))
    return url.render_as_string(hide_password=True)


def no_answer(error: SQLAlchemyError) -> typer.Exit:
    """The error of the database's driver, without the statement and SQLAlchemy's advice."""
    words = " ".join(str(getattr(error, "orig", None) or error).split())
    what = "does not answer" if isinstance(error, UNAVAILABLE) else "refuses this"
    return stop(f"the database {what}: {words}")


@contextmanager
def beside(
    name: str, follow: Callable[[Event], object], join_seconds: float | None = None
) -> Iterator[None]:
    """Run a function in a thread until the context ends, which sets its event and waits for it."""
    stop = Event()
    thread = Thread(target=follow, args=(stop,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(join_seconds)


def remark(words: str) -> None:
    """Print a line for people on standard error; standard output stays one row an item."""
    print(words, file=sys.stderr)


def stop(reason: str) -> typer.Exit:
    """Print why a command ends, on one line without control characters."""
    from rich.console import Console  # here: most commands print no error

    words = plain_text(f"bench-server: {reason}", limit=LONGEST_REASON)
    Console(stderr=True, soft_wrap=True).print(words, markup=False)
    return typer.Exit(2)
