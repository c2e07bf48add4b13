"""Messages of webhooks are repeated until accepted, in order, and survive kills."""

import logging
import threading
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy.exc import TimeoutError
from sqlmodel import select
from tests.fakes import results, said
from tests.fakes.authority import AUTHORITY, ORIGIN
from tests.fakes.client import Poster
from tests.fakes.live import Program
from tests.fakes.receiver import NAME, Received, Receiver
from tests.fakes.waiting import wait_for
from tests.fakes.webhooks import AT, ON_SQLITE, Clock, add, delivered, machine_of, row

from bench_server.db.store import Lock, Store
from bench_server.db.tables import WebhookMessage
from bench_server.webhooks import delivery, events, registry, signature
from bench_server.webhooks.delivery import Deliverer

PATIENCE_SECONDS = 60


class Killed(BaseException):
    """The process ends here."""


def test_a_failed_message_is_sent_again_later_and_before_the_next(
    post: Poster,
    store: Store,
    receiver: Receiver,
    deliverer: Deliverer,
    clock_of_attempts: Clock,
) -> None:
    webhook_id = add(store, receiver, machine=machine_of(post, post.made()))
    post.made()
    post.made()
    receiver.behave = lambda _: 503
    waits = []
    for _ in range(16):
        delivered(deliverer)
        hook = row(store, webhook_id)
        waits.append(hook.next_attempt_at - clock_of_attempts.now)
        delivered(deliverer)  # not before its time
        clock_of_attempts.now = hook.next_attempt_at
    assert waits[:3] == [timedelta(seconds=seconds) for seconds in (5, 10, 20)]
    assert max(waits) == waits[-1] == delivery.LONGEST_RETRY
    assert len(receiver.received) == 16
    assert len({message.id for message in receiver.received}) == 1
    receiver.behave = lambda _: 200
    delivered(deliverer)
    ids = list(dict.fromkeys(message.id for message in receiver.received))
    assert [message.id for message in receiver.received[16:]] == ids[:2]
    hook = row(store, webhook_id)
    assert (hook.attempts, hook.failing_since, hook.last_error) == (0, None, None)


