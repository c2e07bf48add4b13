"""Group commit: results that arrive while others are being saved are saved together next.

One transaction, one write to the disk and one checkpoint of the log then serve many results, so
that a busy server saves more a second and an idle one makes nobody wait (DeWitt et al.,
Implementation techniques for main memory database systems, 1984).
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar

from sqlalchemy.exc import OperationalError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
MOST_TOGETHER = 64


class GroupCommit(Generic[Item, Answer]):
    """Calls ``save_all`` for what waits, one call at a time, from whichever thread comes first.

    ``save_all`` answers each item in order, and saves all of them or raises and saves none.
    """

    def __init__(self, save_all: Callable[[Sequence[Item]], Sequence[Answer]]) -> None:
        self._save_all = save_all
        self._turn = Lock()
        self._waiting: list[_Waiting[Item, Answer]] = []

    def save(self, item: Item) -> Answer:
        """Save an item, together with what else waits.

        Raises:
            Exception: what saving this item raised; others of its group are not concerned.
        """
        own = _Waiting[Item, Answer](item)
        self._waiting.append(own)
        with self._turn:
            while not own.done:
                group = self._waiting[:MOST_TOGETHER]
                del self._waiting[: len(group)]
                self._save(group)
        if own.error is not None:
            raise own.error
        return own.answer

    def _save(self, group: Sequence["_Waiting[Item, Answer]"]) -> None:
        try:
            answers = self._save_all([waiting.item for waiting in group])
        except Exception as error:
            if len(group) > 1 and not isinstance(error, OperationalError):
                # One of them is the cause: it alone shall fail.
                for waiting in group:
                    self._save([waiting])
                return
            for waiting in group:
                waiting.error, waiting.done = error, True
            return
        for waiting, answer in zip(group, answers, strict=True):
            waiting.answer, waiting.done = answer, True


class _Waiting(Generic[Item, Answer]):
    """An item, and what became of it once it is ``done``."""

    answer: Answer

    def __init__(self, item: Item) -> None:
        self.item = item
        self.error: Exception | None = None
        self.done = False
