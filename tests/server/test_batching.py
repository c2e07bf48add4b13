"""Results that wait are saved together; what one of them does to the saving is its own affair."""

import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import Future

import pytest
from sqlalchemy import select
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster

from bench_server.db.store import Store, utc_now
from bench_server.db.tables import LogCheckpoint, Submission
from bench_server.ingest.accept import Accepted
from bench_server.ingest.batching import MOST_TOGETHER, GroupCommit
from bench_server.ingest.inbox import Inbox

CLIENTS = 12


class Saver:
    """Answers each item with itself; the first call lasts until all others wait."""

    def __init__(self, refused: Sequence[int] = ()) -> None:
        self.groups: list[list[int]] = []
        self.refused = refused
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.groups.append(list(items))
        self.begun.set()
        self.go_on.wait(30)
        if set(items) & set(self.refused):
            raise ArithmeticError(str(items))
        return list(items)


def saved_by_many(saver: Saver, count: int) -> list[int | str]:
    commit = GroupCommit(saver)
    waiting = commit.save([0])
    assert saver.begun.wait(30)
    waiting += [one for item in range(1, count) for one in commit.save([item])]
    saver.go_on.set()
    return [str(one.exception()) if one.exception(30) else one.result() for one in waiting]


@pytest.mark.parametrize(
    ("count", "groups"),
    [(CLIENTS, [1, CLIENTS - 1]), (MOST_TOGETHER + 6, [1, MOST_TOGETHER, 5])],
)
def test_what_waits_is_saved_in_one_group_of_a_limited_size(count: int, groups: list[int]) -> None:
    saver = Saver()
    assert saved_by_many(saver, count) == list(range(count))
    assert [len(group) for group in saver.groups] == groups
    assert sorted(itertools.chain(*saver.groups)) == list(range(count))


@pytest.mark.parametrize("comes", [True, False])
def test_who_comes_while_others_come_is_saved_with_them(
    monkeypatch: pytest.MonkeyPatch, comes: bool
) -> None:
    """Nobody is waited for who does not come."""
    saver = Saver()
    saver.go_on.set()
    commit = GroupCommit(saver)
    for waiting in commit.save([1, 2, 3]):
        waiting.result(30)
    answers: list[Future[int]] = []
    if comes:
        monkeypatch.setattr(commit._enough_came, "wait", lambda _: answers.extend(commit.save([5])))
    assert commit.save([4])[0].result(30) == 4
    assert [waiting.result(30) for waiting in answers] == [5, 5] * comes
    assert saver.groups == [[1, 2, 3], [4] + [5, 5] * comes]


def test_an_item_that_cannot_be_saved_fails_alone() -> None:
    assert saved_by_many(Saver(refused=[5]), CLIENTS) == [*range(5), "[5]", *range(6, CLIENTS)]


def test_a_row_the_database_refuses_fails_alone(
    post: Poster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of its group are kept, and each is counted once in its key's rate."""
    identities = iter(["too short", "0" * 16, "too short", "1" * 16])
    monkeypatch.setattr("bench_server.ingest.inbox.new_id", lambda *_: next(identities))
    raws = [results.sealed(results.make_result()) for _ in range(2)]
    spent: list[str] = []
    bad, good = Inbox(store, AUTHORITY).accept(raws, utc_now(), spent.append)
    with pytest.raises(Exception, match="id_has_16_digits"):
        bad.result(30)
    kept = good.result(30)
    assert isinstance(kept, Accepted)
    with store.reading() as session:
        ids = set(session.execute(select(Submission.id)).scalars())  # type: ignore[call-overload]
        assert ids == {kept.id}
        newest = session.execute(select(LogCheckpoint.size)).scalars()  # type: ignore[call-overload]
        assert max(newest) == kept.receipt.index + 1
    assert spent == [results.key_id(results.private_key())] * len(raws)
