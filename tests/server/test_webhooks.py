"""What webhooks say, to whom, and how it is signed."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fakes import results, said
from tests.fakes.authority import AUTHORITY, ORIGIN
from tests.fakes.client import Poster
from tests.fakes.receiver import Received, Receiver
from tests.fakes.webhooks import AT, ON_SQLITE, Clock, add, delivered, machine_of
from typer.testing import CliRunner

from bench_protocol.catalogue.matrix import Device
from bench_server.cli.main import main as cli
from bench_server.db.store import Store
from bench_server.ingest import moderation
from bench_server.webhooks import registry, signature
from bench_server.webhooks.delivery import Deliverer

PROTOCOL = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"
CUDA = Device(kind="cuda")
H200 = results.make_machine("AMD EPYC 9654", ("cuda", "NVIDIA H200", None), seed=3)


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
    empty = CliRunner().invoke(cli, ["webhooks", "list", "--database-url", database_url])
    assert (empty.stdout, empty.stderr) == (
        "",
        "no webhooks; bench-server webhooks add URL registers one\n",
    )
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
