"""Addresses: canonical ones, HEAD for each, and those where programs look for something."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.fakes.client import Poster

from bench_server.web.canonical import tidy

pytestmark = pytest.mark.sqlite
SECURITY = Path(__file__).resolve().parents[2] / "docs" / "SECURITY.md"


def test_robots_find_every_page_once_and_leave_the_api_alone(post: Poster) -> None:
    post.made()
    robots, site = post.http.get("/robots.txt"), post.http.get("/sitemap.xml")
    assert robots.headers["content-type"].startswith("text/plain")
    assert robots.text.startswith("User-agent: *\nDisallow: /api/\n")
    assert robots.text.splitlines()[-1] == "Sitemap: http://testserver/sitemap.xml"
    assert site.headers["content-type"].startswith("application/xml")
    addresses = re.findall("<loc>http://testserver(.*?)</loc>", site.text)
    assert len(addresses) == len(set(addresses))
    some = {"/", "/compare", "/methodology", "/verdicts", "/trust", "/docs", "/submit", "/log"}
    assert some | {"/workloads/mnist-cnn", "/hardware/intel-core-i7-8700"} <= set(addresses)
    for address in addresses:
        page = post.http.get(address).raise_for_status()
        assert page.headers["content-type"].startswith("text/html"), address


def test_security_txt_leads_to_what_security_md_says(
    http: TestClient, application: FastAPI
) -> None:
    answer = http.get("/.well-known/security.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    fields = dict(line.split(": ", 1) for line in answer.text.splitlines())
    assert fields["Canonical"] == "http://testserver/.well-known/security.txt"
    assert fields["Preferred-Languages"] == "en"
    page = http.get(fields["Contact"].removeprefix("http://testserver")).raise_for_status()
    first = re.search(r"^Report (.*?)\.", SECURITY.read_text(), re.MULTILINE)
    assert first
    assert first[1].split('"')[0] in page.text
    assert 100 < (datetime.fromisoformat(fields["Expires"]) - application.state.clock()).days < 366


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


# Values that stand for a path's parameters; an address that does not exist answers 404 to both.
PARAMETERS = {"name": "mnist-cnn", "slug": "intel-core-i7-8700", "level": "0", "number": "000"}
CHANGES = {"date", "content-length"}


def test_head_answers_like_get_everywhere(post: Poster) -> None:
    values = PARAMETERS | {"id": post.made()}
    app: Any = post.http.app  # type: ignore[attr-defined]
    paths = {*app.state.paths, "/openapi.json"}
    assert len(paths) > 50
    paths |= {"/static/site.css", "/static/nothing.css", "/nothing"}
    for path in sorted(paths - {"/metrics"}):  # which counts its own requests
        address = re.sub(r"{(\w+)[^}]*}", lambda name: values.get(name[1], values["id"]), path)
        got, head = post.http.get(address), post.http.head(address)
        assert (head.status_code, head.content) == (got.status_code, b""), address
        for name in {*got.headers} - CHANGES:
            assert head.headers[name] == got.headers[name], (address, name)
        assert head.headers.get("content-length") == got.headers.get("content-length"), address
