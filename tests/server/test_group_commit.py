"""Results that wait are saved together; what one of them does to the saving is its own affair."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, select
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster

from bench_protocol.errors import ProtocolError
from bench_server.app import utc_now
from bench_server.db import Store
from bench_server.group_commit import MOST_TOGETHER, GroupCommit
from bench_server.ingest import Inbox
from bench_server.saving import Accepted
from bench_server.tables import LogCheckpoint, Submission

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
    """What each of several gets, of whom all but the first come while the first is saved."""
    commit = GroupCommit(saver)

    def save(item: int) -> int | str:
        try:
            return commit.save(item)
        except ArithmeticError as error:
            return str(error)

    with ThreadPoolExecutor(count) as pool:
        first = pool.submit(save, 0)
        assert saver.begun.wait(30)
        others = [pool.submit(save, item) for item in range(1, count)]
        while len(commit._waiting) < count - 1:
            threading.Event().wait(0.001)
        saver.go_on.set()
        return [future.result(30) for future in (first, *others)]


def test_what_waits_is_saved_in_one_group() -> None:
    saver = Saver()
    assert saved_by_many(saver, CLIENTS) == list(range(CLIENTS))
    assert saver.groups[0] == [0]
    assert len(saver.groups) == 2
    assert sorted(saver.groups[1]) == list(range(1, CLIENTS))


def test_a_group_is_not_larger_than_it_may_be() -> None:
    saver = Saver()
    count = MOST_TOGETHER + 6
    assert saved_by_many(saver, count) == list(range(count))
    assert sorted(map(len, saver.groups)) == [1, 5, MOST_TOGETHER]


def test_an_item_that_cannot_be_saved_fails_alone() -> None:
    answers = saved_by_many(Saver(refused=[5]), CLIENTS)
    assert answers == [*range(5), "[5]", *range(6, CLIENTS)]


def test_results_of_a_group_share_a_checkpoint_and_errors_stay_their_own(
    post: Poster, http: TestClient, store: Store
) -> None:
    inbox = Inbox(store, AUTHORITY)
    made = [results.make_result() for _ in range(3)]
    twin = made[0].model_copy(update={"preset": "full"})  # another payload for its repeat
    raws = [*(results.sealed(result) for result in (*made, twin, made[1])), b"{}"]
    found = inbox.accept_all(raws, utc_now())
    codes = [f.created if isinstance(f, Accepted) else f.code for f in found]
    assert codes == [True, True, True, "conflict", False, "invalid_field"]
    kept = [f for f in found if isinstance(f, Accepted)]
    assert len({f.receipt.checkpoint for f in kept}) == 1
    assert kept[1].submission.id == kept[3].submission.id


def test_a_row_the_database_refuses_fails_alone(post: Poster, store: Store) -> None:
    """Whatever one result makes the database say, the others of its group are kept."""
    inbox = Inbox(store, AUTHORITY)
    bad = inbox._opened(results.sealed(results.make_result()), utc_now(), lambda _: None)
    good = inbox._opened(results.sealed(results.make_result()), utc_now(), lambda _: None)
    bad.submission.id = "too short"
    group = inbox._group_commit
    holding, go_on = threading.Event(), threading.Event()

    def hold(*_: object) -> None:
        holding.set()
        assert go_on.wait(30)

    event.listen(store.engine, "before_cursor_execute", hold)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(inbox.accept, results.sealed(results.make_result()), utc_now())
        assert holding.wait(30)
        futures = [pool.submit(group.save, one) for one in (bad, good)]
        while len(group._waiting) < 2:
            threading.Event().wait(0.001)
        go_on.set()
        assert isinstance(first.result(30), Accepted)
        with pytest.raises(Exception, match="id_has_16_digits"):
            futures[0].result(30)
        kept = futures[1].result(30)
    assert not isinstance(kept, ProtocolError)
    with store.reading() as session:
        ids = set(session.execute(select(Submission.id)).scalars())  # type: ignore[call-overload]
        assert len(ids) == 2
        assert kept.submission.id in ids
        newest = session.execute(select(LogCheckpoint.size)).scalars()  # type: ignore[call-overload]
        assert max(newest) == kept.receipt.index + 1
