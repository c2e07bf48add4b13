"""Published figures: imported once, marked, separate from measured ones, correct."""

from html import unescape
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster, get
from typer.testing import CliRunner

from bench_server.cli.main import main as cli
from bench_server.settings import Settings

pytestmark = pytest.mark.sqlite
I7 = "published-intel-core-i7-8700"


@pytest.fixture
def imported(http: TestClient, database_url: str) -> TestClient:
    done = CliRunner().invoke(cli, ["import-published", "--database-url", database_url])
    assert "imported 36 published figures; 0 were there already" in done.output
    return http


def test_eight_speed_ups_against_the_i7(imported: TestClient) -> None:
    answer = get(imported, "/leaderboard?workload=cifar100-vgg16")
    assert answer["baselines"][0]["hardware_slug"] == I7
    rows = {row["hardware"]: row for row in answer["rows"]}
    for name, speed_up, digits in (
        ("NVIDIA GeForce RTX 4070 SUPER", 123, 0),
        ("NVIDIA GeForce RTX 2070", 48, 0),
        ("Apple M1 Max (32-core GPU)", 41, 0),
        ("Apple M4 Pro (16-core GPU)", 33, 0),
        ("Apple M2 (10-core GPU)", 13, 0),
        ("Intel Core i7-13700KF", 7, 0),
        ("Apple M1 Max (10-core CPU)", 2.3, 1),
        ("Intel Core i7-8700", 1, 0),
    ):
        row = rows[f"{name} (published)"]
        assert round(row["speed_up"], digits) == speed_up
        assert (row["rank"], row["trust_level"], row["published"]) == (None, 0, True)
    assert rows["Intel Core i7-8700 (published)"]["epoch_seconds"] == pytest.approx(863, rel=2e-3)


def test_four_ratios_of_pipeline_over_naive(imported: TestClient) -> None:
    ids = {
        (row["workload"], row["framework"], row["recipe"]): row["id"]
        for row in get(imported, "/published")
        if row["source_table"] == "frameworks"
    }
    for workload, framework, ratio in (
        *(("mnist-cnn", "tensorflow", 3.1), ("fashion-cnn", "tensorflow", 3.4)),
        *(("mnist-cnn", "mlx", 1.4), ("fashion-cnn", "mlx", 1.2)),
    ):
        pair = ",".join(ids[workload, framework, recipe] for recipe in ("naive", "pipeline"))
        assert get(imported, f"/compare?ids={pair}")["common_cells"] == 0
        (row,) = get(imported, f"/compare?ids={pair}&across=batch_size")["rows"]
        assert [cell["batch_size"] for cell in row["cells"]] == [64, 256]
        assert all(cell["published"] for cell in row["cells"])
        assert round(row["cells"][1]["speed_up"], 1) == ratio
        assert row["cells"][1]["verdict_kind"] == "too_few_runs"
        # One published number has no range.
        for name in ("samples_per_second", "speed_up"):
            assert row["cells"][1][f"{name}_low"] is row["cells"][1][f"{name}_range_of"] is None


def test_a_note_is_once_on_a_page(imported: TestClient) -> None:
    page = unescape(imported.get(f"/hardware/{I7}").text)
    copied = [row for row in get(imported, "/published") if row["id"] in page]
    assert len(copied) > 1
    for note in {row["note"] for row in copied}:
        assert page.count(note) == 1, note


def test_they_never_meet_measured_ones(imported: TestClient, database_url: str) -> None:
    post = Poster(imported)
    post.enroll()
    cell = results.make_cell(data="real")
    post.made(cell=cell, measurement=results.make_measurement(cell, block_count=1_008))
    post.baseline("intel-core-i7-8700")
    rows = get(imported, "/leaderboard?workload=mnist-cnn&framework=tensorflow&device=cpu")["rows"]
    names = {row["hardware"]: row for row in rows}
    measured, copied = (names["Intel Core i7-8700"], names["Intel Core i7-8700 (published)"])
    assert (measured["samples_per_second"], measured["rank"]) == (pytest.approx(64_000), 1)
    assert (copied["samples_per_second"], copied["rank"]) == (pytest.approx(600_000 / 136), None)
    # Nobody published a spread: it is unknown, and not none at all.
    assert (copied["spread"], copied["spread_between"]) == (None, None)
    assert measured["spread_between"] == "blocks"
    assert measured["speed_up"] == 1
    assert copied["speed_up"] == pytest.approx(600_000 / 136 / 64_000)
    trusted = get(imported, "/leaderboard?workload=mnist-cnn&trust_level=1")["rows"]
    assert [row["published"] for row in trusted] == [False]
    assert get(imported, f"/compare?ids=intel-core-i7-8700,{I7}")["common_cells"] == 1
    assert get(imported, "/hardware")["hardware"][0]["slug"] == "intel-core-i7-8700"
    assert get(imported, f"/hardware/{I7}")["published"]
    assert get(imported, f"/hardware/{I7}")["score"]["covered"] == 1
    assert imported.get("/?workload=mnist-cnn").text.count("published figure") >= 1
    assert imported.get(f"/compare?ids={I7}&ids=intel-core-i7-8700").status_code == 200
    again = CliRunner().invoke(cli, ["import-published", "--database-url", database_url])
    assert "imported 0 published figures; 36 were there already" in again.output


def test_the_operator_chooses_the_baseline(imported: TestClient, application: FastAPI) -> None:
    """Else the one measured on most boards, once two owners back it; before, a published one."""

    def baseline(limit: int) -> Any:
        boards = get(imported, f"/leaderboard?limit={limit}")  # a new address is not cached
        return {one["hardware_slug"] for one in boards["baselines"]} - {None}

    (published,) = baseline(1)
    assert published.startswith("published-")
    post = Poster(imported)
    post.enroll(results.private_key())
    fast = results.make_machine("Intel Core i7-9700", seed=2)
    for workload in ("mnist-cnn", "fashion-mlp"):
        post.made(cell=results.make_cell(workload), machine=fast, step_ns=500_000)
    post.made(cell=results.make_cell("mnist-cnn"), step_ns=1_000_000)
    assert baseline(2) == {published}
    score = get(imported, "/hardware/intel-core-i7-9700")["score"]
    # A published figure is one number, so a score against it has no range.
    assert (score["baseline_slug"], score["value_low"]) == (published, None)
    assert score["value"] > 0
    other = results.private_key(2)
    post.enroll(other)
    post.made(key=other, cell=results.make_cell("mnist-cnn"), machine=fast, step_ns=500_000)
    boards = get(imported, "/leaderboard?limit=4")["baselines"]
    found = {one["workload"]: one["hardware_slug"] for one in boards if one["hardware_slug"]}
    assert found == {"mnist-cnn": "intel-core-i7-9700"}
    assert get(imported, "/hardware/intel-core-i7-8700")["score"]["covered"] == 1
    application.state.settings = Settings(baseline="intel-core-i7-8700")
    assert baseline(3) == {"intel-core-i7-8700"}
    score = get(imported, "/hardware/intel-core-i7-9700")["score"]
    assert (score["value"], score["covered"]) == (pytest.approx(2), 1)
    assert "of <bdi>Intel Core i7-8700</bdi>" in imported.get("/hardware/intel-core-i7-9700").text
