"""Unknown names, wrong addresses, and the lists that show which names there are."""

import html
import re
from itertools import product

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import Device

PAGE = {"Accept": "text/html"}
M2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
LISTS = ("leaderboard", "results", "export.csv", "trends")
M2_SLUG, I7_SLUG = "apple-m2-max-30-core-gpu", "intel-core-i7-8700"


@pytest.fixture
def filled(post: Poster) -> TestClient:
    post.made()
    post.made(cell=results.make_cell(device=Device(kind="metal")), machine=M2, step_ns=90_000)
    return post.http


def test_an_unknown_name_is_refused_everywhere_alike(filled: TestClient) -> None:
    expected = {
        "workload": ", ".join(workload.name for workload in CATALOGUE),
        "framework": "jax, mlx, tensorflow, torch",
        "ids": "GET /api/v1/leaderboard lists hardware_slug",
    }
    for path, field in (
        *product(
            ("leaderboard", "results", "export.csv", "trends"),
            ("workload", "framework", "hardware"),
        ),
        *(("frameworks", "hardware"), ("batch-size", "hardware")),
        *(("leaderboard", "baseline"), ("leaderboard.csv", "baseline")),
        *(("cpu-vs-gpu", "cpu"), ("cpu-vs-gpu", "gpu"), ("compare", "ids"), ("compare.csv", "ids")),
    ):
        known = {"cpu": I7_SLUG, "gpu": M2_SLUG} if path == "cpu-vs-gpu" else {}
        value = f"nope,{M2_SLUG}" if field == "ids" else "nope"
        answer = filled.get(f"/api/v1/{path}", params=known | {field: value})
        assert answer.status_code == 422, (path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        document = answer.json()
        assert (document["code"], document["field"]) == ("invalid_query", field)
        assert document["detail"].startswith(f"{field}: ")
        named = document["detail"] + document["hint"]
        assert expected.get(field, "GET /api/v1/hardware lists all hardware") in named


@pytest.mark.parametrize("wanted", ["Apple M2 Max", "m2-max", "apple-m2-max-30-core-gpuu"])
def test_the_nearest_hardware_is_named(filled: TestClient, wanted: str) -> None:
    for answer in (
        filled.get("/api/v1/leaderboard", params={"hardware": wanted}),
        filled.get(f"/api/v1/hardware/{wanted}"),
    ):
        assert f"did you mean {M2_SLUG}?" in answer.json()["hint"]
    page = filled.get(f"/hardware/{wanted}", headers=PAGE)
    assert page.status_code == 404
    assert f'Did you mean</h2>\n  <p class="doing"><a href="/hardware/{M2_SLUG}">' in page.text


@pytest.mark.parametrize(
    ("address", "right"),
    [
        ("/?workload=mnist", ["/?workload=mnist-cnn", "/?workload=mnist-dense"]),
        ("/?sort=spred&workload=mnist-cnn", ["/?workload=mnist-cnn&sort=spread"]),
        ("/?framework=tensorflo", ["/?framework=tensorflow"]),
        ("/results?hardware=m2-max", [f"/results?hardware={M2_SLUG}"]),
        ("/frameworks?hardware=m2-max", [f"/frameworks?hardware={M2_SLUG}"]),
        ("/?workload=zzz", []),
    ],
)
def test_a_wrong_word_gets_links_to_the_right_ones(
    filled: TestClient, address: str, right: list[str]
) -> None:
    page = filled.get(address, headers=PAGE)
    assert page.status_code == 422
    found = re.findall(r'<p class="doing"><a href="([^"]+)">', page.text)
    assert [html.unescape(one) for one in found] == [*right, "/"]
    hint = filled.get(f"/api/v1{address.replace('/?', '/leaderboard?')}").json()["hint"]
    assert hint.startswith("did you mean") is bool(right)


def test_a_name_of_several_hardware_lists_all(filled: TestClient, post: Poster) -> None:
    larger = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 38), seed=3)
    post.made(cell=results.make_cell(device=Device(kind="metal")), machine=larger)
    post.made(machine=results.make_machine("Apple M2 Max", seed=4))
    slugs = [f"apple-m2-max-{cores}" for cores in ("12-core-cpu", "30-core-gpu", "38-core-gpu")]
    hint = filled.get("/api/v1/leaderboard?hardware=Apple M2 Max").json()["hint"]
    assert hint.startswith(f"did you mean {slugs[0]}, {slugs[1]} or {slugs[2]}?")
    page = filled.get("/hardware/apple-m2-max", headers=PAGE).text
    for slug in slugs:
        assert f'<a href="/hardware/{slug}">' in page


def test_a_hardware_without_ranked_results_is_known(filled: TestClient, post: Poster) -> None:
    failed = post(results.make_failure(machine=results.make_machine("AMD EPYC 9654", seed=7)))
    slug = filled.get(f"/api/v1/results/{failed}").json()["hardware_slug"]
    for path in ("results", "leaderboard"):
        answer = filled.get(f"/api/v1/{path}", params={"hardware": slug})
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("/metodology", "/methodology"),
        ("/result", "/results"),
        ("/leaderboard", "/"),
        ("/workloads/mnist-cn", "/workloads/mnist-cnn"),
        ("/documents/protocl", "/documents/protocol"),
        ("/dumps/x/y", "/dumps/"),
        ("/zzzzzz", None),
    ],
)
def test_a_wrong_address_gets_a_suggestion(http: TestClient, wrong: str, right: str | None) -> None:
    page = http.get(wrong, headers=PAGE)
    assert page.status_code == 404
    suggested = re.findall(r'Did you mean</h2>\s*<p class="doing"><a href="([^"]+)">', page.text)
    assert suggested == ([right] if right else [])
    assert "<h1>Page not found</h1>" in page.text
    hint = http.get("/api/v1/leaderbord").json()["hint"]
    assert hint.startswith("did you mean /api/v1/leaderboard?")


def rows(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="([^"]+)"', page)


def test_lists_go_on_page_by_page(filled: TestClient) -> None:
    assert rows(filled.get("/hardware?q=m2+max").text) == [f"/hardware/{M2_SLUG}"]
    assert len(rows(filled.get("/machines?q=m2").text)) == 1
    assert "Nothing matches" in filled.get("/hardware?q=h200").text
    for path in ("/hardware", "/machines", "/results?ranked=true&workload=mnist-cnn"):
        seen: list[str] = []
        address: str | None = f"{path}{'&' if '?' in path else '?'}limit=1"
        while address:
            page = filled.get(address).text
            seen += rows(page)
            following = re.search(r'<a href="([^"]+)" rel="next">', page)
            address = following[1].replace("&amp;", "&") if following else None
        assert len(seen) == len(set(seen)) == 2, path


def test_results_are_listed_with_their_state(filled: TestClient, post: Poster) -> None:
    failed = post(results.make_failure())
    every = filled.get("/results").text
    assert len(rows(every)) == 3
    assert rows(every)[0] == f"/results/{failed}"
    assert ">not ranked: " in every
    assert rows(filled.get("/results?status=failed").text) == [f"/results/{failed}"]
    ranked = filled.get("/results?ranked=true&trust_level=2").text
    assert len(rows(ranked)) == 2
    assert '<input type="hidden" name="trust_level" value="2">' in ranked
    csv = re.search(r'<a href="(/api/v1/export.csv[^"]*)"', ranked)
    assert csv
    assert len(filled.get(csv[1].replace("&amp;", "&")).text.splitlines()) == 3
