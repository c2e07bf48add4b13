"""Compression, tags and conditions, static files, and reading from other origins."""

import gzip
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.middleware import gzip as starlette_gzip
from tests.fakes.client import Poster

from bench_server.app import create_app
from bench_server.db.store import Store
from bench_server.settings import Settings
from bench_server.web import static_files

PLAIN = {"Accept-Encoding": "identity"}
GZIP = {"Accept-Encoding": "gzip"}
ORIGIN = {"Origin": "https://notebook.example"}

pytestmark = pytest.mark.sqlite


def raw(http: TestClient, path: str, **headers: str) -> tuple[Any, bytes]:
    with http.stream("GET", path, headers=GZIP | headers) as answer:
        return answer, b"".join(answer.iter_raw())


def test_text_is_compressed_and_the_same(post: Poster) -> None:
    """What is dense or small is not compressed."""
    for _ in range(6):
        post.made()
    for path in (
        *("/", "/openapi.json", "/static/site.css"),
        *(f"/api/v1/{table}" for table in ("leaderboard", "export.csv", "leaderboard.jsonl")),
    ):
        plain = post.http.get(path, headers=PLAIN)
        answer, sent = raw(post.http, path)
        assert "content-encoding" not in plain.headers, path
        assert answer.headers["content-encoding"] == "gzip", path
        assert "Accept-Encoding" in answer.headers["vary"]
        assert "Accept-Encoding" in plain.headers["vary"]
        assert gzip.decompress(sent) == plain.content
        assert len(sent) < 0.6 * len(plain.content)
    for path in ("/api/v1/export.parquet", "/healthz", "/tile/0/000.p/1"):
        answer, sent = raw(post.http, path)
        assert (answer.status_code, "content-encoding" in answer.headers) == (200, False), path
        assert sent


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        *[("gzip;q=0", None), ("br, gzip;q=0.0, *;q=1", None), ("identity", None), ("", None)],
        *[("gzip; q=0.5", "gzip"), ("br, *;q=0.1", "gzip"), ("GZIP", "gzip"), ("gzip;q=x", None)],
    ],
)
def test_weights_of_codings_are_heeded(http: TestClient, accepted: str, coding: str | None) -> None:
    for path in ("/", "/openapi.json", "/static/site.css"):
        answer = http.get(path, headers={"Accept-Encoding": accepted})
        assert answer.headers.get("content-encoding") == coding, path


@pytest.mark.parametrize(
    ("part", "status"),
    [("bytes=zz", 200), ("bytes=9-2", 200), ("lines=1-2", 200), ("bytes=0-1", 206)],
)
def test_a_range_that_is_none_is_ignored(http: TestClient, part: str, status: int) -> None:
    assert http.get("/static/site.css", headers={"Range": part}).status_code == status


def test_a_range_beyond_the_file_is_a_problem(http: TestClient) -> None:
    for path in ("/static/site.css", "/favicon.ico"):
        whole = http.get(path)
        answer = http.get(path, headers={"Range": "bytes=99999999-"})
        assert (answer.status_code, answer.json()["field"]) == (416, "Range"), path
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["content-range"] == f"bytes */{len(whole.content)}"
        assert http.head(path, headers={"Range": "bytes=99999999-"}).status_code == 416


def test_first_requests_in_parallel_are_answered(store: Store) -> None:
    """State that the first use builds is built once, by one thread."""
    paths = [f"/api/v1/results?limit=5&utm_source=x{number}" for number in range(12)]
    paths += ["/openapi.json", "/docs", "/api/v1/leaderboard?nothing=1", "/"]
    for _ in range(3):
        http = TestClient(create_app(Settings(), store))
        together = Barrier(len(paths))

        def get(path: str, http: TestClient = http, together: Barrier = together) -> int:
            together.wait()
            return http.get(path).status_code

        with ThreadPoolExecutor(len(paths)) as pool:
            assert [*pool.map(get, paths)] == [422] * 12 + [200, 200, 422, 200]


