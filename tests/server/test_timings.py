"""Long and short timings: figures and histories of their own, and compared with each other."""

import html
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.medians import figures
from tests.server.test_figures import SETUP, repeat

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.figures import timing_kind
from bench_protocol.payload.result import Measurement
from bench_protocol.payload.witness import LastBlock
from bench_server.ingest import columns
from bench_server.ranking import score
from bench_server.ranking.figures import Setup

pytestmark = pytest.mark.sqlite
SHORT = SETUP._replace(timing="short")
LONG_BLOCKS = 1_008  # of 10 steps of 1 ms
GPU = results.make_machine("AMD EPYC 9654", ("cuda", "NVIDIA H200", None), seed=10)
OTHER = results.make_machine("Intel(R) Core(TM) i9-9900", seed=9)


@pytest.mark.parametrize(
    ("device", "seconds", "kind"),
    [("cpu", 9.99, "short"), ("cpu", 10, "long"), ("cuda", 10, "short"), ("metal", 30, "long")],
)
def test_the_limits_are_those_of_standard(device: Any, seconds: float, kind: str) -> None:
    assert timing_kind(device, seconds * 1e9) == kind


def test_a_score_compares_the_fastest_of_both() -> None:
    def of(name: str, *made: tuple[int, Setup]) -> score.Bests:
        made_figures = figures(
            repeat(ns, owner, owner, name, setup=setup) for ns, setup in made for owner in "abc"
        )
        digest = workload_named("mnist-cnn").digest
        return score.best_of(
            one._replace(subject=one.subject._replace(workload_digest=digest))
            for one in made_figures
        )

    slow = of("slow", (100, SETUP))
    assert score.score(of("fast", (50, SHORT)), slow).value == pytest.approx(2)
    both = score.score(of("fast", (50, SHORT), (40, SETUP)), slow)
    assert (both.value, both.covered) == (pytest.approx(2.5), 1)


def test_the_last_block_counts_and_a_failure_is_short() -> None:
    cell = results.make_cell()
    measured = results.make_measurement(cell, block_count=LONG_BLOCKS - 12)
    rest_ns = 10**10 - measured.blocks.total_ns
    for duration_ns, kind in ((rest_ns - 1, "short"), (rest_ns, "long")):
        last = LastBlock(steps=9, duration_ns=duration_ns)
        blocks = measured.blocks.model_copy(update={"last_block": last})
        whole = measured.model_copy(update={"blocks": blocks})
        made = columns.of_result(results.make_result(cell=cell, measurement=whole))
        assert made["timing"] == kind
    assert columns.of_result(results.make_failure())["timing"] == "short"


def long(step_ns: int = 1_000_000) -> Measurement:
    return results.make_measurement(results.make_cell(), step_ns, LONG_BLOCKS)


def board(http: TestClient, **filters: str) -> list[tuple[str, str, int]]:
    asked = {"workload": "mnist-cnn", **filters}
    rows = http.get("/api/v1/leaderboard", params=asked).json()["rows"]
    return [(row["hardware_slug"], row["timing"], round(row["samples_per_second"])) for row in rows]


def test_a_place_names_its_timing(http: TestClient, post: Poster) -> None:
    slug = "intel-core-i7-8700"
    post.made(step_ns=1_250_000)
    assert board(http) == [(slug, "short", 51_200)]
    post.made(measurement=long(1_000_000))
    assert board(http) == [(slug, "long", 64_000)]
    page = http.get("/?workload=mnist-cnn").text
    assert ">short</span>" not in page
    assert '1 more<span class="hidden"> set-ups' in page
    assert board(http, timing="short") == [(slug, "short", 51_200)]
    assert len(board(http, group="setup")) == 2
    for timing in ("long", "short"):
        listed = http.get("/api/v1/results", params={"timing": timing}).json()["results"]
        assert [row["timing"] for row in listed] == [timing]
    assert http.get("/api/v1/results", params={"timing": "whole"}).status_code == 422


def test_a_board_of_short_timings_says_so_once(http: TestClient, post: Poster) -> None:
    mark, said = ">short</span>", "Short timings (under 10 s"
    for machine in (results.make_machine(), OTHER):
        post.made(machine=machine)
    page = http.get("/?workload=mnist-cnn").text
    assert (page.count(said), page.count(mark)) == (1, 0)
    post.made(measurement=long(), machine=OTHER)
    page = http.get("/?workload=mnist-cnn").text
    assert (page.count(said), page.count(mark)) == (0, 2)
    failed = post(results.make_failure())
    assert mark not in http.get(f"/results/{failed}").text, "nothing was timed"


def test_a_page_says_once_what_all_its_figures_share(http: TestClient, post: Poster) -> None:
    """Every page with figures: tuned on CUDA, short, of generated data."""
    said = ("Short timings (under 10 s", "All data is generated.", "CUDA: an expert's loop may")
    marks = (">short</span>", ">generated</span>", ">an expert may be faster</span>")
    for device in ("cpu", "cuda"):
        for batch_size in (64, 256):
            kinds: dict[str, Any] = {"device": Device(kind=device), "batch_size": batch_size}
            post.made(cell=results.make_cell(recipe="tuned", **kinds), machine=GPU)
    post(results.make_failure())
    row = http.get("/api/v1/results?device=cuda&limit=1").json()["results"][0]
    slug = row["hardware_slug"]
    for page in (
        *("/?workload=mnist-cnn", "/workloads/mnist-cnn", f"/hardware/{slug}", "/results"),
        *(f"/machines/{row['machine_id']}", f"/frameworks?hardware={slug}", "/cpu-vs-gpu"),
        f"/batch-size?hardware={slug}",
    ):
        if page.startswith("/frameworks"):
            post.made(cell=results.make_cell(device=Device(kind="cuda")), machine=GPU)
        text = http.get(page).text.partition("not ranked</summary>")[0]
        assert [html.unescape(text).count(words) for words in said] == [1, 1, 1], page
        assert [text.count(mark) for mark in marks] == [0, 0, 0], page


def test_a_study_is_of_the_fastest(http: TestClient, post: Poster) -> None:
    post.made(step_ns=500_000, cell=results.make_cell(framework="mlx"))
    for recipe in ("naive", "tuned"):
        post.made(cell=results.make_cell(recipe=recipe), measurement=long())
    (table,) = http.get("/api/v1/frameworks").json()["tables"]
    assert [row["framework"] for row in table["rows"]] == ["mlx", "tensorflow"]
    assert [row["best"] and row["best"]["speed_up"] for row in table["rows"]] == [
        None,
        pytest.approx(0.5),
    ]


def test_a_history_is_of_one_timing(http: TestClient, post: Poster) -> None:
    machine_id = http.get(f"/api/v1/results/{post.made()}").json()["machine_id"]
    post.made(measurement=long(1_250_000))
    post.made()
    address = f"/api/v1/machines/{machine_id}/history"
    refused = http.get(address)
    assert refused.status_code == 422
    assert "timing" in refused.json()["hint"]
    for timing, points in (("short", 2), ("long", 1)):
        answer = http.get(address, params={"timing": timing}).json()
        assert (answer["timing"], len(answer["points"])) == (timing, points)
    assert http.get(f"/machines/{machine_id}").status_code == 200
