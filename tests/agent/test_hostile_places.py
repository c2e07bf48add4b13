"""Files, servers, variables and programs that are not what the agent wrote or asked: each ends in a
sentence, and what is sound goes on."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fakes.outboxes import outbox_with
from tests.fakes.results import private_key

from bench_agent.base.errors import HomeProblem, ServerUnreachable, UsageProblem
from bench_agent.base.home import Home, find_home
from bench_agent.cli.setup import open_home
from bench_agent.data import fetch
from bench_agent.output.documents import print_status
from bench_agent.remote import connection
from bench_agent.remote.client import Client
from bench_agent.remote.connection import Connection
from bench_agent.run import interpreters, journal

KEY = private_key()
SERVER = "http://bench.test"
DEEP = b"[" * 100_000 + b"]" * 100_000
DAMAGED: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[:700]),
    "junk": lambda path: path.write_bytes(os.urandom(4000)),
    "a list": lambda path: path.write_bytes(b"[1, 2]"),
    "nested": lambda path: path.write_bytes(DEEP),
    "another payload": lambda path: path.write_bytes(
        b'{"payload":"e30=","payloadType":"x","signatures":[{"keyid":"%s","sig":"%s=="}]}'
        % (b"0" * 64, b"A" * 86)
    ),
    "20 MB": lambda path: path.write_bytes(b" " * 20_000_000),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("state", ["pending", "sent", "refused"])
@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_of_the_outbox_is_put_aside_and_named(
    kind: str, state: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outbox = outbox_with(tmp_path, 3)
    first = next(outbox.pending())
    path = first.path if state == "pending" else outbox.move(first, state, {"id": "r1"}).path
    DAMAGED[kind](path)
    print_status(Home(tmp_path), outbox)
    assert len([*outbox.pending(), *outbox.sent(), *outbox.refused()]) == 2
    assert len(outbox.last_run()) == 1
    assert capsys.readouterr().err.count(f"{path} is damaged") == 1
    assert (outbox.root / "damaged" / path.name).exists()


def answering(answer: Callable[[httpx.Request], httpx.Response], **seams: Any) -> Connection:
    return Connection(SERVER, transport=httpx.MockTransport(answer), say=str, **seams)


@pytest.mark.parametrize("after", ["0", "Mon, 01 Jan 2001 00:00:00 GMT", "00"])
def test_a_server_that_asks_for_no_wait_is_asked_for_a_bounded_time(after: str) -> None:
    asked: list[httpx.Request] = []
    slept: list[float] = []

    def busy(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(503, headers={"Retry-After": after})

    with pytest.raises(ServerUnreachable, match="limits requests"):
        answering(busy, sleep=slept.append, patience_seconds=5).request("GET", "/")
    assert (len(asked), slept) == (6, [1.0] * 5)


def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WHOLE_SECONDS", 0.2)

    def drip() -> Iterator[bytes]:
        while True:
            time.sleep(0.05)
            yield b" "

    class Dripping(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return drip()

    with pytest.raises(ServerUnreachable, match=r"/x is not answered whole within 0 s"):
        answering(lambda _: httpx.Response(200, stream=Dripping())).request("GET", "/x")


RUBBISH = [b"", b"{", b"[]", b"null", b'"x"', DEEP, b"\xff", b"<html>", b'{"a":1,"a":2}', b"{}"]
LOG_RUBBISH = [
    *RUBBISH,
    b'{"origin":"o","key":"not a key","checkpoint":"not one"}',
    b'{"origin":[],"key":{},"checkpoint":1}',
]


@pytest.mark.parametrize("rubbish", LOG_RUBBISH)
def test_a_server_of_another_kind_is_called_so(rubbish: bytes, tmp_path: Path) -> None:
    """Also at the first contact: nothing was seen of it that it could contradict."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=rubbish))
    client = Client(SERVER, KEY, Home(tmp_path), transport=transport, say=str)
    calls: list[Callable[[], Any]] = [
        client.enroll,
        client.license,
        lambda: client.challenge("0" * 32),
    ]
    calls += [] if rubbish not in RUBBISH[:-1] else [lambda: client.read("/api/v1/leaderboard")]
    for call in calls:
        with pytest.raises(ServerUnreachable, match="not a Trainmark server"):
            call()
    assert not [*tmp_path.rglob("*.contradiction")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1080"),
        ("NO_PROXY", "localhost,fd07:b51a:cc66:f0::/64"),
        ("https_proxy", "http://[::1"),
        ("HTTP_PROXY", "gopher://127.0.0.1"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    for make in (lambda: Connection(SERVER), fetch.open_client):
        with pytest.raises(UsageProblem, match=f"the proxy of .*{name}.* fix: correct or unset"):
            make()


def test_blanks_around_an_address_are_dropped() -> None:
    assert connection.checked_address(" http://127.0.0.1:9/ ") == "http://127.0.0.1:9"


@pytest.mark.parametrize("content", [b"", b"{", b"null", DEEP, b'{"run_id": 1}'])
def test_a_damaged_journal_is_named_before_another_run_begins(
    content: bytes, tmp_path: Path
) -> None:
    home = Home(tmp_path)
    home.journal.write_bytes(content)
    with pytest.raises(HomeProblem, match=r"run\.json is damaged"):
        journal.unfinished(home)


@pytest.mark.parametrize("content", [b"", b"[]", DEEP, b'{"server":"x"}', b"\0"])
def test_a_damaged_memory_of_a_server_is_named(content: bytes, tmp_path: Path) -> None:
    client = Client(
        SERVER, KEY, Home(tmp_path), transport=httpx.MockTransport(lambda _: httpx.Response(500))
    )
    assert client.checkpoints
    client.checkpoints._path.parent.mkdir(parents=True)
    client.checkpoints._path.write_bytes(content)
    with pytest.raises(HomeProblem, match="damaged"):
        _ = client.checkpoints.stored_server


@pytest.mark.parametrize("folder", ["", "outbox", "outbox/pending"])
def test_folders_that_others_may_write_are_refused(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They could put envelopes there, or remove them."""
    outbox_with(tmp_path, 1)
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    open_home()
    (tmp_path / folder).chmod(0o777)
    with pytest.raises(
        HomeProblem, match=f"may be written by others: chmod 700 {tmp_path / folder}"
    ):
        open_home()


def test_a_user_without_a_home_folder_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("platformdirs.user_data_path", nowhere)
    with pytest.raises(HomeProblem, match="set BENCH_HOME"):
        find_home({})
    home = find_home({"BENCH_HOME": "/srv/bench"})
    assert home.command("status").startswith("BENCH_HOME=/srv/bench ")


@pytest.mark.parametrize(
    "script",
    ["while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done", "sleep 60 & sleep 60", "exit 3"],
)
def test_a_program_that_is_no_python_is_left_in_time(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its output may be endless, and a child of it may hold the output open."""
    monkeypatch.setattr(interpreters, "ANSWER_SECONDS", 1.0)
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    for path in (str(program), "/nul\0"):
        assert interpreters._description(path, packages=False) == "is no Python that answers"
