"""Addresses of pages have no empty or repeated parameter; all else of them stays as it was."""

import pytest
from fastapi.testclient import TestClient

from bench_server.web.canonical import tidy


@pytest.mark.parametrize(
    ("query", "canonical"),
    [
        ("", ""),
        ("q=&device=metal&framework=", "device=metal"),
        ("ids=a&ids=b&q=", "ids=a&ids=b"),
        ("ids=a&ids=a", "ids=a"),
        ("ids=a&ids=b&ids=a&mode=best", "ids=a&ids=b&mode=best"),
        ("ids=a,b,a&ids=b,c", "ids=a,b&ids=c"),
        ("ids=a%2Ca%2cb,", "ids=a,b"),
        ("ids=a%2Cb", "ids=a%2Cb"),
        ("price.a=5&price.b=5", "price.a=5&price.b=5"),
        ("q=m4+max", "q=m4+max"),
        ("q=m4%20max&", "q=m4%20max"),
        ("q&device", ""),
        ("q==", "q=="),
        ("q=%00&x=", "q=%00"),
    ],
)
def test_only_empty_and_repeated_parameters_are_left_out(query: str, canonical: str) -> None:
    assert tidy(query) == canonical
    assert tidy(canonical) == canonical


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_page_moves_to_its_canonical_address_and_stays_there(http: TestClient) -> None:
    board = "/?workload=mnist-cnn&owner=a%3Db"
    for address, expected in (
        *((f"{board}&q=", board), ("/trends?hardware=&by=", "/trends")),
        ("/compare?ids=a&ids=a", "/compare?ids=a"),
    ):
        moved = http.get(address, follow_redirects=False)
        assert (moved.status_code, moved.headers["location"]) == (302, expected)
        assert http.head(address, follow_redirects=False).headers["location"] == expected
        assert http.get(expected, follow_redirects=False).status_code != 302
    # The API takes empty parameters.
    answer = http.get("/api/v1/leaderboard?workload=&q=", follow_redirects=False)
    assert answer.status_code == 200
