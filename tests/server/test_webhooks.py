"""Webhooks send signed messages in order, repeat them until accepted, and survive kills."""

import logging
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import partial
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
from tests.fakes.receiver import NAME, Received, Receiver, receiving
from tests.fakes.waiting import wait_for
from tests.server.test_webhook_addresses import ALLOWED, loopback
from typer.testing import CliRunner

from bench_protocol.matrix import Device
from bench_server.cli.main import main as cli
from bench_server.db.store import Lock, Store
from bench_server.db.tables import WebhookMessage
from bench_server.ingest import moderation
from bench_server.webhooks import delivery, events, registry, sending, signature
from bench_server.webhooks.delivery import Deliverer

PROTOCOL = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"
AT = datetime.fromisoformat("2026-11-21T05:00:00+00:00")
CUDA = Device(kind="cuda")
H200 = results.make_machine("AMD EPYC 9654", ("cuda", "NVIDIA H200", None), seed=3)
PATIENCE_SECONDS = 60
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Killed(BaseException):
    """The process ends here."""


class Clock:
    def __init__(self) -> None:
        self.now = AT

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with receiving(tmp_path / "receiver.pem") as made:
        yield made


@pytest.fixture
def clock_of_attempts() -> Clock:
    return Clock()


@pytest.fixture
def deliverer(
    http: Any, store: Store, receiver: Receiver, tmp_path: Path, clock_of_attempts: Clock
) -> Deliverer:
    context = ssl.create_default_context(cafile=str(tmp_path / "receiver.pem"))
    send = partial(sending.post, private_hosts=ALLOWED, context=context, resolve=loopback)
    return Deliverer(store, ORIGIN, AUTHORITY.operator, send, clock_of_attempts)


def delivered(deliverer: Deliverer) -> None:
    """Deliver until nothing is left."""
    while deliverer.step():
        pass


def add(
    store: Store, receiver: Receiver, machine: str | None = None, hardware: str | None = None
) -> str:
    return registry.add(store, receiver.url, machine, hardware, AT)


def row(store: Store, webhook_id: str) -> Any:
    with store.reading() as session:
        return registry.with_id(session, webhook_id)


def machine_of(post: Poster, result_id: str) -> str:
    machine: str = post.http.get(f"/api/v1/results/{result_id}").json()["machine_id"]
    return machine


def cuda_run(post: Poster, run: int, step_ns: int, driver: str = "550.9") -> str:
    gpus = (H200.gpus[0].model_copy(update={"driver": driver}),)
    clocks = results.make_result().clocks
    return post.made(
        cell=results.make_cell(device=CUDA),
        machine=H200.model_copy(update={"gpus": gpus}),
        step_ns=step_ns + run,
        run_id=f"{run:032x}",
        clocks=clocks.model_copy(update={"started": f"2026-10-{run + 1:02d}T00:00:00.000000Z"}),
    )


