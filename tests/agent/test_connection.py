"""The connection to a server: read token, rate limit, error messages."""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from bench_agent.base.errors import ServerUnreachable, UsageProblem
from bench_agent.data.fetch import open_client
from bench_agent.remote import connection as module
from bench_agent.remote.connection import (
    LONGEST_WAIT_SECONDS,
    Connection,
    checked_address,
    retry_after_seconds,
    token_for,
)
from bench_agent.remote.http_client import trusted

NOW = datetime(2026, 11, 23, 12, 0, 0, tzinfo=UTC)
Handler = Callable[[httpx.Request], httpx.Response]


def connection(
    handler: Handler, token: str | None = None
) -> tuple[Connection, list[float], list[str]]:
    slept: list[float] = []
    lines: list[str] = []
    seams = {"now": lambda: NOW, "sleep": slept.append, "say": lines.append}
    transport = httpx.MockTransport(handler)
    return Connection("http://bench.test", token, transport=transport, **seams), slept, lines


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("after", ["7", "Mon, 23 Nov 2026 12:00:07 GMT"])
def test_a_server_that_asks_to_wait_is_asked_again(status: int, after: str) -> None:
    answers = iter([httpx.Response(status, headers={"Retry-After": after})] * 2)
    past = {"Retry-After": "Mon, 23 Nov 2026 11:00:00 GMT"}
    assert retry_after_seconds(httpx.Response(status, headers=past), NOW) == 0
    made, slept, lines = connection(lambda _: next(answers, httpx.Response(200, json={})))
    assert (made.request("GET", "/").status_code, slept) == (200, [7.0, 7.0])
    waits = "http://bench.test limits requests: waiting 7 s"
    assert lines == [f"{waits} (Ctrl-C stops; results stay in the outbox)"] * 2


def test_an_answer_that_unpacks_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 1 << 20)

    def answer(length: int) -> httpx.Response:
        packed = gzip.compress(b" " * length)
        assert len(packed) < 10_000
        headers = {"Content-Encoding": "gzip", "Content-Length": str(len(packed))}
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(packed))

    made, _, _ = connection(lambda request: answer(int(request.url.path[1:])))
    assert made.content("/1048576") == b" " * 1048576
    with pytest.raises(ServerUnreachable, match=r"/1048577 answers with more than 1 MiB"):
        made.content("/1048577")


def test_waiting_has_an_end() -> None:
    made, slept, _ = connection(lambda _: httpx.Response(429, headers={"Retry-After": "60"}))
    with pytest.raises(ServerUnreachable, match=r"limits requests and asks to wait for 60 s"):
        made.request("GET", "/")
    assert sum(slept) <= LONGEST_WAIT_SECONDS


@pytest.mark.parametrize(
    ("status", "after"), [(429, ""), (429, "soon"), (200, "5"), (500, "5"), (429, "-3")]
)
def test_what_does_not_ask_to_wait(status: int, after: str) -> None:
    response = httpx.Response(status, headers={"Retry-After": after} if after else {})
    made, slept, _ = connection(lambda _: response)
    assert (made.request("GET", "/").status_code, slept) == (status, [])


def test_the_token_is_sent_and_never_said() -> None:
    sent: list[str | None] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get("Authorization"))
        return httpx.Response(401)

    for token, words in (("secret-token", "does not accept"), (None, "is private: set")):
        made, _, _ = connection(refuse, token)
        with pytest.raises(ServerUnreachable) as error:
            made.content("/api/v1/log")
        assert words in str(error.value)
        assert "BENCH_SERVER_TOKEN" in str(error.value)
        assert "secret" not in str(error.value)
    assert sent == ["Bearer secret-token", None]


@pytest.mark.parametrize(
    ("server", "home", "named", "sent"),
    [
        ("https://mark.example", None, True, True),
        ("https://mark.example", None, False, False),
        ("https://mark.example", "https://mark.example:443/", False, True),
        ("https://evil.example", "https://mark.example", True, False),
        ("http://mark.example", "https://mark.example", True, False),
    ],
)
def test_the_token_belongs_to_one_server(
    server: str, home: str | None, named: bool, sent: bool
) -> None:
    environ = {"BENCH_SERVER_TOKEN": "secret"} | ({"BENCH_SERVER": home} if home else {})
    assert (token_for(server, environ, named=named) == "secret") is sent
    assert token_for(server, {}, named=named) is None


@pytest.mark.parametrize("token", ["a\nb", "\u00e9", "\udcff", "a\x1b[2J"])
def test_a_token_that_no_header_can_hold_is_named_and_not_shown(token: str) -> None:
    with pytest.raises(UsageProblem, match="BENCH_SERVER_TOKEN has characters") as error:
        token_for("https://mark.example", {"BENCH_SERVER_TOKEN": token}, named=True)
    assert token not in str(error.value)


def test_a_header_may_have_any_letters() -> None:
    odd = [(b"Retry-After", b"\xb2"), (b"Content-Type", b"\xff")]
    made, _, _ = connection(lambda _: httpx.Response(200, headers=odd, content=b"{}"))
    assert made.content("/") == b"{}"


def test_an_address_with_a_password_names_the_setting() -> None:
    with pytest.raises(UsageProblem) as error:
        checked_address("https://:hunter2@mark.example")
    assert "BENCH_SERVER_TOKEN" in str(error.value)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("status", [404, 500, 502])
def test_a_failure_is_one_plain_sentence(status: int) -> None:
    """httpx's own message has a second line with a link for developers."""
    made, _, _ = connection(lambda _: httpx.Response(status))
    with pytest.raises(ServerUnreachable) as error:
        made.content("/checkpoint")
    assert str(error.value) == f"http://bench.test/checkpoint answered {status}"


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_one_sentence(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "authorities.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    trusted.cache_clear()
    with pytest.raises(UsageProblem, match="cannot be read: .*correct or unset SSL_CERT_FILE"):
        Connection("https://bench.test")
    with pytest.raises(UsageProblem, match="certificates cannot be read"):
        open_client()