@ON_SQLITE
def test_a_webhook_that_fails_for_days_is_disabled(
    post: Poster,
    store: Store,
    receiver: Receiver,
    deliverer: Deliverer,
    clock_of_attempts: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    webhook_id = add(store, receiver)
    post.made()
    receiver.behave = lambda _: 500
    with caplog.at_level(logging.WARNING):
        delivered(deliverer)
        clock_of_attempts.now += delivery.DISABLED_AFTER - timedelta(seconds=1)
        delivered(deliverer)
        assert not row(store, webhook_id).disabled
        clock_of_attempts.now += delivery.LONGEST_RETRY
        delivered(deliverer)
    assert row(store, webhook_id).disabled
    assert "trainmark_webhooks_failing 1.0" in post.http.get("/metrics").text
    secret = signature.secret(AUTHORITY.operator, webhook_id)
    assert caplog.messages == [
        f"webhook {webhook_id} to {NAME} fails and is tried again: status 500",
        f"webhook {webhook_id} to {NAME} is disabled: status 500",
    ]
    assert "secret-path" not in caplog.text
    assert secret.removeprefix("whsec_") not in caplog.text
    clock_of_attempts.now += timedelta(days=30)
    delivered(deliverer)
    assert len(receiver.received) == 3
    receiver.behave = lambda _: 200
    registry.enable(store, webhook_id)
    delivered(deliverer)
    assert receiver.received[3].id == receiver.received[0].id


@ON_SQLITE
def test_a_receiver_that_is_gone_is_left_alone(
    post: Poster, store: Store, receiver: Receiver, deliverer: Deliverer, clock_of_attempts: Clock
) -> None:
    webhook_id = add(store, receiver)
    post.made()
    receiver.behave = lambda _: 410
    delivered(deliverer)
    clock_of_attempts.now += timedelta(days=1)
    delivered(deliverer)
    assert (len(receiver.received), row(store, webhook_id).disabled) == (1, True)


@pytest.mark.parametrize("at", ["before the post", "after the post", "while it collects"])
def test_a_kill_repeats_one_message_at_most_and_loses_none(
    post: Poster,
    store: Store,
    receiver: Receiver,
    deliverer: Deliverer,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
) -> None:
    add(store, receiver, machine=machine_of(post, post.made()))
    ids = [post.made() for _ in range(3)]

    def killed_send(url: str, body: bytes, headers: dict[str, str]) -> None:
        if at == "after the post":
            deliverer.send(url, body, headers)
        raise Killed

    def killed_change(*_: Any, **__: Any) -> bool:
        raise Killed

    if at == "while it collects":
        with monkeypatch.context() as patched:
            patched.setattr(delivery, "_change", killed_change)
            with pytest.raises(Killed):
                deliverer.step()
    else:
        deliverer.step()
        with pytest.raises(Killed):
            Deliverer(store, ORIGIN, AUTHORITY.operator, killed_send, deliverer.clock).step()
    delivered(deliverer)
    told = [message for message in receiver.received if message.type == "result.new"]
    doubled = 1 if at == "after the post" else 0
    assert len(told) == 3 + doubled
    assert told[0].id == told[doubled].id
    assert [message.data["result_id"] for message in told[doubled:]] == ids


class EndsWithAMessage(Lock):
    """A lock that ends when the receiver has a message."""

    def __init__(self, receiver: Receiver) -> None:
        super().__init__(True)
        self._receiver = receiver

    def held(self) -> bool:
        return not self._receiver.received


@pytest.mark.parametrize("ends", ["the lock", "the process"])
def test_a_turn_ends_with_the_lock_and_with_the_process(
    post: Poster,
    store: Store,
    receiver: Receiver,
    deliverer: Deliverer,
    monkeypatch: pytest.MonkeyPatch,
    ends: str,
) -> None:
    """What is left is posted once, by the next process that has the lock."""
    monkeypatch.setattr(delivery, "LOOK_SECONDS", 0.01)
    add(store, receiver, machine=machine_of(post, post.made()))
    ids = [post.made() for _ in range(3)]
    stop = threading.Event()
    if ends == "the lock":

        def exclusive(name: str) -> Any:
            if receiver.received:
                stop.set()
            return nullcontext(EndsWithAMessage(receiver))

        monkeypatch.setattr(store, "exclusive", exclusive)
    else:

        def behave(_: Received) -> int:
            stop.set()
            return 200

        receiver.behave = behave
    deliverer.run(stop)
    assert [message.data["result_id"] for message in receiver.received] == ids[:1]
    delivered(deliverer)
    assert [message.data["result_id"] for message in receiver.received] == ids


def test_what_another_process_collected_meanwhile_is_not_posted_again(
    post: Poster,
    store: Store,
    receiver: Receiver,
    deliverer: Deliverer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that has lost the lock collects; before it writes, the next one has delivered."""
    add(store, receiver, machine=machine_of(post, post.made()))
    sent = post.made()
    collect = events.collect

    def late(*arguments: Any) -> Any:
        collected = collect(*arguments)
        monkeypatch.undo()
        delivered(deliverer)
        return collected

    monkeypatch.setattr(events, "collect", late)
    delivered(deliverer)
    assert [message.data["result_id"] for message in receiver.received] == [sent]


@ON_SQLITE
def test_delivery_goes_on_after_an_error(
    post: Poster, store: Store, receiver: Receiver, deliverer: Deliverer,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Of the database's connections or of this program."""
    monkeypatch.setattr(delivery, "LOOK_SECONDS", 0.01)
    errors = [TimeoutError("all connections are taken"), ZeroDivisionError()]
    collect = events.collect

    def failing(*arguments: Any) -> Any:
        if errors:
            raise errors.pop(0)
        return collect(*arguments)

    monkeypatch.setattr(events, "collect", failing)
    add(store, receiver)
    post.made()
    stop = threading.Event()
    thread = threading.Thread(target=deliverer.run, args=(stop,))
    thread.start()
    try:
        assert wait_for(lambda: receiver.received, PATIENCE_SECONDS)
    finally:
        stop.set()
        thread.join()
    assert "webhooks wait for the database: TimeoutError" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_pending_message_about_a_withdrawn_result_is_erased(
    post: Poster, store: Store, receiver: Receiver, deliverer: Deliverer
) -> None:
    add(store, receiver, machine=machine_of(post, post.made()))
    gone, stays, early = post.made(), post.made(), post.made()
    deliverer.step()  # collects
    with store.reading() as session:
        pending = session.exec(select(WebhookMessage)).all()
    assert [message.submission_id for message in pending] == [gone, stays, early]
    assert said.act(post, "withdraw", result=gone).status_code == 200
    delivered(deliverer)
    told = [message.data.get("result_id") for message in receiver.received]
    assert (gone in told, stays in told, early in told) == (False, True, True)
    assert not any(gone in message.body.decode() for message in receiver.received)


def test_a_result_that_is_withdrawn_while_it_is_collected(
    post: Poster,
    store: Store,
    receiver: Receiver,
    deliverer: Deliverer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add(store, receiver, machine=machine_of(post, post.made()))
    gone, stays = post.made(), post.made()
    collect = events.collect
    withdrawn: list[int] = []

    def withdrawing(*arguments: Any) -> Any:
        collected = collect(*arguments)
        if not withdrawn:
            withdrawn.append(said.act(post, "withdraw", result=gone).status_code)
        return collected

    monkeypatch.setattr(events, "collect", withdrawing)
    deliverer.step()
    delivered(deliverer)
    told = [m.data["result_id"] for m in receiver.received if m.type == "result.new"]
    assert (withdrawn, told) == ([200], [stays])


@ON_SQLITE
def test_a_server_that_is_killed_after_the_post_sends_the_message_again(
    database_url: str, store: Store, receiver: Receiver, tmp_path: Path
) -> None:
    settings = {
        "BENCH_SERVER_WEBHOOK_HOSTS": "localhost",
        "SSL_CERT_FILE": str(tmp_path / "receiver.pem"),
    }
    served = threading.Event()

    def start() -> Program:
        return Program(database_url, tmp_path, "serve", "--port", "0", **settings)

    server = start()

    def kill(message: Received) -> int:
        if len(receiver.received) == 2:
            server.kill()
        elif len(receiver.received) == 4:
            served.set()
        return 200

    receiver.behave = kill
    with httpx.Client(base_url=server.address()) as http:
        registry.add(store, f"https://localhost:{receiver.port}/", None, None, AT)
        post = Poster(http)
        post.enroll()
        ids = [post(results.make_result(challenge=None)) for _ in range(3)]
    assert wait_for(lambda: len(receiver.received) >= 2)
    server = start()
    try:
        assert served.wait(PATIENCE_SECONDS)
    finally:
        server.stop()
    told = [message.data["result_id"] for message in receiver.received]
    assert told == [ids[0], ids[1], ids[1], ids[2]]
    assert receiver.received[1].id == receiver.received[2].id