def test_the_signature_is_that_of_the_specification() -> None:
    """The value is that of the package ``standardwebhooks`` 1.1.0."""
    given = signature.headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        datetime.fromisoformat("2021-02-25T14:55:30+00:00"),
        b'{"test": 2432232314}',
    )
    assert given["webhook-timestamp"] == "1614264930"
    assert given["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert given["webhook-signature"] == "v1,cDsO1PhR6qJHI+QIiwzLzxwHbDcP5CnaXnO8hc4d9nI="


def test_secrets_differ_by_webhook_and_by_server() -> None:
    other = results.private_key(9)
    secrets = {
        signature.secret(key, name) for key in (AUTHORITY.operator, other) for name in ("a", "b")
    }
    assert len(secrets) == 4
    assert all(re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", one) for one in secrets)


def test_a_message_verifies_as_the_document_says(
    post: Poster, store: Store, receiver: Receiver, deliverer: Deliverer, clock_of_attempts: Clock
) -> None:
    section = PROTOCOL.read_text().partition("\n## Webhooks\n")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    assert code.count("\n") <= 12
    names: dict[str, Any] = {}
    exec(code, names)
    verified = names["verified"]
    clock_of_attempts.now = datetime.now(AT.tzinfo)
    secret = signature.secret(AUTHORITY.operator, add(store, receiver))
    post.made()
    delivered(deliverer)
    message = receiver.received[0]
    assert verified(secret, message.headers, message.body)
    assert not verified(secret, message.headers, message.body + b" ")
    assert not verified(secret, {**message.headers, "webhook-id": "msg_0"}, message.body)
    assert not verified(signature.secret(AUTHORITY.operator, "x"), message.headers, message.body)
    old = {**message.headers, "webhook-timestamp": "1614264930"}
    assert not verified(secret, old, message.body)
    data = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert data is not None
    assert set(httpx.Response(200, content=data[1]).json()["data"]) == set(message.data)


@ON_SQLITE
def test_a_webhook_of_a_machine_is_told_about_it_alone(
    post: Poster, store: Store, receiver: Receiver, deliverer: Deliverer
) -> None:
    first = cuda_run(post, 0, 100_000)
    add(store, receiver, machine=machine_of(post, first))
    post.made()  # another machine
    second = cuda_run(post, 1, 100_000)
    delivered(deliverer)
    assert [message.type for message in receiver.received] == ["result.new"]
    data = receiver.received[0].data
    assert (data["result_id"], data["path"]) == (second, f"/results/{second}")
    assert (data["server_origin"], data["ranked"], data["framework"]) == (
        ORIGIN,
        True,
        "tensorflow",
    )


def test_a_change_of_speed_is_told_once(
    post: Poster, store: Store, receiver: Receiver, deliverer: Deliverer
) -> None:
    ids = [cuda_run(post, run, 100_000) for run in range(5)]
    add(store, receiver, hardware="nvidia-h200")
    ids += [cuda_run(post, run, 80_000, "560.35") for run in range(5, 12)]
    delivered(deliverer)
    assert [m.data["result_id"] for m in receiver.received if m.type == "result.new"] == ids[5:]
    (change,) = [message.data for message in receiver.received if message.type == "machine.changed"]
    assert change["result_id"] == ids[5]
    assert 1.2 < change["speed_up_low"] <= change["speed_up"] <= change["speed_up_high"] < 1.3
    assert {"name": "machine.gpus.0.driver", "before": "550.9", "after": "560.35"} in change[
        "changed"
    ]


@ON_SQLITE
def test_ranks_that_changed(
    post: Poster, store: Store, receiver: Receiver, deliverer: Deliverer
) -> None:
    post.made(step_ns=1_000_000)
    slug = post.http.get("/api/v1/leaderboard?workload=mnist-cnn").json()["rows"][0][
        "hardware_slug"
    ]
    add(store, receiver)
    add(store, receiver, hardware=slug)
    cuda_run(post, 0, 100_000)
    delivered(deliverer)
    moved = [m.data["moved"] for m in receiver.received if m.type == "ranks.changed"]
    down = {"hardware_slug": slug, "rank_before": 1, "rank": 2}
    up = {"hardware_slug": "nvidia-h200", "rank_before": None, "rank": 1}
    assert sorted(moved, key=len) == [[down], [up, down]]


@ON_SQLITE
def test_what_is_withheld_and_what_is_hidden(
    post: Poster, store: Store, receiver: Receiver, deliverer: Deliverer
) -> None:
    add(store, receiver)
    doubted = post.made()
    moderation.decide(store, AUTHORITY, AT, "quarantine", result=doubted, reason="too fast")
    post.http.get("/healthz")  # projects the act
    delivered(deliverer)
    told = [(m.type, m.data.get("unranked_reason")) for m in receiver.received]
    assert told[:2] == [
        ("result.new", "held back by the operator for review: too fast"),
        ("result.withheld", "too fast"),
    ]
    del receiver.received[:]
    hidden = post.made()
    assert said.act(post, "hide", result=hidden).status_code == 200
    delivered(deliverer)
    assert hidden not in [message.data.get("result_id") for message in receiver.received]


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


def test_a_removed_webhook_is_sent_nothing_more(
    post: Poster, store: Store, receiver: Receiver, deliverer: Deliverer
) -> None:
    webhook_id = add(store, receiver)
    post.made()

    def removed(message: Received) -> int:
        registry.remove(store, webhook_id)
        return 200

    deliverer.step()
    receiver.behave = removed
    delivered(deliverer)
    assert len(receiver.received) >= 1
    with store.reading() as session:
        assert registry.all_of(session) == []


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
def test_the_operators_commands(
    post: Poster, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_SERVER_WEBHOOK_HOSTS", "localhost, 10.0.0.7")

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(cli, ["webhooks", *arguments, "--database-url", database_url])
        assert done.exit_code == code, done.output
        return done.stdout if code == 0 else done.stderr

    monkeypatch.setattr("bench_server.cli.webhooks.load_authority", lambda *_: AUTHORITY)
    machine = machine_of(post, post.made())
    said = run("add", "https://localhost/hook", "--machine", machine)
    match = re.fullmatch(r"webhook ([0-9a-f]{16})\nsecret (whsec_\S{44})\n", said)
    assert match
    assert run("secret", match[1]) == f"{match[2]}\n"
    assert run("list") == f"{match[1]}  https://localhost/hook  {machine}  at entry 2\n"
    run("enable", match[1])
    run("remove", match[1])
    assert run("list") == ""
    wrong = [
        (("remove", match[1]), f"no webhook '{match[1]}'"),
        (("add", "http://localhost/"), "https:// and a host; wanted: https://HOST/PATH"),
        (
            ("add", "https://127.0.0.1/"),
            "it is not public; wanted: https://HOST/PATH with a public",
        ),
        (("add", "https://localhost/", "--machine", "x"), "no result is of machine 'x'"),
        (("add", "https://localhost/", "--machine", "x", "--hardware", "y"), "exclude each other"),
    ]
    for arguments, says in wrong:
        assert says in run(*arguments, code=2)


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
