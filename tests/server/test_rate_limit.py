"""Rate limits, the read token, ETags and Prometheus metrics."""

import base64
import json
import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
import time_machine
from fastapi.testclient import TestClient
from sqlmodel import select
from tests.fakes.client import Poster
from tests.fakes.live import running_server
from tests.fakes.projected import project
from tests.fakes.results import enrollment, key_id, make_result, private_key, sealed
from tests.fakes.said import ORIGIN, act, rotated

from bench_agent.remote.connection import LONGEST_WAIT_SECONDS
from bench_server.app import create_app
from bench_server.db.store import Store, utc_now
from bench_server.db.tables import Challenge, Measurement
from bench_server.ingest.key_registry import invite
from bench_server.settings import Settings
from bench_server.web.client_networks import sender
from bench_server.web.rate_limit import OPEN_PATHS
from bench_server.web.routes import ROUTERS

TOKEN = "a token of some length"
PROXIES = "BENCH_SERVER_TRUSTED_PROXIES"

pytestmark = pytest.mark.sqlite


def client(store: Store, **settings: object) -> TestClient:
    return TestClient(create_app(Settings(**settings), store))  # type: ignore[arg-type]


def test_an_address_is_held_back(store: Store) -> None:
    http = client(store, address_rate="3/minute")
    for _ in range(3):
        assert http.get("/api/v1/workloads").status_code == 200
    refused = http.get("/api/v1/workloads")
    assert refused.status_code == 429
    assert refused.json()["code"] == "too_many_requests"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.headers["x-content-type-options"] == "nosniff"
    assert http.get("/healthz").status_code == 200


def test_a_clock_that_is_set_back_keeps_nobody_out(store: Store) -> None:
    http = client(store, address_rate="3/minute")
    with time_machine.travel(timedelta(days=1)):
        assert [http.get("/api/v1/workloads").status_code for _ in range(4)] == [200] * 3 + [429]
    assert [http.get("/api/v1/workloads").status_code for _ in range(4)] == [200] * 3 + [429]


def test_a_key_is_held_back_and_no_other(store: Store) -> None:
    http = client(store, key_rate="2/hour")
    post, other = Poster(http), private_key(2)
    post.enroll()
    post.enroll(other)
    for _ in range(2):
        post.made()
    body = sealed(make_result())
    refused = post.raw(body)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 60
    assert post.raw(body.replace(b'"sig":"', b'"sig":"AAAA', 1)).status_code == 400
    assert post.made(key=other)
    project(store)
    assert http.get("/api/v1/results").json()["results"][0]["key_id"] == key_id(other)


def test_acts_and_events_of_a_key_are_held_back(store: Store) -> None:
    """Each is a log entry for ever. What is refused has changed nothing; another key may."""
    post = Poster(client(store, act_rate="2/hour", origin=ORIGIN))
    post.enroll()
    identity = post.made()
    size = post.http.get("/api/v1/log").json()["size"]
    acted = [act(post, kind, result=identity).status_code for kind in ("hide", "show", "hide")]
    assert acted == [200, 200, 429]
    assert post.http.get("/api/v1/log").json()["size"] == size + 2
    post.enroll(private_key(2))
    assert [rotated(post, n, n + 1).status_code for n in (2, 3, 4)] == [201, 201, 429]


def test_a_batch_says_when_its_refused_lines_may_be_sent_again(store: Store) -> None:
    http = client(store, key_rate="2/hour")
    Poster(http).enroll()
    lines = [sealed(make_result(step_ns=step)) for step in (1_000_000, 1_100_000, 1_200_000)]

    def post(bodies: list[bytes]) -> httpx.Response:
        headers = {"Content-Type": "application/x-ndjson"}
        return http.post("/api/v1/results", content=b"\n".join(bodies), headers=headers)

    taken, refused = post(lines[:1]), post(lines[1:])
    assert "retry-after" not in taken.headers
    assert [json.loads(line)["status"] for line in refused.text.splitlines()] == [201, 429]
    assert int(refused.headers["retry-after"]) > 60


def test_an_address_enrolls_so_many_keys_a_day(store: Store) -> None:
    """Known keys and invited ones do not count, and a refused key is not enrolled."""
    http = client(store, enroll_rate="2/day")

    def enroll(seed: int, invite: str | None = None) -> httpx.Response:
        body = json.loads(enrollment(private_key(seed))) | {"invite": invite}
        return http.post("/api/v1/keys", json=body)

    assert [enroll(seed).status_code for seed in (1, 2, 2)] == [201, 201, 200]
    refused = enroll(3)
    assert refused.status_code == 429
    assert refused.json()["detail"] == "an address may enroll 2 per 1 day"
    assert int(refused.headers["retry-after"]) > 3600
    assert http.get(f"/api/v1/keys/{key_id(private_key(3))}").status_code == 404
    with store.writing() as session:
        code = invite(session, utc_now(), None, timedelta(days=1))
    assert enroll(3, code).status_code == 201


def test_addresses_of_one_site_share_a_rate(store: Store) -> None:
    app = create_app(Settings(address_rate="2/minute"), store)

    def status(host: str) -> int:
        return TestClient(app, client=(host, 50_000)).get("/api/v1/workloads").status_code

    site = [f"2001:db8::{number}" for number in range(1, 5)]
    assert [status(host) for host in site] == [200, 200, 429, 429]
    assert status("2001:db8:0:1::1") == 200
    assert [status("::ffff:192.0.2.1"), status("192.0.2.1"), status("192.0.2.1")] == [200, 200, 429]
    assert "192.0.2.1" not in sender("192.0.2.1")


