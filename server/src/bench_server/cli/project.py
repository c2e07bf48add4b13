"""Runs a projector: beside a server, or as a command of its own."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from ..db.store import Store
from ..projection.projector import ProjectionStopped, Projector
from .setup import stop as stop_with


@contextmanager
def projecting(store: Store) -> Iterator[None]:
    """A projector in a thread of its own, until the context ends."""
    stop = Event()
    thread = Thread(target=Projector(store).run, args=(stop,), name="projector", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def run_until_signal(projector: Projector) -> None:
    """Follow the log until SIGTERM or Ctrl-C."""
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
