"""The heading of the leaderboard."""

import re
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.catalogue.matrix import Device
from bench_server.answers.board_filters import BoardFilters
from bench_server.answers.types.leaderboard import HardwareScore
from bench_server.ranking.owners import Backing
from bench_server.ranking.score import SCORED, Score
from bench_server.web.pages.board_finding import finding
from bench_server.web.pages.board_links import METRICS

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SCORE = Score(3, 31.0, None, None, "Intel Core i7-8700", "i7", "several", 5, 5, ())
BEST = HardwareScore("NVIDIA H200", "h200", published=False, rank=1, score=SCORE)
BASE = HardwareScore("Intel Core i7-8700", "i7", published=False, rank=2, score=SCORE)


def heading(*scores: HardwareScore, **filters: Any) -> str:
    return finding(BoardFilters.model_validate(filters), METRICS["throughput"], (), scores)


def unranked(backing: Backing | None, published: bool = False, **changes: Any) -> HardwareScore:
    score = replace(SCORE, backing=backing, **changes)
    return replace(BEST, rank=None, published=published, score=score)


def test_the_best_score_is_the_finding() -> None:
    assert heading(BEST, BASE) == "NVIDIA H200 trains 31.0 times as fast as Intel Core i7-8700"
    found = heading(BEST, BASE, family="data-centre")
    assert found.startswith("Data-centre GPUs: NVIDIA H200 trains 31.0 times as fast as")


PART = {"covered": 3, "missing": ("a", "b")}


@pytest.mark.parametrize(
    ("best", "times", "ends"),
    [
        (unranked("one"), "about 31.0", ", measured by one owner"),
        (unranked("one", **PART), "31.0", ", in 3 of 5 workloads, measured by one owner"),
        (unranked("several", **PART), "31.0", ", in 3 of 5 workloads"),
        (unranked(None, published=True), "31.0", ", as published"),
        (unranked("one", value=0.5), "about 0.500", ", measured by one owner"),
    ],
)
def test_without_a_rank_by_score_it_is_a_finding_too(
    best: HardwareScore, times: str, ends: str
) -> None:
    begins = f"NVIDIA H200 trains {times} times as fast as Intel Core i7-8700"
    assert heading(best, BASE) == begins + ends


def test_the_baseline_itself() -> None:
    fastest = "Intel Core i7-8700 is the fastest so far"
    assert heading(BASE, BEST) == fastest
    lone = replace(BASE, score=replace(SCORE, backing="one"))
    assert heading(lone, BEST) == f"{fastest}, measured by one owner"
    assert heading(BASE) == "Intel Core i7-8700 is the only hardware so far"
    assert heading() == "No ranked results yet"
    assert heading(device="metal") == "On Metal: no ranked results yet"


@pytest.mark.parametrize(
    ("filters", "begins"),
    [
        ({"device": "metal", "recipe": "tuned"}, "On Metal, tuned: NVIDIA H200 trains"),
        ({"family": "apple-m", "framework": "mlx"}, "Apple M, with mlx: NVIDIA H200 trains"),
        ({"batch_size": 1024, "data": "real"}, "Batch 1,024, real data: NVIDIA H200 trains"),
        ({"timing": "long", "precision": "tf32"}, "In tf32, long timings: NVIDIA H200 trains"),
        ({"batch_size": "any", "precision": "any"}, "NVIDIA H200 trains"),
        ({"device": "cpu", "q": "h200"}, "On CPUs: NVIDIA H200 trains"),
        ({"trust_level": 3, "device": "cuda"}, "On CUDA, trust level 3 or more: NVIDIA H200"),
        ({"machine_id": "0f1e2d3c4b5a6978"}, "Machine 0f1e2d3c4b5a6978: NVIDIA H200 trains"),
    ],
)
def test_a_finding_within_some_rows_names_them(filters: dict[str, Any], begins: str) -> None:
    assert heading(BEST, BASE, **filters).startswith(begins)


@ON_SQLITE
def test_home_has_a_chart_from_the_second_hardware_on(post: Poster) -> None:
    post.made()
    alone = post.http.get("/").text
    assert "is the only hardware so far</h1>" in alone
    assert '<figure class="dots">' not in alone
    post.enroll(results.private_key(2))
    post.made(key=results.private_key(2))
    post.made(machine=results.make_machine("AMD Ryzen 9", seed=8))
    both = re.sub(r"\s+", " ", post.http.get("/").text)
    assert '<figure class="dots">' in both
    assert "hollow: one owner, or not all workloads" in both
    assert 'class="board"' not in both


MLX: dict[str, Any] = {"framework": "mlx", "device": Device(kind="metal")}
M2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)


@pytest.fixture
def both_kinds(post: Poster) -> Poster:
    post.baseline("intel-core-i7-8700")
    post.made()
    post.made(cell=results.make_cell(**MLX), machine=M2, step_ns=500_000)
    return post


@ON_SQLITE
def test_a_score_that_rests_on_one_owner_in_part_says_so(both_kinds: Poster) -> None:
    """A second owner of the GPU comes first in one workload, then in the other."""
    post, http = both_kinds, both_kinds.http
    post.made(cell=results.make_cell("fashion-lstm"))
    post.made(cell=results.make_cell("fashion-lstm", **MLX), machine=M2, step_ns=500_000)
    second = results.private_key(2)
    with TestClient(http.app, client=("10.0.0.2", 1)) as elsewhere:
        Poster(elsewhere).enroll(second)
    found = []
    for workload in (None, "fashion-lstm", "mnist-cnn"):
        if workload:
            machine = M2.model_copy(update={"machine_hash": "9" * 64})
            cell = results.make_cell(workload, **MLX)
            post.made(key=second, cell=cell, machine=machine, step_ns=500_000)
        (heading,) = re.findall("<h1>(.*)</h1>", http.get("/").text)
        found.append(re.sub("<.*?>", "", heading).partition("Intel Core i7-8700")[2])
    some = f", in 2 of {len(SCORED)} workloads"
    assert found == [
        f"{some}, measured by one owner",
        f"{some}, in part measured by one owner",
        some,
    ]


@ON_SQLITE
def test_one_hardware_is_charted_against_the_baseline(both_kinds: Poster) -> None:
    for query in ("device=metal", "framework=mlx", "family=apple-m"):
        page = both_kinds.http.get(f"/?{query}").text
        assert "trains 2.00 times as fast as" in page
        assert '<figure class="dots">' in page
    page = re.sub("<.*?>", "", both_kinds.http.get("/?group=setup").text)
    assert "Apple M2 Max (30-core GPU) trains mnist-cnn fastest, measured by one owner" in page
