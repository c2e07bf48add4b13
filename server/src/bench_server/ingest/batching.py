"""Group commit: results that arrive while others are being saved are saved together next.

One transaction, one write to the disk and one checkpoint of the log then serve many results, so
that a busy server saves more a second and an idle one makes nobody wait (DeWitt et al.,
Implementation techniques for main memory database systems, 1984).
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Generic, NamedTuple, TypeVar

from sqlalchemy.exc import OperationalError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
MOST_TOGETHER = 192
# How long a submitter that is about to post gets to do so, in seconds.
SOON_SECONDS = 0.001
# How many recent batches decide the expected size of the next.
RECENT = 4


class PendingItem(NamedTuple, Generic[Item, Answer]):
    """An item, and the future of its outcome."""

    item: Item
    future: "Future[Answer]"


class GroupCommit(Generic[Item, Answer]):
    """Calls ``save_all`` for what waits, one call at a time, in a thread of its own: many threads
    that wait for their turn would cost more than the saving.

    ``save_all`` answers each item in order, and saves all of them or raises and saves none.
    """

    def __init__(self, save_all: Callable[[Sequence[Item]], Sequence[Answer]]) -> None:
        self._save_all = save_all
        self._waiting: deque[PendingItem[Item, Answer]] = deque()
        self._recent = deque([1], maxlen=RECENT)
        self._enough_came = Event()
        self._thread = ThreadPoolExecutor(1, "group-commit")

    def save(self, items: Sequence[Item]) -> "list[Future[Answer]]":
        """Save items, together with what else waits.

        Returns:
            The answer to each, or what saving it raised; others of its group are not concerned.
        """
        own = [PendingItem(item, Future[Answer]()) for item in items]
        for waiting in own:
            # What has come in is saved, whether or not its sender still waits.
            waiting.future.set_running_or_notify_cancel()
        self._waiting.extend(own)
        if len(self._waiting) >= max(self._recent):
            self._enough_came.set()
        self._thread.submit(self._save_waiting)
        return [waiting.future for waiting in own]

    def _save_waiting(self) -> None:
        while self._waiting:
            self._let_come()
            together = min(len(self._waiting), MOST_TOGETHER)
            self._recent.append(together)
            self._save([self._waiting.popleft() for _ in range(together)])

    def _let_come(self) -> None:
        """Wait up to 1 ms at a time while the batch is smaller than recent batches and still
        growing. Clients that were answered together post again almost together; without the wait
        they would be split into two batches."""
        came = 0
        while came < len(self._waiting) < max(self._recent):
            came = len(self._waiting)
            self._enough_came.clear()
            self._enough_came.wait(SOON_SECONDS)

    def _save(self, group: Sequence[PendingItem[Item, Answer]]) -> None:
        try:
            answers = self._save_all([waiting.item for waiting in group])
        except Exception as error:
            if len(group) > 1 and not isinstance(error, OperationalError):
                # One of them is the cause: it alone shall fail.
                for waiting in group:
                    self._save([waiting])
                return
            for waiting in group:
                waiting.future.set_exception(error)
            return
        for waiting, answer in zip(group, answers, strict=True):
            waiting.future.set_result(answer)
