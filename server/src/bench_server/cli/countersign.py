"""Asks others to countersign the daily checkpoint: as a command, and in a thread of a server."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from threading import Event, Thread

from sqlalchemy.exc import SQLAlchemyError

from .. import extras
from ..db.store import Store
from ..log import cosigners, countersigning
from ..log.countersigning import NoCountersignature, Signer
from ..log.stamps import NoStamp, StampAuthority, read_certificates
from ..settings import Settings
from .setup import stop as stop_with

LOOK_SECONDS = 60.0
RETRY_SECONDS = 900.0
# At its end the server does not wait for an answer from far away.
JOIN_SECONDS = 1.0
logger = logging.getLogger(__name__)


def signers_of(settings: Settings) -> tuple[Signer, ...]:
    """The configured signers.

    Raises:
        typer.Exit: a setting is invalid, or the extra ``timestamps`` is not installed.
    """
    try:
        signers: list[Signer] = [*cosigners.parse(settings.witnesses)]
    except ValueError as error:
        raise stop_with(f"BENCH_SERVER_WITNESSES: {error}") from None
    if settings.timestamp_url is None:
        return tuple(signers)
    if settings.timestamp_certificates is None:
        raise stop_with("BENCH_SERVER_TIMESTAMP_URL needs BENCH_SERVER_TIMESTAMP_CERTIFICATES")
    if find_spec("rfc3161_client") is None:
        raise stop_with(f"BENCH_SERVER_TIMESTAMP_URL: {extras.install('timestamps')}")
    try:
        roots = read_certificates(settings.timestamp_certificates)
    except NoStamp as error:
        raise stop_with(f"BENCH_SERVER_TIMESTAMP_CERTIFICATES: {error}") from None
    return (*signers, StampAuthority(settings.timestamp_url, roots))


def once(
    store: Store, signers: Sequence[Signer], now: datetime
) -> tuple[tuple[Signer, int | NoCountersignature], ...]:
    """Ask each signer that has not countersigned today.

    Returns:
        For each that was asked the size that it signed, or why it signed none.
    """
    asked: list[tuple[Signer, int | NoCountersignature]] = []
    for signer in countersigning.due(store, signers, now):
        try:
            asked.append((signer, countersigning.countersign(store, signer, now)))
        except NoCountersignature as error:
            asked.append((signer, error))
    return tuple(asked)


@contextmanager
def countersigning_daily(store: Store, settings: Settings) -> Iterator[None]:
    """A thread that asks every day, until the context ends; none without signers."""
    signers = signers_of(settings)
    if not signers:
        yield
        return
    stop = Event()
    follow = Thread(target=_follow, args=(store, signers, stop), name="countersign", daemon=True)
    follow.start()
    try:
        yield
    finally:
        stop.set()
        follow.join(JOIN_SECONDS)


def _follow(
    store: Store,
    signers: Sequence[Signer],
    stop: Event,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    while True:
        failed = False
        try:
            for _, outcome in once(store, signers, clock()):
                if isinstance(outcome, NoCountersignature):
                    failed = True
                    logger.warning("not countersigned, asked again later: %s", outcome)
        except SQLAlchemyError as error:
            if stop.is_set():
                return
            failed = True
            logger.warning("the database does not answer: %s", type(error).__name__)
        if stop.wait(RETRY_SECONDS if failed else LOOK_SECONDS):
            return
