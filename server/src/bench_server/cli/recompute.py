"""``recompute``, and the process beside a server that runs it.

NumPy holds a core, and Python's lock with it, so a server must not compute in its own process. The
process beside it starts when a job waits and ends when none is left.
"""

import logging
import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager, suppress
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer
from sqlalchemy.exc import SQLAlchemyError

from bench_protocol.base import format as people

from ..db.store import Store, utc_now
from ..log.server_keys import KeysProblem, load_authority
from ..recompute import jobs
from ..recompute.worker import Recomputer
from ..settings import Settings, child_environment
from .options import DatabaseUrl
from .setup import beside, open_store
from .setup import stop as stop_with

if TYPE_CHECKING:
    from ..recompute.real_data import RealData

LOOK_SECONDS = 1.0
RETRY_SECONDS = 30.0
LOWEST_PRIORITY = 19
ONE_CORE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
# The server has warned already.
COMMAND = (
    "import logging; logging.disable(logging.WARNING); "
    "from bench_server.cli.main import main; main(['recompute', '--once'])"
)
logger = logging.getLogger(__name__)


def recompute(
    once: Annotated[bool, typer.Option("--once", help="Stop when no job is left.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Recompute the readings of results on one core, at the lowest priority."""
    count = 0
    with open_store(database_url) as (store, settings):
        be_gentle()
        try:
            authority = load_authority(settings.origin, settings.keys_folder)
        except KeysProblem as error:
            raise stop_with(str(error)) from None
        real = real_data(settings)
        recomputer = Recomputer(store, authority, settings.recompute_seconds, real=real)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if not once:
            print("recomputing", flush=True)
        with suppress(KeyboardInterrupt):
            if once:
                count = recomputer.drain()
            else:
                recomputer.run(Event())
    print(f"{people.plural(count, 'recomputation job')} done")


def real_data(settings: Settings) -> "RealData | None":
    """The real data that is here; what cannot be used, and an empty folder, are warnings."""
    if settings.data_dir is None:
        return None
    from ..recompute.real_data import RealData  # here: it needs NumPy

    here = RealData(settings.data_dir)
    if not here.workloads and not here.problems:
        logger.warning(
            "BENCH_SERVER_DATA_DIR: %s has no data set; bench-agent data list names the files",
            settings.data_dir,
        )
    return here


def be_gentle() -> None:
    """The lowest priority, and one core. Before NumPy is imported."""
    for name in ONE_CORE:
        os.environ[name] = "1"
    if hasattr(os, "nice"):
        os.nice(LOWEST_PRIORITY)


def recomputing(store: Store, settings: Settings) -> AbstractContextManager[None]:
    """A process that recomputes whenever a job waits, until the context ends."""
    return beside("recompute", partial(_follow, store, settings))


def _follow(store: Store, settings: Settings, stop: Event) -> None:
    here = real_data(settings)
    while not stop.wait(LOOK_SECONDS):
        real = here.workloads if here else ()
        try:
            with store.reading() as session:
                now = utc_now()
                due = jobs.are_due(session, now, real)
        except SQLAlchemyError:
            logger.exception("the database does not answer")
            stop.wait(RETRY_SECONDS)
            continue
        if due and _process(settings, stop) != 0 and not stop.is_set():
            logger.error("bench-server recompute failed; it is started again later")
            stop.wait(RETRY_SECONDS)


def _process(settings: Settings, stop: Event) -> int:
    """Run the command until it ends or the server does. Returns its exit status."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND],
        env=child_environment(settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None:
            if stop.wait(LOOK_SECONDS / 4):
                process.terminate()
                break
        return process.wait()
