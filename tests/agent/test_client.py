"""The client against a scripted server, for every kind of answer."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fakes.results import key_id, make_result, private_key, sealed

from bench_agent.base.errors import ServerUnreachable, UsageProblem
from bench_agent.remote.client import Client, Delivery, ServerRefused, utc_text
from bench_agent.remote.outbox import Outbox
from bench_protocol import envelope, statement

Handler = Callable[[httpx.Request], httpx.Response]
KEY = private_key()


def client(handler: Handler) -> Client:
    return Client("http://bench.test/", KEY, transport=httpx.MockTransport(handler))


def outbox_with(tmp_path: Path, count: int) -> Outbox:
    outbox = Outbox(tmp_path / "outbox")
    for _ in range(count):
        outbox.put(sealed(make_result(key=KEY), KEY))
    return outbox


def problem(status: int, code: str, **more: Any) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "detail": f"{code}!", **more})


def states(outbox: Outbox) -> tuple[int, int, int]:
    """Numbers of (pending, sent, refused) envelopes."""
    return len(list(outbox.pending())), len(list(outbox.sent())), len(list(outbox.refused()))


def test_an_accepted_envelope_is_sent_byte_for_byte_and_kept_with_its_answer(
    tmp_path: Path,
) -> None:
    outbox = outbox_with(tmp_path, 1)
    raw = next(outbox.pending()).raw
    seen: list[bytes] = []

    def accept(request: httpx.Request) -> httpx.Response:
        seen.append(request.content)
        return httpx.Response(201, json={"id": "r1"})

    deliveries = list(client(accept).submit(outbox))
    assert seen == [raw]
    assert [(d.state, d.answer) for d in deliveries] == [("sent", {"id": "r1"})]
    assert states(outbox) == (0, 1, 0)


def test_a_refused_envelope_does_not_stop_the_next(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 2)
    answers = iter([problem(400, "invalid_field", mend="mend it"), httpx.Response(201, json={})])
    deliveries: list[Delivery] = list(client(lambda request: next(answers)).submit(outbox))
    assert [d.state for d in deliveries] == ["refused", "sent"]
    assert states(outbox) == (0, 1, 1)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(503),
        httpx.Response(429),
        httpx.Response(408),
        httpx.Response(404),
        httpx.Response(200, text="<html>a captive portal</html>"),
        httpx.Response(200, json=["not", "an", "answer"]),
        httpx.Response(403, json={"detail": "a proxy says no"}),
        httpx.Response(301, headers={"Location": "http://elsewhere.test/"}),
    ],
    ids=lambda answer: str(answer.status_code),
)
def test_anything_that_is_not_a_verdict_leaves_the_envelope_waiting(
    tmp_path: Path, answer: httpx.Response
) -> None:
    outbox = outbox_with(tmp_path, 1)
    with pytest.raises(ServerUnreachable, match=r"bench\.test"):
        list(client(lambda request: answer).submit(outbox))
    assert states(outbox) == (1, 0, 0)


def test_a_lost_connection_leaves_what_was_not_answered_waiting(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 3)
    calls = 0

    def break_down(request: httpx.Request) -> httpx.Response:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise httpx.ReadError("connection reset")
        return httpx.Response(201, json={"id": str(calls)})

    with pytest.raises(ServerUnreachable):
        list(client(break_down).submit(outbox))
    assert states(outbox) == (2, 1, 0)


def test_an_unknown_key_is_enrolled_and_the_envelope_sent_again(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 1)
    paths: list[str] = []

    def server(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        if request.url.path == "/api/v1/keys":
            return httpx.Response(201, json={"key_id": key_id(KEY)})
        enrolled = "/api/v1/keys" in paths
        return httpx.Response(201, json={"id": "x"}) if enrolled else problem(403, "unknown_key")

    list(client(server).submit(outbox, machine_hash="0" * 64))
    assert paths == ["/api/v1/results", "/api/v1/keys", "/api/v1/results"]
    assert states(outbox) == (0, 1, 0)


def test_enrollment_proves_possession_and_does_not_sign_the_display_name() -> None:
    bodies: list[bytes] = []

    def server(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(201, json={"key_id": key_id(KEY)})

    client(server).enroll("1" * 64, 'my "Mac"')
    body = json.loads(bodies[0])
    assert body["display_name"] == 'my "Mac"'
    opened = envelope.read(json.dumps(body["envelope"]).encode())
    event, public_key = statement.parse_key_event(opened.payload)
    assert event.machine_hash == "1" * 64
    assert b"Mac" not in opened.payload
    payload = envelope.open_envelope(
        opened, statement.KEY_EVENT_PAYLOAD_TYPE, lambda identifier: public_key
    )
    assert payload == opened.payload


def test_a_refused_enrollment_says_why() -> None:
    with pytest.raises(ServerRefused, match=r"invite_needed! \(ask the operator\)"):
        client(lambda request: problem(403, "invite_needed", mend="ask the operator")).enroll()


def test_nobody_at_an_address_is_unreachable(tmp_path: Path) -> None:
    nobody = Client("http://127.0.0.1:1", KEY)
    with pytest.raises(ServerUnreachable):
        list(nobody.submit(outbox_with(tmp_path, 1)))
    with pytest.raises(ServerUnreachable, match="does not answer: Connection refused$"):
        nobody.knock()


@pytest.mark.parametrize("address", ["http://[", "nonsense", "ftp://host", "127.0.0.1:80", ""])
def test_what_is_no_address_is_wrong_usage(address: str) -> None:
    with pytest.raises(UsageProblem, match="no server address"):
        Client(address, KEY)


def test_times_are_written_in_utc_with_microseconds() -> None:
    moment = datetime(2026, 11, 21, 3, 42, 0, 5, tzinfo=UTC)
    assert utc_text(moment) == "2026-11-21T03:42:00.000005Z"


def test_another_process_may_send_an_envelope_first(tmp_path: Path) -> None:
    """Both processes continue, whichever moves the file first; at most two posts."""
    outbox = outbox_with(tmp_path, 2)

    def accept(request: httpx.Request) -> httpx.Response:
        other = Outbox(outbox.root)
        for entry in list(other.pending()):
            if entry.raw == request.content:
                other.mark_sent(entry, {"id": "r1"})
        return httpx.Response(200, json={"id": "r1"})

    deliveries = list(client(accept).submit(outbox))
    assert [delivery.state for delivery in deliveries] == ["sent", "sent"]
    assert [delivery.entry.answer for delivery in deliveries] == [{"id": "r1"}] * 2
    assert states(outbox) == (0, 2, 0)


def test_an_envelope_that_was_moved_is_still_read(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 1)
    entry = next(outbox.pending())
    raw = entry.raw
    outbox.mark_sent(entry, {"id": "r1"})
    assert entry.raw == raw
    assert [sent.raw for sent in outbox.last_run()] == [raw]


def test_a_file_that_goes_while_the_outbox_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = outbox_with(tmp_path, 3)
    gone = sorted((outbox.root / "pending").glob("*.json"))[0]
    real = Path.stat

    def stat(path: Path, **options: Any) -> Any:
        if path == gone:
            raise FileNotFoundError(path)
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    assert len(list(outbox.pending())) == 2


def test_a_large_outbox_gets_through_a_rate_limit(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 5)
    slept: list[float] = []
    allowed = 2

    def limited(request: httpx.Request) -> httpx.Response:
        nonlocal allowed
        if not allowed:
            allowed = 2
            return httpx.Response(429, headers={"Retry-After": "30"})
        allowed -= 1
        return httpx.Response(201, json={"id": "r"})

    transport = httpx.MockTransport(limited)
    made = Client("http://bench.test/", KEY, transport=transport, sleep=slept.append)
    assert [delivery.state for delivery in made.submit(outbox)] == ["sent"] * 5
    assert slept == [30.0, 30.0]
