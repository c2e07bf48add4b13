"""Group commit: results that arrive during one transaction are saved together in the next.

One transaction, one write to the disk and one checkpoint then serve many results. A busy server
saves more per second, and an idle one adds no delay (DeWitt et al., Implementation techniques for
main memory database systems, 1984). Senders take turns, so that one that sends much delays another
by one transaction (Nagle, On packet switches with infinite storage, RFC 970).
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock
from typing import Generic, NamedTuple, TypeVar

from ..db.store import UNAVAILABLE

Item = TypeVar("Item")
Answer = TypeVar("Answer")
MOST_TOGETHER = 192
# Longest wait for further submissions, in seconds.
SOON_SECONDS = 0.001
# Number of recent batches that predict the size of the next.
RECENT = 4


class PendingItem(NamedTuple, Generic[Item, Answer]):
    """An item, and the future of its outcome."""

    item: Item
    future: "Future[Answer]"


class Waiting(Generic[Item, Answer]):
    """Pending items. Senders take turns, each with its oldest item."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of_sender: dict[str, deque[PendingItem[Item, Answer]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, sender: str, pending: Sequence[PendingItem[Item, Answer]]) -> None:
        with self._lock:
            if pending:
                self._of_sender.setdefault(sender, deque()).extend(pending)
            self._count += len(pending)

    def take(self, most: int) -> list[PendingItem[Item, Answer]]:
        """Remove up to ``most`` items, one of each sender in turn."""
        taken: list[PendingItem[Item, Answer]] = []
        with self._lock:
            while self._of_sender and len(taken) < most:
                sender = next(iter(self._of_sender))
                queue = self._of_sender.pop(sender)
                taken.append(queue.popleft())
                if queue:
                    self._of_sender[sender] = queue  # to the end of the turn
            self._count -= len(taken)
        return taken


class GroupCommit(Generic[Item, Answer]):
    """Calls ``save_all`` with all pending items in one thread: many would queue for the lock.

    ``save_all`` returns an answer for each item in order, or raises and saves none.
    """

    def __init__(self, save_all: Callable[[Sequence[Item]], Sequence[Answer]]) -> None:
        self._save_all = save_all
        self._waiting = Waiting[Item, Answer]()
        self._recent = deque([1], maxlen=RECENT)
        self._enough_came = Event()
        self._thread = ThreadPoolExecutor(1, "group-commit")

    def save(self, items: Sequence[Item], sender: str = "") -> "list[Future[Answer]]":
        """Save items, together with other pending ones, of which senders take turns.

        Returns:
            A future for each item: its answer, or the exception that saving it alone raised.
        """
        pending = [PendingItem(item, Future[Answer]()) for item in items]
        for waiting in pending:
            # A received item is saved even if its sender has gone.
            waiting.future.set_running_or_notify_cancel()
        self._waiting.add(sender, pending)
        if len(self._waiting) >= max(self._recent):
            self._enough_came.set()
        self._thread.submit(self._save_waiting)
        return [waiting.future for waiting in pending]

    def _save_waiting(self) -> None:
        while self._waiting:
            self._let_come()
            group = self._waiting.take(MOST_TOGETHER)
            self._recent.append(len(group))
            self._save(group)

    def _let_come(self) -> None:
        """Wait up to 1 ms at a time while the batch is smaller than recent batches and still
        growing: clients that were answered together post again almost together."""
        came = 0
        while came < len(self._waiting) < max(self._recent):
            came = len(self._waiting)
            self._enough_came.clear()
            self._enough_came.wait(SOON_SECONDS)

    def _save(self, group: Sequence[PendingItem[Item, Answer]]) -> None:
        try:
            answers = self._save_all([waiting.item for waiting in group])
        except Exception as error:
            if len(group) > 1 and not isinstance(error, UNAVAILABLE):
                # One of them is the cause. Save each alone, so that only that one fails.
                for waiting in group:
                    self._save([waiting])
                return
            for waiting in group:
                waiting.future.set_exception(error)
            return
        for waiting, answer in zip(group, answers, strict=True):
            waiting.future.set_result(answer)
