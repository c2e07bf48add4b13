"""What the server refuses: a problem document that names field and limit, or a page in a browser.

One case a kind of refusal: tests/protocol/test_refused.py has the fields of a result.
"""

import base64
import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import JSON, Poster

from bench_protocol.base import strict_json
from bench_protocol.payload import statement
from bench_protocol.signing import envelope
from bench_server.app import create_app
from bench_server.db.store import Store
from bench_server.settings import Settings
from bench_server.web.rate_limit import OPEN_PATHS
from bench_server.web.routes import ROUTERS

RESULT, KEY_EVENT = statement.RESULT_PAYLOAD_TYPE, statement.KEY_EVENT_PAYLOAD_TYPE


def bad_results() -> Iterator[tuple[bytes, int, str, str]]:
    raw = statement.result_payload(results.make_result())
    document = json.loads(raw)
    document["predicate"]["score"] = 9.9e12
    key, other = results.private_key(), results.private_key(9)
    removed = results.make_result(cell=results.make_cell(workload_digest="0" * 64))
    altered = envelope.seal(RESULT, raw, key).replace(b'"payload":"', b'"payload":"AAAA')
    yield b"hello", 400, "malformed_json", "body"
    yield altered, 403, "bad_signature", "signatures.sig"
    yield envelope.seal(RESULT, raw, other), 403, "unknown_key", "signatures.keyid"
    yield envelope.seal(KEY_EVENT, raw, key), 422, "wrong_payload_type", "payloadType"
    yield envelope.seal(RESULT, raw, key, other), 400, "invalid_envelope", "signatures"
    yield (
        envelope.seal(RESULT, strict_json.dumps(document), key),
        *(422, "invalid_field", "predicate.score"),
    )
    yield results.sealed(removed), 422, "unknown_workload", "predicate.cell.workload_digest"


