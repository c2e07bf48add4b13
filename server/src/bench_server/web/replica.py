"""A read replica: a second database that answers questions, while it follows the primary.

The server asks the replica for its projected position before each answer. The primary answers in
place of a replica that is away, or that is too far behind.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Literal, NamedTuple

from sqlalchemy.exc import OperationalError

from ..db.store import Store
from ..projection import position

State = Literal["used", "behind", "away"]
# A position of the primary must be reached within this time.
MOST_SECONDS_BEHIND = 30.0
LOOK_SECONDS = 1.0
# A replica that did not answer is asked again after this time; until then nobody waits for it.
AWAY_SECONDS = 5.0
logger = logging.getLogger(__name__)


class Source(NamedTuple):
    """A database that answers a question, and the number of log entries in its projection."""

    store: Store
    as_of: int


class Replica:
    """A read replica, and whether it may answer; each server process looks by itself.

    ``reached``: its projected position when it was last asked; None while it is away.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.store = store
        self.state: State = "used"
        self.reached: int | None = None
        self._clock = clock
        self._away_until = -1.0
        # The position to be reached, until when, and when the next one is read from the primary.
        self._goal, self._goal_until, self._next_look = -1, 0.0, 0.0
        self._looking = Lock()

    def position(self, primary: Store) -> int | None:
        """The replica's projected position; None if the replica may not answer."""
        if self._clock() < self._away_until:
            return None
        try:
            reached = projected(self.store)
        except OperationalError as error:
            self._away_until = self._clock() + AWAY_SECONDS
            self._set("away", None, type(error.orig or error).__name__)
            return None
        follows = self._follows(reached, primary)
        self._set("used" if follows else "behind", reached, f"at entry {reached:,}")
        return reached if follows else None

    def _follows(self, reached: int, primary: Store) -> bool:
        now = self._clock()
        if reached < self._goal:
            return now < self._goal_until
        if now >= self._next_look and self._looking.acquire(blocking=False):
            try:
                self._goal, self._goal_until = projected(primary), now + MOST_SECONDS_BEHIND
            except OperationalError:
                pass  # readers need no primary
            finally:
                self._next_look = now + LOOK_SECONDS
                self._looking.release()
        return True

    def _set(self, state: State, reached: int | None, words: str) -> None:
        if state != self.state:
            logger.warning("the read replica is %s (%s)", state, words)
        self.state, self.reached = state, reached


def choose(primary: Store, replica: Replica | None, at_least: int = 0) -> Source:
    """The database that answers a question, and its position.

    Args:
        at_least: the number of log entries that the answer must include, if the primary has them.
    """
    if replica is not None:
        reached = replica.position(primary)
        if reached is not None and reached >= at_least:
            return Source(replica.store, reached)
    return Source(primary, projected(primary))


def projected(store: Store) -> int:
    """The projector's position in a database."""
    with store.reading() as session:
        return position.read(session.connection()).next_index


@dataclass(frozen=True)
class ReplicaLag:
    """A replica's state, its projected position, and how many entries of the primary's projection
    it does not have yet; null while it is away."""

    state: State
    projected: int | None
    lag_entries: int | None


def replica_lag(replica: Replica | None, primary: Store) -> ReplicaLag | None:
    """How far the replica follows the primary, None without a replica."""
    if replica is None:
        return None
    target = projected(primary)
    replica.position(primary)
    reached = replica.reached
    lag = None if reached is None else max(0, target - reached)
    return ReplicaLag(replica.state, reached, lag)
