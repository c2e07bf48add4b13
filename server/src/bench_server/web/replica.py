"""A read replica: a second database that answers questions, while it follows the primary.

The server asks the replica for its projected position before each answer. The primary answers in
place of a replica that is away, or that is too far behind.
"""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Literal, NamedTuple

from sqlalchemy.exc import OperationalError

from ..db.store import UNAVAILABLE, Store
from ..projection import position
from ..projection.position import Position

State = Literal["used", "behind", "away"]
# The replica has every entry that the primary had this long ago, or may not answer.
MOST_SECONDS_BEHIND = 30.0
LOOK_SECONDS = 1.0
MOST_LOOKS = 2 + int(MOST_SECONDS_BEHIND / LOOK_SECONDS)
# A replica that did not answer is asked again after this time; until then nobody waits for it.
AWAY_SECONDS = 5.0
logger = logging.getLogger(__name__)


class Source(NamedTuple):
    """A database that answers a question, and the number of log entries in its projection;
    ``stopped``: the next entry cannot be projected."""

    store: Store
    as_of: int
    stopped: bool


class Replica:
    """A read replica, and whether it may answer; each server process looks by itself.

    ``reached``: its projected position when it was last asked; None while it is away.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.store = store
        self.state: State = "used"
        self.reached: int | None = None
        self._clock = clock
        self._away_until = -math.inf
        # Positions of the primary that the replica had not reached when they were read, each with
        # the time of the look before: no entry up to it is older.
        self._unreached: tuple[tuple[int, float], ...] = ()
        self._looked, self._next_look = -math.inf, -math.inf
        self._looking = Lock()

    def position(self, primary: Store) -> Position | None:
        """The replica's projected position; None if the replica may not answer."""
        if self._clock() < self._away_until:
            return None
        try:
            found = projected(self.store)
        except OperationalError as error:
            self._away_until = self._clock() + AWAY_SECONDS
            self._set("away", None, type(error.orig or error).__name__)
            return None
        reached = found.next_index
        follows = self._follows(reached, primary)
        self._set("used" if follows else "behind", reached, f"at entry {reached:,}")
        return found if follows else None

    def _follows(self, reached: int, primary: Store) -> bool:
        now = self._clock()
        if now >= self._next_look and self._looking.acquire(blocking=False):
            try:
                self._look(reached, primary, now)
            finally:
                self._next_look = now + LOOK_SECONDS
                self._looking.release()
        oldest = next((since for goal, since in self._unreached if goal > reached), now)
        return now - oldest <= MOST_SECONDS_BEHIND

    def _look(self, reached: int, primary: Store, now: float) -> None:
        try:
            goal = projected(primary).next_index
        except UNAVAILABLE:
            return  # readers need no primary
        unreached = [each for each in self._unreached if each[0] > reached]
        if goal > (unreached[-1][0] if unreached else reached):
            unreached.append((goal, self._looked))
        # At one look a second, the first of these is older than the limit.
        self._unreached = tuple(unreached[-MOST_LOOKS:])
        self._looked = now

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
        found = replica.position(primary)
        if found is not None and found.next_index >= at_least:
            return _source(replica.store, found)
    return _source(primary, projected(primary))


def _source(store: Store, found: Position) -> Source:
    return Source(store, found.next_index, found.stopped_reason is not None)


def projected(store: Store) -> Position:
    """The projector's position in a database."""
    with store.reading() as session:
        return position.read(session.connection())


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
    target = projected(primary).next_index
    replica.position(primary)
    reached = replica.reached
    lag = None if reached is None else max(0, target - reached)
    return ReplicaLag(replica.state, reached, lag)
