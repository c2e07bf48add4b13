"""``cosign`` asks witnesses to cosign the daily checkpoint; a thread of a server does so too."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from threading import Event

import typer
from sqlalchemy.exc import SQLAlchemyError

from ..db.store import Store, utc_now
from ..log import cosigners, cosigning
from ..log.cosigners import Cosigner, NoCosignature
from ..settings import Settings
from .options import DatabaseUrl
from .setup import beside, open_store
from .setup import stop as stop_with

LOOK_SECONDS = 60.0
RETRY_SECONDS = 900.0
# A server that stops does not wait for a witness.
JOIN_SECONDS = 1.0
logger = logging.getLogger(__name__)


def cosign(database_url: DatabaseUrl = None) -> None:
    """Ask witnesses for today's cosignatures of the log, as serve does once a day."""
    with open_store(database_url) as (store, settings):
        witnesses = cosigners_of(settings)
        if not witnesses:
            raise stop_with("no witness is configured: set BENCH_SERVER_WITNESSES first")
        asked = once(store, witnesses, utc_now())
    for witness, outcome in asked:
        signed = isinstance(outcome, int)
        print(f"{witness.name}: {f'signed {outcome:,} entries' if signed else outcome}")
    rest = "; the others have signed today" if len(asked) < len(witnesses) else ""
    print(f"asked {len(asked)} of {len(witnesses)} witnesses{rest}")
    if any(not isinstance(outcome, int) for _, outcome in asked):
        raise typer.Exit(1)


def cosigners_of(settings: Settings) -> tuple[Cosigner, ...]:
    """Raises typer.Exit if the setting is invalid."""
    try:
        return cosigners.parse(settings.witnesses)
    except ValueError as error:
        raise stop_with(f"BENCH_SERVER_WITNESSES: {error}") from None


def once(
    store: Store, cosigners: Sequence[Cosigner], now: datetime
) -> tuple[tuple[Cosigner, int | NoCosignature], ...]:
    """Ask each witness that has not cosigned today: the size that it signed, or why none."""
    asked: list[tuple[Cosigner, int | NoCosignature]] = []
    for cosigner in cosigning.due(store, cosigners, now):
        try:
            asked.append((cosigner, cosigning.cosign(store, cosigner, now)))
        except NoCosignature as error:
            asked.append((cosigner, error))
    return tuple(asked)


def cosigning_daily(store: Store, settings: Settings) -> AbstractContextManager[None]:
    """A thread that asks every day, until the context ends; none without witnesses."""
    cosigners = cosigners_of(settings)
    if not cosigners:
        return nullcontext()
    return beside("cosign", partial(_follow, store, cosigners), JOIN_SECONDS)


def _follow(store: Store, cosigners: Sequence[Cosigner], stop: Event) -> None:
    while True:
        failed = False
        try:
            for _, outcome in once(store, cosigners, utc_now()):
                if isinstance(outcome, NoCosignature):
                    failed = True
                    logger.warning("not cosigned, asked again later: %s", outcome)
        except SQLAlchemyError as error:
            if stop.is_set():
                return
            failed = True
            logger.warning("the database does not answer: %s", type(error).__name__)
        if stop.wait(RETRY_SECONDS if failed else LOOK_SECONDS):
            return