def assert_problem(answer: Any, status: int, code: str, field: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.json()
    assert document["status"] == status
    assert document["code"] == code
    assert document["type"] == f"urn:trainmark:problem:{code}"
    assert document["title"]
    assert document["detail"]
    assert document["field"] == field
    assert document["hint"]


def test_bad_results(post: Poster) -> None:
    for body, status, code, field in bad_results():
        assert_problem(post.raw(body), status, code, field)
    post.made()
    assert len(post.http.get("/api/v1/results").json()["results"]) == 1


def test_content_types(post: Poster) -> None:
    body = results.sealed(results.make_result())
    for headers, field in (
        ({"Content-Type": "text/plain"}, "Content-Type"),
        (JSON | {"Content-Encoding": "gzip"}, "Content-Encoding"),
    ):
        answer = post.http.post("/api/v1/results", content=body, headers=headers)
        assert_problem(answer, 415, "wrong_media_type", field)
    headers = {"Content-Type": "application/vnd.dsse.envelope.v1+json; charset=utf-8"}
    assert post.http.post("/api/v1/results", content=body, headers=headers).status_code == 201


@pytest.mark.sqlite
def test_each_route_refuses_by_a_problem(http: TestClient, store: Store) -> None:
    """Another method or body, what is not there, without the token; a browser gets a page."""
    token = TestClient(create_app(Settings(read_token="a token of some length"), store))
    browser = {"Accept": "text/html"}
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            path = re.sub(r"{\w+(:path)?}", "no thing", route.path)
            answers = [http.request("PATCH", path)]
            if "POST" in route.methods:
                headers: tuple[dict[str, str], ...] = (
                    *({"Content-Type": kind} for kind in ("text/plain", "", "multipart/form-data")),
                    JSON | {"Content-Encoding": "gzip"},
                )
                answers += [http.post(path, content=b"{}", headers=each) for each in headers]
                assert [answer.status_code for answer in answers[1:]] == [415] * 4, path
            elif "{" in path or "no thing" in path:
                answers += [http.get(path), http.get(path, headers=browser)]
                assert answers[2].status_code >= 400, path
                is_page = answers.pop().headers["content-type"].startswith("text/html")
                assert is_page is not path.startswith("/api/"), path
            if "GET" in route.methods and not path.startswith(OPEN_PATHS):
                answers.append(token.get(path))
                assert answers[-1].status_code == 401, path
            for answer in answers:
                assert answer.status_code >= 400, path
                assert answer.headers["content-type"] == "application/problem+json", path
                document = answer.json()
                assert document["status"] == answer.status_code
                assert all(document[name] for name in ("code", "title", "detail", "hint")), path


@pytest.mark.parametrize("announced", [True, False])
def test_10_megabytes(post: Poster, announced: bool) -> None:
    chunk = b" " * 2**20
    body = chunk * 10 if announced else (chunk for _ in range(10))
    answer = post.http.post("/api/v1/results", content=body, headers=JSON)
    assert_problem(answer, 413, "body_too_large", "body")
    assert str(2 * 2**20) in answer.json()["detail"]
    post.made()


@pytest.mark.sqlite
def test_a_long_body_is_refused_before_it_is_read(live_server: str) -> None:
    host, port = live_server.removeprefix("http://").split(":")
    for header, sent in (
        (b"Content-Length: 52428800", b""),
        (b"Transfer-Encoding: chunked", (b"10000\r\n" + b" " * 65536 + b"\r\n") * 33),
    ):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(
                b"POST /api/v1/results HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                + header + b"\r\n\r\n" + sent
            )  # fmt: skip
            assert connection.recv(2048).startswith(b"HTTP/1.1 413 ")


def test_a_key_of_small_order(http: TestClient) -> None:
    """tests/protocol/test_keys.py has every such point."""
    der = bytes.fromhex("302a300506032b6570032100") + bytes(32)
    event = {"event": "enroll", "public_key": base64.b64encode(der).decode(), "at": results.AT}
    sealed = envelope.seal(KEY_EVENT, strict_json.dumps(event), results.private_key())
    answer = http.post("/api/v1/keys", content=b'{"envelope":%s}' % sealed, headers=JSON)
    assert_problem(answer, 422, "unacceptable_key", "public_key")


def test_bad_enrollments(http: TestClient) -> None:
    """tests/protocol/test_key_events.py has the fields of an event."""
    good, other = (json.loads(results.enrollment(results.private_key(seed))) for seed in (1, 2))
    signature = good["envelope"]["signatures"][0]
    for changes, status in (
        ({"admin": True}, 422),
        ({"display_name": "Ada"}, 422),
        ({"envelope": json.loads(results.sealed(results.make_result()))}, 422),
        ({"envelope": good["envelope"] | {"signatures": other["envelope"]["signatures"]}}, 403),
        ({"envelope": good["envelope"] | {"signatures": [signature | {"keyid": "0" * 64}]}}, 403),
    ):
        answer = http.post("/api/v1/keys", json=good | changes)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
    assert http.post("/api/v1/keys", json=good).status_code == 201


ADDRESSES = [
    ("/api/v1/nothing", 404),
    ("/api/v1/results/0123456789abcdef", 404),
    ("/api/v1/results/%00%ff", 404),
    ("/api/v1/results/..%2f..%2fetc/envelope", 404),
    ("/api/v1/results?limit=99999999999999999999999999", 422),
    ("/api/v1/results?cursor=%00", 422),
    ("/api/v1/results?cursor=AAAA", 422),
    (
        "/api/v1/results?cursor=WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzAwOjAwIiwgIjAxMjM0NTY3ODlhYmNkZWYiXQ",
        200,
    ),
    ("/api/v1/results?batch_size=9223372036854775808", 422),
    ("/api/v1/results?q=%00", 422),
    ("/api/v1/leaderboard?device=abacus", 422),
    ("/api/v1/leaderboard?q=%25_%27%22", 200),
    ("/api/v1/leaderboard?q=" + "x" * 101, 422),
    ("/api/v1/compare?ids=" + ",".join(f"a{i}" for i in range(21)), 422),
    ("/static/../app.py", 404),
]


def test_addresses(http: TestClient) -> None:
    for address, status in ADDRESSES:
        answer = http.get(address)
        assert answer.status_code == status, answer.text
        if status >= 400:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["detail"]
            assert answer.json()["hint"]
    assert_problem(http.get("/api/v1/keys/zzz"), 422, "invalid_query", "key_id")
    assert_problem(http.get(f"/api/v1/keys/{'f' * 64}"), 404, "not_found", "key_id")


def test_a_list_is_no_document(http: TestClient) -> None:
    for address in ("results", "keys", "challenges", "acts"):
        answer = http.post(f"/api/v1/{address}", content=b"[]", headers=JSON)
        assert (400 <= answer.status_code < 500, answer.json()["field"]) == (True, "body"), address


def test_allow_names_the_methods_of_an_address(http: TestClient) -> None:
    for method, address, allow in (
        ("DELETE", "/api/v1/results", "GET, HEAD, POST, OPTIONS"),
        ("PUT", "/", "GET, HEAD, OPTIONS"),
        ("GET", "/api/v1/challenges", "POST, OPTIONS"),
        ("HEAD", "/api/v1/acts", "POST, OPTIONS"),
        ("POST", "/static/site.css", "GET, HEAD, OPTIONS"),
    ):
        answer = http.request(method, address)
        assert (answer.status_code, answer.headers["allow"]) == (405, allow)
        if method != "HEAD":
            assert_problem(answer, 405, "method_not_allowed", "method")
        answer = http.options(address)
        assert (answer.status_code, answer.headers["allow"]) == (204, allow)
    assert http.options("/nothing").status_code == 404


def test_a_browser_gets_a_page(http: TestClient) -> None:
    for address, title in (
        ("/results/zz", "Page not found"),
        ("/compare?ids=a,b", "This address has a mistake"),
        ("/nothing", "Page not found"),
        ("/?device=x", "This address has a mistake"),
        ("/?framework=nope", "This address has a mistake"),
    ):
        answer = http.get(address, headers={"Accept": "text/html"})
        assert answer.status_code in (404, 422)
        assert answer.headers["content-type"].startswith("text/html")
        assert f"<h1>{title}</h1>" in answer.text
        assert ">Leaderboard</a>" in answer.text.partition("<main")[2]
        assert "/api/" not in answer.text
        assert "Value error" not in answer.text


def test_one_thing_alone_gets_the_chooser(http: TestClient) -> None:
    for query in ("ids=a", "ids=a&ids=a", "ids=a,a"):
        answer = http.get(f"/compare?{query}", headers={"Accept": "text/html"})
        assert answer.status_code == 200
        assert "Choose at least two different things" in answer.text
        assert http.get(f"/api/v1/compare?{query.split('&')[0]}").status_code == 422


def test_a_refused_parameter_is_named_in_plain_words(http: TestClient) -> None:
    for query, detail, hint in (
        ("machine=x", "machine: there is no such parameter", "did you mean machine_id? "),
        ("limit=0", "limit: must be greater than or equal to 1", "fix this parameter"),
        ("limit=x", "limit: must be a valid integer", "fix this parameter"),
        ("precision=float8", "precision: ", "fix this parameter"),
    ):
        answer = http.get(f"/api/v1/results?{query}")
        assert_problem(answer, 422, "invalid_query", query.split("=")[0])
        assert answer.json()["detail"].startswith(detail)
        assert answer.json()["hint"].startswith(hint)
    assert http.get("/api/v1/compare").json()["detail"] == "ids: is required"
