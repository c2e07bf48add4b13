"""``reindex`` and ``project``, and the projector beside a server."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event
from typing import Annotated

import typer

from ..db.store import Store
from ..projection import reindex as reindexing
from ..projection.projector import ProjectionStopped, Projector
from .options import DatabaseUrl
from .setup import beside, open_store
from .setup import stop as stop_with


def reindex(database_url: DatabaseUrl = None) -> None:
    """Rebuild the boards from the log, from its first entry."""
    with open_store(database_url) as (store, _), no_traceback(), progress_line() as report:
        count = reindexing.reindex(store, report)
    print(f"projected {count:,} log entries again")


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


def projecting(store: Store) -> AbstractContextManager[None]:
    """A projector in a thread of its own, until the context ends."""
    return beside("projector", Projector(store).run)


def run_until_signal(projector: Projector) -> None:
    stop = Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    print("projecting", flush=True)
    projector.run(stop)


@contextmanager
def no_traceback() -> Iterator[None]:
    """Stop with one line where an entry cannot be projected."""
    try:
        yield
    except ProjectionStopped as stopped:
        raise stop_with(
            f"the projection stopped at {stopped}; a projector tries it again, and results are "
            "accepted meanwhile; if a newer bench-server stops there too, report the entry"
        ) from None


@contextmanager
def progress_line() -> Iterator[Callable[[int], None]]:
    """Shows the number of applied entries on one line of a terminal; elsewhere nothing."""
    terminal = sys.stderr.isatty()

    def report(count: int) -> None:
        if terminal:
            print(f"\r{count:,} entries", end="", file=sys.stderr, flush=True)

    yield report
    if terminal:
        print(file=sys.stderr)
