"""Submitting the outbox to a scripted server: what each answer to a batch does to its results."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fakes.outboxes import outbox_with
from tests.fakes.results import key_id, private_key

from bench_agent.base.errors import ServerUnreachable
from bench_agent.cli.submit import _level_1_note
from bench_agent.remote import batch
from bench_agent.remote.client import LINE_WAIT_SECONDS, Client
from bench_agent.remote.outbox import Outbox
from bench_agent.remote.submit import submit

Handler = Callable[[httpx.Request], httpx.Response]
# Status and document of one line's answer.
LineOf = Callable[[bytes], tuple[int, dict[str, Any]]]
KEY = private_key()
SAID_BY = {"server": "http://bench.test"}


def client(handler: Handler, sleep: Callable[[float], None] = lambda _: None) -> Client:
    return Client("http://bench.test/", KEY, transport=httpx.MockTransport(handler), sleep=sleep)


def problem(code: str, **more: Any) -> dict[str, Any]:
    return {"code": code, "detail": f"{code}!", **more}


def answer(request: httpx.Request, of: LineOf, headers: Any = None) -> httpx.Response:
    assert request.headers["Content-Type"] == "application/x-ndjson"
    lines = []
    for number, raw in enumerate(request.content.split(b"\n"), 1):
        status, document = of(raw)
        member = "result" if status < 300 else "problem"
        lines.append(json.dumps({"line": number, "status": status, member: document}))
    return httpx.Response(207, text="\n".join(lines) + "\n", headers=headers)


def created(raw: bytes) -> tuple[int, dict[str, Any]]:
    return 201, {"id": json.loads(raw)["signatures"][0]["sig"][:16]}


def states(outbox: Outbox) -> tuple[int, int, int]:
    return len(list(outbox.pending())), len(list(outbox.sent())), len(list(outbox.refused()))


def test_a_licence_steers_no_terminal() -> None:
    offers = json.dumps({"license": "CC-BY-4.0\x1b[2J\nAgree, and send? [y/N]: y"})
    named = client(lambda _: httpx.Response(200, text=offers)).license()
    assert named == "CC-BY-4.0 [2J Agree, and send? [y/N]: y"


def test_many_envelopes_are_one_request_byte_for_byte_and_oldest_first(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 5)
    raws = [entry.raw for entry in outbox.pending()]
    bodies: list[bytes] = []

    def server(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return answer(request, created)

    deliveries = list(submit(client(server), outbox))
    assert bodies == [b"\n".join(raws)]
    answers = [created(raw)[1] | SAID_BY for raw in raws]
    assert [d.entry.raw for d in deliveries] == raws
    assert [d.answer for d in deliveries] == [e.answer for e in outbox.sent()] == answers
    assert states(outbox) == (0, 5, 0)


def test_batches_are_cut_by_number_and_by_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = outbox_with(tmp_path, 7)
    longest = max(len(entry.raw) for entry in outbox.pending())

    def sizes() -> list[int]:
        return [len(each) for each in batch.batches(outbox.pending())]

    assert sizes() == [7]
    monkeypatch.setattr(batch, "MOST_ENVELOPES", 3)
    assert sizes() == [3, 3, 1]
    monkeypatch.setattr(batch, "MOST_BYTES", 2 * longest + 1)
    assert sizes() == [2, 2, 2, 1]
    monkeypatch.setattr(batch, "MOST_BYTES", 1)
    assert sizes() == [1] * 7


def test_a_batch_stays_below_the_servers_limits() -> None:
    from bench_server.web.routes.deps import BATCH_MAX_BYTES

    assert batch.MOST_BYTES + batch.MOST_ENVELOPES < BATCH_MAX_BYTES


def test_a_body_that_is_too_large_is_split(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 5)
    longest = max(len(entry.raw) for entry in outbox.pending())
    posted: list[int] = []

    def proxy(request: httpx.Request) -> httpx.Response:
        if len(request.content) > 2 * longest + 1:
            return httpx.Response(413, text="<html>too large</html>")
        posted.append(request.content.count(b"\n") + 1)
        return answer(request, created)

    assert [d.state for d in submit(client(proxy), outbox)] == ["sent"] * 5
    assert posted == [2, 1, 2]


def test_an_envelope_that_no_body_may_hold_waits_and_the_others_go(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 3)
    large = list(outbox.pending())[1].raw

    def proxy(request: httpx.Request) -> httpx.Response:
        return httpx.Response(413) if large in request.content else answer(request, created)

    with pytest.raises(ServerUnreachable, match=rf"takes no body of {len(large)} bytes"):
        list(submit(client(proxy), outbox))
    assert states(outbox) == (1, 2, 0)


@pytest.mark.parametrize(
    ("status", "code", "state"),
    [
        (400, "invalid_envelope", "refused"),
        (409, "conflict", "refused"),
        (410, "gone", "refused"),
        (422, "invalid_field", "refused"),
        (403, "key_not_active", "pending"),
        (403, "not_invited", "pending"),
        (408, "slow", "pending"),
        (425, "early", "pending"),
        (500, "internal_error", "pending"),
        (403, None, "pending"),
    ],
)
def test_one_bad_line_among_good_ones(
    tmp_path: Path, status: int, code: str | None, state: str
) -> None:
    outbox = outbox_with(tmp_path, 3)
    bad = list(outbox.pending())[1].raw
    document = problem(code, hint="fix it") if code else {"detail": "a proxy says no"}

    def line(raw: bytes) -> tuple[int, dict[str, Any]]:
        return (status, document) if raw == bad else created(raw)

    run = submit(client(lambda request: answer(request, line)), outbox)
    if state == "refused":
        assert [d.state for d in run] == ["sent", "refused", "sent"]
        assert [entry.answer for entry in outbox.refused()] == [document | SAID_BY]
        assert states(outbox) == (0, 2, 1)
    else:
        with pytest.raises(ServerUnreachable, match="did not take 1 of the results"):
            list(run)
        assert states(outbox) == (1, 2, 0)


@pytest.mark.parametrize("text", ["", '{"line":1,"status":201,"result":{"id":"r"}}\n'])
def test_a_line_without_an_answer_waits(tmp_path: Path, text: str) -> None:
    outbox = outbox_with(tmp_path, 2)
    with pytest.raises(ServerUnreachable, match="the answer lacks a line"):
        list(submit(client(lambda _: httpx.Response(207, text=text)), outbox))
    assert states(outbox) == ((1, 1, 0) if text else (2, 0, 0))


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(500),
        httpx.Response(503),
        httpx.Response(429),
        httpx.Response(408),
        httpx.Response(404),
        httpx.Response(413),
        httpx.Response(415, json=problem("wrong_media_type")),
        httpx.Response(200, text="<html>a captive portal</html>"),
        httpx.Response(207, text="<html>a captive portal</html>"),
        httpx.Response(207, json=["not", "an", "answer"]),
        httpx.Response(207, json={"line": 1}),
        httpx.Response(207, json={"line": 1, "status": "201", "result": {}}),
        httpx.Response(207, json={"line": 1, "status": 201, "result": None}),
        httpx.Response(207, json={"line": 1, "status": 201, "result": {"name": "registry"}}),
        httpx.Response(403, json={"detail": "a proxy says no"}),
        httpx.Response(301, headers={"Location": "http://elsewhere.test/"}),
    ],
    ids=lambda response: str(response.status_code),
)
def test_anything_that_is_not_a_verdict_leaves_the_envelope_waiting(
    tmp_path: Path, response: httpx.Response
) -> None:
    outbox = outbox_with(tmp_path, 1)
    with pytest.raises(ServerUnreachable, match=r"bench\.test"):
        list(submit(client(lambda request: response), outbox))
    assert states(outbox) == (1, 0, 0)


def test_a_lost_connection_leaves_what_was_not_answered_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = outbox_with(tmp_path, 3)
    monkeypatch.setattr(batch, "MOST_ENVELOPES", 1)
    calls = 0

    def break_down(request: httpx.Request) -> httpx.Response:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise httpx.ReadError("connection reset")
        return answer(request, created)

    with pytest.raises(ServerUnreachable):
        list(submit(client(break_down), outbox))
    assert states(outbox) == (2, 1, 0)


@pytest.mark.parametrize("known", [True, False])
def test_an_unknown_key_is_enrolled_once_and_the_batch_posted_again(
    tmp_path: Path, known: bool
) -> None:
    outbox = outbox_with(tmp_path, 2)
    asked: list[str] = []

    def server(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        if request.url.path == "/api/v1/keys":
            return httpx.Response(201, json={"key_id": key_id(KEY)})
        enrolled = known and "/api/v1/keys" in asked
        return answer(request, created if enrolled else lambda raw: (403, problem("unknown_key")))

    deliveries = list(submit(client(server), outbox))
    assert asked == ["/api/v1/results", "/api/v1/keys", "/api/v1/results"]
    assert [d.state for d in deliveries] == ["sent" if known else "refused"] * 2
    assert states(outbox) == ((0, 2, 0) if known else (0, 0, 2))


def test_a_refused_enrollment_refuses_no_result(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 2)

    def server(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/v1/keys":
            return httpx.Response(403, json=problem("not_invited", hint="ask the operator"))
        return answer(request, lambda raw: (403, problem("unknown_key")))

    with pytest.raises(ServerUnreachable, match=r"not_invited! \(ask the operator\)"):
        list(submit(client(server), outbox))
    assert states(outbox) == (2, 0, 0)


@pytest.mark.parametrize("header", [{}, {"Retry-After": "7"}], ids=["no header", "header"])
def test_limited_lines_are_posted_again_after_a_wait(
    tmp_path: Path, header: dict[str, str]
) -> None:
    outbox = outbox_with(tmp_path, 5)
    posted: list[int] = []
    slept: list[float] = []

    def limited(request: httpx.Request) -> httpx.Response:
        posted.append(request.content.count(b"\n") + 1)
        taken: list[bytes] = []

        def line(raw: bytes) -> tuple[int, dict[str, Any]]:
            taken.append(raw)
            return created(raw) if len(taken) <= 2 else (429, problem("too_many_requests"))

        return answer(request, line, header)

    assert [d.state for d in submit(client(limited, slept.append), outbox)] == ["sent"] * 5
    assert posted == [5, 3, 1]
    assert slept == [7.0 if header else LINE_WAIT_SECONDS] * 2


def test_waiting_for_limited_lines_has_an_end(tmp_path: Path) -> None:
    outbox = outbox_with(tmp_path, 2)
    slept: list[float] = []
    made = client(lambda request: answer(request, lambda raw: (503, problem("busy"))), slept.append)
    with pytest.raises(ServerUnreachable, match="asks to wait for 10 s, after 300 s"):
        list(submit(made, outbox))
    assert sum(slept) == 300
    assert states(outbox) == (2, 0, 0)


def test_another_process_may_send_an_envelope_first(tmp_path: Path) -> None:
    """Whoever moves the file first, both go on, and the result is posted at most twice."""
    outbox = outbox_with(tmp_path, 2)

    def server(request: httpx.Request) -> httpx.Response:
        other = Outbox(outbox.root)
        for entry in list(other.pending()):
            other.move(entry, "sent", {"id": "r1"})
        return answer(request, lambda raw: (200, {"id": "r1"}))

    deliveries = list(submit(client(server), outbox))
    assert [delivery.state for delivery in deliveries] == ["sent", "sent"]
    assert [delivery.entry.answer for delivery in deliveries] == [{"id": "r1"} | SAID_BY] * 2
    assert states(outbox) == (0, 2, 0)


def test_an_envelope_with_line_ends_is_one_line(tmp_path: Path) -> None:
    """Only a person writes one; between JSON's tokens a space is as good as a line's end."""
    outbox = outbox_with(tmp_path, 2)
    first = next(outbox.pending())
    first.path.write_bytes(json.dumps(json.loads(first.raw), indent=1).encode())
    posted: list[Any] = []

    def server(request: httpx.Request) -> httpx.Response:
        posted.extend(json.loads(line) for line in request.content.split(b"\n"))
        return answer(request, created)

    waiting = [json.loads(entry.raw) for entry in outbox.pending()]
    list(submit(client(server), outbox))
    assert sorted(posted, key=str) == sorted(waiting, key=str)
    assert states(outbox) == (0, 2, 0)


def test_results_without_a_challenge_get_a_command_that_measures_under_one() -> None:
    late = {"effect": "stale", "passed": False, "sentence": "it names no challenge"}
    assert _level_1_note([{"verdicts": [late]}, {"verdicts": []}]) == (
        "1 of 2 stay at trust level 1: it names no challenge; "
        "fix: measure again with bench-agent run --server URL"
    )


def test_an_answer_before_the_projection_is_taken(tmp_path: Path) -> None:
    """What the projection derives may be null until then, or absent."""
    outbox = outbox_with(tmp_path, 2)
    derived = dict.fromkeys(("trust_level", "ranked", "unranked_reason", "verdicts"))
    documents = iter([{"id": "a", "status": "pending"} | derived, {"id": "b", "status": "pending"}])
    made = client(lambda request: answer(request, lambda raw: (201, next(documents))))
    answers = [delivery.answer for delivery in submit(made, outbox)]
    assert [entry.answer for entry in outbox.sent()] == answers
    assert states(outbox) == (0, 2, 0)