def test_an_address_asks_for_so_many_challenges(store: Store) -> None:
    """Each challenge is a row of the database."""
    http = client(store, challenge_rate="2/hour")
    Poster(http).enroll()
    answers = [Poster(http).ask() for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert answers[2].json()["detail"] == "challenges that an address may ask for: 2 per 1 hour"
    with store.reading() as session:
        assert len(session.exec(select(Challenge)).all()) == 2


@pytest.mark.parametrize(
    ("trusted", "statuses"), [({}, [200, 200, 429, 429]), ({PROXIES: "127.0.0.0/8"}, [200] * 4)]
)
def test_forwarded_addresses_only_from_a_trusted_proxy(
    database_url: str, tmp_path: Path, trusted: dict[str, str], statuses: list[int]
) -> None:
    named = {"BENCH_SERVER_ORIGIN": "trainmark.test"} if trusted else {}
    limited = {"BENCH_SERVER_ADDRESS_RATE": "2/minute"} | trusted | named
    with running_server(database_url, tmp_path, **limited) as address:
        forwarded = [{"X-Forwarded-For": f"198.51.100.{number}"} for number in range(4)]
        path = f"{address}/api/v1/workloads"
        got = [httpx.get(path, headers=headers).status_code for headers in forwarded]
    assert got == statuses


def test_a_read_only_server_accepts_nothing_for_now(store: Store) -> None:
    """503, not a refusal: an agent keeps its results in its outbox."""
    Poster(client(store)).enroll()
    http = client(store, read_only="yes")
    posted = [
        Poster(http).raw(sealed(make_result())),
        http.post("/api/v1/keys", content=enrollment(private_key(2))),
    ]
    for refused in posted:
        assert (refused.status_code, refused.json()["code"]) == (503, "read_only")
        assert int(refused.headers["retry-after"]) > LONGEST_WAIT_SECONDS
    for address in ("/", "/api/v1/results", "/checkpoint"):
        assert http.get(address).status_code == 200
    assert http.get("/api/v1/log").json()["size"] == 1


def test_reading_takes_the_token(store: Store) -> None:
    http = client(store, read_token=TOKEN)
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    for address in ("/", "/api/v1/leaderboard", "/api/v1/export.csv", "/metrics", "/openapi.json"):
        refused = http.get(address)
        assert refused.status_code == 401, address
        assert refused.headers["www-authenticate"].startswith("Basic")
        for header in (f"Bearer {TOKEN}", f"Basic {basic}"):
            assert http.get(address, headers={"Authorization": header}).status_code == 200
        for wrong in ("Bearer x", "Basic x", "Basic " + "é", f"Digest {TOKEN}", TOKEN):
            assert http.get(address, headers={"Authorization": wrong.encode()}).status_code == 401
    Poster(http).enroll()
    assert Poster(http).raw(sealed(make_result())).status_code == 201
    assert http.get("/healthz").status_code == 200


def test_no_shared_cache_may_keep_what_needs_the_token(store: Store, tmp_path: Path) -> None:
    """Every method of every route, with what exists and what does not; with the token and without;
    and what no route answers."""
    (tmp_path / "results-2026-11-21.csv").write_text("x")
    app = create_app(Settings(read_token=TOKEN, dumps_dir=tmp_path), store)
    http = TestClient(app, follow_redirects=False, raise_server_exceptions=False)
    Poster(http).enroll()
    made = Poster(http).raw(sealed(make_result())).json()
    project(store)
    with store.reading() as session:
        row = session.exec(select(Measurement)).one()
    names = {
        "result_id": made["id"], "key_id": made["key_id"], "slug": row.hardware_slug,
        "machine_id": row.machine_id, "owner": row.owner, "level": "0", "number": "000.p/2",
        "form": "csv",
    }  # fmt: skip
    fine = set()
    for route in (*app.routes, *(route for router in ROUTERS for route in router.routes)):
        path = getattr(route, "path", "")
        for name in ("methodology", row.workload, "results-2026-11-21.csv", None):
            values = {} if name is None else {**names, "name": name}
            parts = [values.get(part, "1") for part in re.findall(r"{(\w+)", path)]
            address = re.sub(r"{[^}]*}", "{}", path).format(*map(quote, parts)) or "/"
            for method in getattr(route, "methods", None) or {"GET"}:
                for headers in ({"Authorization": f"Bearer {TOKEN}"}, {}):
                    with http.stream(method, address, headers=headers) as answer:
                        said = answer.headers.get("cache-control", "")
                    if not address.startswith(OPEN_PATHS):
                        assert said.startswith("private"), (address, said)
                        assert "public" not in said, address
                        fine |= {path} if answer.status_code == 200 else set()
    assert {"/results/{result_id}", "/tile/{level}/{number:path}", "/workloads/{name}"} <= fine
    assert len(fine) > 50


def test_metrics_name_routes_and_not_ids(post: Poster) -> None:
    identity = post.made()
    post.http.get(f"/api/v1/results/{identity}")
    post.http.get("/nothing/here")
    metrics = post.http.get("/metrics").text
    line = 'trainmark_requests_total{method="GET",route="/api/v1/results/{result_id}",status="200"}'
    assert line in metrics
    assert identity not in metrics
    assert 'route="none",status="404"' in metrics
    assert "process_resident_memory_bytes" in metrics
