"""Long and short timings: kept apart in figures, places, comparisons, histories and scores."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.medians import figures
from tests.server.test_figures import SETUP, repeat

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.figures import timing_kind
from bench_protocol.payload.result import Measurement
from bench_protocol.payload.witness import LastBlock
from bench_server.ingest import columns
from bench_server.ranking import score
from bench_server.ranking.compare import ranked
from bench_server.ranking.figures import Setup

SHORT = SETUP._replace(timing="short")
LONG_BLOCKS = 1_008  # of 10 steps of 1 ms
OTHER = results.make_machine("Intel(R) Core(TM) i9-9900", seed=9)


@pytest.mark.parametrize(
    ("device", "seconds", "kind"),
    [("cpu", 9.99, "short"), ("cpu", 10, "long"), ("cuda", 10, "short"), ("metal", 30, "long")],
)
def test_the_limits_are_those_of_standard(device: Any, seconds: float, kind: str) -> None:
    assert timing_kind(device, seconds * 1e9) == kind


def place(*setups: tuple[float, Setup]) -> tuple[float, int]:
    """Time of the place of one hardware, and among how many set-ups it is the first."""
    (row,) = ranked(figures([repeat(ns, setup=setup) for ns, setup in setups]), one_each=True)
    return row.figure.ns_per_sample, row.setups


def test_a_place_prefers_long_timings_after_real_data() -> None:
    generated = SETUP._replace(data="generated")
    assert place((100, SETUP), (10, SHORT)) == (100, 1)
    assert place((100, SHORT), (10, generated)) == (100, 1)
    assert place((100, SHORT), (90, SHORT._replace(recipe="tuned"))) == (90, 2)


def test_scores_compare_like_timings() -> None:
    """A short timing of one hardware is never set against a long one of another."""

    def of(name: str, *made: tuple[int, Setup]) -> dict[str, score.Bests]:
        made_figures = figures(
            repeat(ns, owner, owner, name, setup=setup) for ns, setup in made for owner in "abc"
        )
        digest = workload_named("mnist-cnn").digest
        return score.best_of(
            one._replace(subject=one.subject._replace(workload_digest=digest))
            for one in made_figures
        )

    fast, slow = of("fast", (50, SHORT)), of("slow", (100, SETUP))
    alone = score.score(fast, slow)
    assert (alone.value, alone.covered, alone.terms) == (None, 0, 1)
    both = score.score(fast, of("slow", (100, SETUP), (80, SHORT)))
    assert (both.value, both.covered) == (pytest.approx(1.6), 1)
    least = score.score(of("fast", (50, SHORT), (40, SETUP)), of("slow", (100, SETUP), (80, SHORT)))
    assert least.value == pytest.approx(2.5)


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
    """A measurement of more than 10 s, with steps of 1 ms or more."""
    return results.make_measurement(results.make_cell(), step_ns, LONG_BLOCKS)


def board(http: TestClient, **filters: str) -> list[tuple[str, str, int]]:
    asked = {"workload": "mnist-cnn", **filters}
    rows = http.get("/api/v1/leaderboard", params=asked).json()["rows"]
    return [(row["hardware_slug"], row["timing"], round(row["samples_per_second"])) for row in rows]


def test_a_short_run_has_a_place_until_there_is_a_long_one(http: TestClient, post: Poster) -> None:
    slug, mark = "intel-core-i7-8700", ">short</span>"
    post.made(step_ns=1_000_000)
    assert board(http) == [(slug, "short", 64_000)]
    post.made(measurement=long(1_250_000))
    assert board(http) == [(slug, "long", 51_200)]
    page = http.get("/?workload=mnist-cnn").text
    assert mark not in page
    assert '1 more<span class="hidden"> set-ups' in page
    assert board(http, timing="short") == [(slug, "short", 64_000)]
    assert len(board(http, group="setup")) == 2
    for timing in ("long", "short"):
        listed = http.get("/api/v1/results", params={"timing": timing}).json()["results"]
        assert [row["timing"] for row in listed] == [timing]
    assert http.get("/api/v1/results", params={"timing": "whole"}).status_code == 422


def test_a_board_of_short_timings_says_so_once(http: TestClient, post: Poster) -> None:
    mark, said = ">short</span>", "All timings shown are short"
    for machine in (results.make_machine(), OTHER):
        post.made(machine=machine)
    page = http.get("/?workload=mnist-cnn").text
    assert (page.count(said), page.count(mark)) == (1, 0)
    post.made(measurement=long(), machine=OTHER)
    page = http.get("/?workload=mnist-cnn").text
    assert (page.count(said), page.count(mark)) == (0, 1)


def test_only_like_timings_are_compared(http: TestClient, post: Poster) -> None:
    for run in range(3):
        post.made(step_ns=1_000_000 + run)
        post.made(measurement=long(1_250_000 + run), machine=OTHER)
    ask = {"ids": "intel-core-i7-8700,intel-core-i9-9900"}
    answer = http.get("/api/v1/compare", params=ask).json()
    assert (answer["common_cells"], answer["comparisons"]) == (0, 0)
    assert [row["timing"] for row in answer["rows"]] == ["long", "short"]
    post.made(step_ns=1_000_000, machine=OTHER)
    answer = http.get("/api/v1/compare", params=ask).json()
    assert [row["timing"] for row in answer["rows"] if row["common"]] == ["short"]
    assert answer["things"][1]["speed_up"] == pytest.approx(1, abs=1e-5)
    assert http.get("/compare", params=ask).status_code == 200


def test_studies_mix_no_timings(http: TestClient, post: Poster) -> None:
    """The long timings of a hardware where it has some; so a boost makes no framework faster."""
    mlx = results.make_cell(framework="mlx")
    post.made(step_ns=500_000, cell=mlx)
    for recipe in ("naive", "tuned"):
        post.made(cell=results.make_cell(recipe=recipe), measurement=long())
    (table,) = http.get("/api/v1/frameworks").json()["tables"]
    assert (table["timing"], [row["framework"] for row in table["rows"]]) == (
        "long",
        ["tensorflow"],
    )
    assert "long timings" in http.get("/frameworks").text


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