def test_one_tag_stands_for_both_encodings(post: Poster) -> None:
    """The tag is weak where bytes differ; both are 304 to both, until the answer changes."""
    http = post.http
    plain = http.get("/", headers=PLAIN).headers["etag"]
    packed = http.get("/", headers=GZIP).headers["etag"]
    assert packed == f"W/{plain}"
    for tag in (plain, packed, f'"other", {plain}', "*"):
        for encoding in (PLAIN, GZIP):
            for method in ("GET", "HEAD"):
                answer = http.request(method, "/", headers=encoding | {"If-None-Match": tag})
                assert (answer.status_code, answer.content) == (304, b""), (tag, encoding)
                assert "content-encoding" not in answer.headers
                assert answer.headers["vary"] == "Accept-Encoding, Origin"
    assert http.get("/", headers={"If-None-Match": '"other"'}).status_code == 200
    post.made()
    changed = http.get("/", headers={"If-None-Match": plain})
    assert (changed.status_code, changed.headers["cache-control"]) == (200, "no-cache")


@pytest.fixture
def compressed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    lengths: list[int] = []
    compress = starlette_gzip.GZipResponder._compress_body

    def counting(self: Any, body: bytes, more_body: bool) -> bytes:
        lengths.append(len(body))
        return compress(self, body, more_body)

    monkeypatch.setattr(starlette_gzip.GZipResponder, "_compress_body", counting)
    return lengths


def test_a_cached_answer_is_compressed_once(http: TestClient, compressed: list[int]) -> None:
    answers = [raw(http, "/") for _ in range(3)]
    assert len(compressed) == 1
    assert len({sent for _, sent in answers}) == 1
    assert "content-encoding" not in http.get("/", headers=PLAIN).headers


def test_static_files_are_immutable_at_the_address_of_their_content(http: TestClient) -> None:
    for name in ("site.css", "htmx-2.0.10.0BSD.min.js", "icon.svg"):
        address = static_files.address(name)
        answer = http.get(address)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        again = http.get(address, headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        for other in (f"/static/{name}", f"/static/{name}?v=000000000000"):
            assert http.get(other).headers["cache-control"] == "no-cache"
    assert static_files.address("site.css") in http.get("/").text


def test_any_origin_may_read(http: TestClient) -> None:
    of_api = (f"/api/v1/{name}" for name in ("leaderboard", "export.csv", "none"))
    for path in (*of_api, "/openapi.json", "/checkpoint"):
        for method in ("GET", "HEAD"):
            headers = http.request(method, path, headers=ORIGIN).headers
            assert headers["access-control-allow-origin"] == "*", path
            assert "ETag" in headers["access-control-expose-headers"], path
            assert "access-control-allow-credentials" not in headers, path
            assert headers["vary"].split(", ").count("Origin") == 1, path


def test_a_preflight_request_for_reading_is_answered(http: TestClient) -> None:
    ask = ORIGIN | {
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "if-none-match",
    }
    answer = http.options("/api/v1/results", headers=ask)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-methods"] == "GET, HEAD"
    assert "If-None-Match" in answer.headers["access-control-allow-headers"]


def test_no_origin_may_write(http: TestClient) -> None:
    """A browser asks before it sends JSON, is refused, and cannot keep the answer to another
    question. Without asking it can send plain text, which is refused."""
    asks = [
        ORIGIN | {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": name}
        for method in ("GET", "POST")
        for name in ("content-type", "authorization")
    ]
    for path in ("/api/v1/results", "/api/v1/keys", "/api/v1/acts"):
        for ask in asks:
            answer = http.options(path, headers=ask)
            assert answer.is_success == (ask["Access-Control-Request-Method"] == "GET")
            assert answer.headers["access-control-allow-methods"] == "GET, HEAD"
            assert answer.headers["access-control-max-age"] == "0"
        plain = ORIGIN | {"Content-Type": "text/plain"}
        assert http.post(path, headers=plain, content=b"x").status_code == 415
