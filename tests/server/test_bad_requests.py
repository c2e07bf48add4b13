"""Addresses, methods and parameters that are wrong: a problem document, or a page in a browser."""

import pytest
from fastapi.testclient import TestClient
from tests.fakes.client import JSON
from tests.server.test_bad_input import assert_problem

ADDRESSES = [
    ("/api/v1/nothing", 404),
    ("/api/v1/results/zz", 404),
    ("/api/v1/results/0123456789abcdef", 404),
    ("/api/v1/results/%00%ff", 404),
    ("/api/v1/results/..%2f..%2fetc/envelope", 404),
    ("/api/v1/results?limit=0", 422),
    ("/api/v1/results?limit=99999999999999999999999999", 422),
    ("/api/v1/results?cursor=%00", 422),
    ("/api/v1/results?cursor=AAAA", 422),
    (
        "/api/v1/results?cursor=WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzAwOjAwIiwgIjAxMjM0NTY3ODlhYmNkZWYiXQ",
        200,
    ),
    ("/api/v1/results?batch_size=9223372036854775808", 422),
    ("/api/v1/results?q=%00", 422),
    ("/api/v1/results?nonsense=1", 422),
    ("/api/v1/leaderboard?workload=none", 422),
    ("/api/v1/leaderboard?device=abacus", 422),
    ("/api/v1/leaderboard?batch_size=9007199254740992", 422),
    ("/api/v1/leaderboard?q=%25_%27%22", 200),
    ("/api/v1/leaderboard?q=" + "x" * 101, 422),
    ("/api/v1/leaderboard?nonsense=1", 422),
    ("/api/v1/compare", 422),
    ("/api/v1/compare?ids=a", 422),
    ("/api/v1/compare?ids=" + ",".join(f"a{i}" for i in range(21)), 422),
    ("/api/v1/compare?ids=a,b", 422),
    ("/api/v1/compare?ids=a,%00", 422),
    ("/static/../app.py", 404),
]


@pytest.mark.parametrize(("address", "status"), ADDRESSES)
def test_addresses(http: TestClient, address: str, status: int) -> None:
    answer = http.get(address)
    assert answer.status_code == status, answer.text
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"]
        assert answer.json()["hint"]


def test_keys_that_are_none(http: TestClient) -> None:
    assert_problem(http.get("/api/v1/keys/zzz"), 422, "invalid_query", "key_id")
    assert_problem(http.get(f"/api/v1/keys/{'f' * 64}"), 404, "not_found", "key_id")


@pytest.mark.parametrize("address", ["results", "keys", "challenges", "acts"])
def test_a_list_is_no_document(http: TestClient, address: str) -> None:
    answer = http.post(f"/api/v1/{address}", content=b"[]", headers=JSON)
    assert 400 <= answer.status_code < 500
    assert answer.json()["field"] == "body"


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH"])
def test_other_methods(http: TestClient, method: str) -> None:
    answer = http.request(method, "/api/v1/results")
    assert_problem(answer, 405, "method_not_allowed", "method")
    assert answer.headers["allow"] == "GET, HEAD, POST, OPTIONS"
    assert http.request(method, "/static/site.css").headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize(
    "query", ["batch_size=many", "batch_size=0", "limit=x", "precision=float8", "nonsense=1"]
)
def test_a_wrong_parameter_is_named_as_it_was_sent(http: TestClient, query: str) -> None:
    name = query.split("=")[0]
    path = "results" if name == "limit" else "leaderboard"
    answer = http.get(f"/api/v1/{path}?{query}")
    assert_problem(answer, 422, "invalid_query", name)
    assert answer.json()["detail"].startswith(f"{name}: ")


@pytest.mark.parametrize("address", ["/results/zz", "/compare?ids=a,b", "/nothing", "/?device=x"])
def test_a_browser_gets_a_page(http: TestClient, address: str) -> None:
    answer = http.get(address, headers={"Accept": "text/html"})
    assert answer.status_code in (404, 422)
    assert answer.headers["content-type"].startswith("text/html")
    assert ">Leaderboard</a>" in answer.text.partition("<main")[2]
    assert "/api/" not in answer.text


@pytest.mark.parametrize("query", ["ids=a", "ids=a&ids=a", "ids=a,a"])
def test_one_thing_alone_gets_the_chooser(http: TestClient, query: str) -> None:
    answer = http.get(f"/compare?{query}", headers={"Accept": "text/html"})
    assert answer.status_code == 200
    assert "Choose at least two different things" in answer.text
    assert http.get(f"/api/v1/compare?{query.split('&')[0]}").status_code == 422


@pytest.mark.parametrize(
    ("query", "detail", "hint"),
    [
        ("machine=x", "machine: there is no such parameter", "did you mean machine_id? "),
        ("limit=0", "limit: must be greater than or equal to 1", "fix this parameter"),
        ("limit=x", "limit: must be a valid integer", "fix this parameter"),
        ("where=driver>x", "where: 'x' is not a version, such as 2.18.1", "fix this parameter"),
    ],
)
def test_a_refused_parameter_is_named_in_plain_words(
    http: TestClient, query: str, detail: str, hint: str
) -> None:
    refused = http.get(f"/api/v1/results?{query}").json()
    assert (refused["detail"], refused["hint"][: len(hint)]) == (detail, hint)
    assert http.get("/api/v1/compare").json()["detail"] == "ids: is required"
