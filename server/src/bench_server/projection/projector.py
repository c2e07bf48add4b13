"""The projector: applies the log's entries in their order, in batches, one process per database.

A batch and the position after it are one transaction, so a kill repeats nothing and loses nothing.
An entry that cannot be applied stops the projector there: the reason is stored and shown, the rest
of the server goes on, and the entry is tried again later.

A batch is of one day (UTC). Before the first entry of a day, or when the clock reaches a day
without any, the day's asks are drawn (:mod:`.asks`).
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from threading import Event

from ..db.store import UNAVAILABLE, Store, utc_now
from ..errors import DamagedDatabase
from ..log import reader
from . import apply, asks, new_results, position
from .entries import read_batch

LOCK = "projector"
# Entries of one transaction: on SQLite acceptance waits for it.
BATCH = 128
# While the projector follows the log closely, it waits this long, so that a batch serves several
# results.
PAUSE_SECONDS = 0.05
RETRY_SECONDS = 5.0
# The lock is released and taken again, because a long transaction delays a pooler's PAUSE.
TURN_SECONDS = 10.0
logger = logging.getLogger(__name__)


class ProjectionStopped(RuntimeError):
    """An entry cannot be applied; the message names it and says why."""


@dataclass(frozen=True)
class Projector:
    """Applies entries of one database."""

    store: Store
    batch: int = BATCH
    # The checkpoint's date draws the asks of days without any entry.
    clock: Callable[[], datetime] = utc_now

    def run(self, stop: Event) -> None:
        """Follow the log until ``stop`` is set; other projectors of the database wait for a turn.
        After an outage of the database this one does too, because its lock has ended."""
        while not stop.is_set():
            try:
                self._follow(stop)
            except UNAVAILABLE:
                logger.exception("the database does not answer the projector")
            except Exception:
                logger.exception("the projector begins again in %g s", RETRY_SECONDS)
            stop.wait(RETRY_SECONDS)

    def catch_up(self, progress: Callable[[int], None] = lambda _: None) -> int:
        """Apply the entries that the log has now, beside another projector if there is one. It ends
        while the log grows, however fast.

        Returns:
            The position, as ``progress`` after each batch: the log's size at the start, or later.

        Raises:
            ProjectionStopped: an entry cannot be applied.
        """
        lag = self._lag()
        end = lag.size
        while lag.position < end:
            if not self.step():
                time.sleep(PAUSE_SECONDS)
            lag = self._lag()
            progress(lag.position)
        return lag.position

    def step(self) -> int:
        """Apply the next batch, or its entries one by one to find a bad one; returns their number.

        Raises:
            ProjectionStopped: the next entry cannot be applied.
        """
        start = self._lag().position
        try:
            return self._apply(start, self.batch)
        except UNAVAILABLE:
            raise
        except Exception as error:
            # A fault that only the batch has is logged nowhere else.
            logger.warning("cannot apply %d entries from %d at once: %s", self.batch, start, error)
        try:
            return self._apply(start, 1)
        except UNAVAILABLE:
            raise
        except Exception as error:
            reason = f"entry {start}: {type(error).__name__}: {error}"
            if self._stopped(start, reason):
                raise ProjectionStopped(reason) from error
            return 0

    def draw(self, today: date) -> None:
        """Draw the asks of a day that no entry began, if all entries are applied."""
        with self.store.reading() as session:
            lag = position.lag(session)
            drawn = None if lag.entries else asks.draw(session.connection(), today, lag.position)
        if drawn is None:
            return
        with self.store.writing_in_turn() as session:
            connection = session.connection()
            if position.take(connection).next_index == reader.size(session) == drawn.size:
                asks.store(connection, drawn)

    def _follow(self, stop: Event) -> None:
        drawn, is_mine = None, True
        while is_mine and not stop.is_set():
            with self.store.exclusive(LOCK) as lock:
                is_mine, end = lock.taken, time.monotonic() + TURN_SECONDS
                while lock.held() and not stop.is_set() and time.monotonic() < end:
                    pause = self._pause()
                    if pause and (today := self.clock().date()) != drawn:
                        self.draw(today)
                        drawn = today
                    stop.wait(pause)

    def _lag(self) -> position.Lag:
        with self.store.reading() as session:
            return position.lag(session)

    def _apply(self, start: int, limit: int) -> int:
        with self.store.reading() as session:
            limit = asks.entries_of_day(session.connection(), start, limit)
            batch = read_batch(session.connection(), start, limit)
        if batch.next_index == start:
            return 0
        with self.store.reading() as session:
            day = asks.next_day(session.connection(), start)
            drawn = asks.draw(session.connection(), day, start) if day else None
        with self.store.writing_in_turn() as session:
            connection = session.connection()
            if position.take(connection).next_index != start:
                return 0  # a reindex began meanwhile, or another projector was faster
            if drawn:
                asks.store(connection, drawn)
            new_results.add_environments(connection, batch.environments)
            apply.apply_entries(connection, batch.entries)
            position.write(connection, batch.next_index)
        return batch.next_index - start

    def _stopped(self, start: int, reason: str) -> bool:
        """Store why an entry cannot be applied, if it is still the next one."""
        with self.store.writing() as session:
            connection = session.connection()
            is_next = position.take(connection).next_index == start
            if is_next:
                position.write(connection, start, reason)
        return is_next

    def _pause(self) -> float:
        """Apply a batch; returns the seconds to wait before the next one."""
        try:
            applied = self.step()
        except ProjectionStopped as stopped:
            cause = stopped.__cause__
            fault = None if isinstance(cause, DamagedDatabase) else cause
            logger.error("the projection stopped at %s", stopped, exc_info=fault)
            return RETRY_SECONDS
        return 0 if applied >= self.batch else PAUSE_SECONDS
