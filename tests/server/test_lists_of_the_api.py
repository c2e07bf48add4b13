"""Lists of the API: links to the next page, and the interval of each rate."""

import csv
import io
import re
from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.statistics.comparison import LogSample, figure_interval

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def filled(post: Poster) -> Poster:
    for number, step_ns in enumerate((1_000_000, 1_010_000, 1_030_000), 1):
        post.made(step_ns=step_ns)
        made = results.make_machine(f"Intel(R) Core(TM) i7-{number}", seed=number + 5)
        post.made(machine=made, step_ns=2_000_000 + number)
    return post


def test_a_board_has_the_parts_that_are_asked_for(filled: Poster) -> None:
    """One row without them is less than 3 kB; it was 26."""
    board = "/api/v1/leaderboard?workload=mnist-cnn&limit=1"
    short = filled.http.get(board)
    assert len(short.content) < 3_000
    assert not {"scores", "unranked"} & short.json().keys()
    assert "others" not in short.json()["rows"][0]
    for part in ("scores", "unranked"):
        answer = filled.http.get(f"{board}&include={part}").json()
        assert answer == short.json() | {part: answer[part]}
    (row,) = filled.http.get(f"{board}&include=scores,others").json()["rows"]
    assert row.pop("others") == []
    assert [row] == short.json()["rows"]
    refused = filled.http.get(f"{board}&include=scores,rows").json()
    assert refused["field"] == "include"
    assert "no part 'rows'; there are others, scores, unranked" in refused["detail"]


def test_a_link_leads_to_the_next_page(filled: Poster) -> None:
    for path, rows, count in (
        *(("results?limit=2", "results", 6), ("leaderboard?workload=mnist-cnn&limit=3", "rows", 4)),
        *(("hardware?limit=3", "hardware", 4), ("machines?q=Core&limit=1", "machines", 4)),
        ("log/entries?limit=4", "records", 7),
    ):
        found: list[Any] = []
        address: str | None = f"/api/v1/{path}"
        while address:
            answer = filled.http.get(address).raise_for_status()
            found += answer.json()[rows]
            link = re.fullmatch('<(/api/v1/[^>]+)>; rel="next"', answer.headers.get("Link", ""))
            assert ("Link" in answer.headers) == (link is not None)
            address = link.group(1) if link else None
        assert len(found) == count
        answer = filled.http.get(f"/api/v1/{path}", headers={"Origin": "https://other.example"})
        assert "Link" in answer.headers["Access-Control-Expose-Headers"]


def test_each_rate_has_the_interval_of_its_median(filled: Poster) -> None:
    board = "/api/v1/leaderboard?workload=mnist-cnn&group=machine"
    row, *_ = filled.http.get(board).json()["rows"]
    rates = [64e9 / step_ns for step_ns in (1_000_000, 1_010_000, 1_030_000)]
    low, high = figure_interval(rates[1], LogSample.of(rates)) or (0.0, 0.0)
    assert row["samples_per_second"] == pytest.approx(rates[1])
    # Logarithms are stored to five digits.
    bounds = (row["samples_per_second_low"], row["samples_per_second_high"])
    assert bounds == pytest.approx((low, high), rel=1e-4)
    assert (row["n"], row["n_of"], row["samples_per_second_range_of"]) == (3, "runs", "runs")
    text = filled.http.get("/api/v1/leaderboard.csv?workload=mnist-cnn").text
    first, few, *_ = csv.DictReader(io.StringIO(text))
    assert float(first["samples_per_second_low"]) < low
    assert (few["n"], few["samples_per_second_range_of"]) == ("1", "repeats")


def test_an_interval_has_one_name(http: Any) -> None:
    """FIELD_low and FIELD_high bound FIELD; ``low`` and ``high`` alone would not say of what."""
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    for name, schema in schemas.items():
        fields = set(schema.get("properties", ()))
        assert not fields & {"low", "high", "n_first", "n_a", "n_b", "epoch_ns"}, name
        bounded = {
            field.rpartition("_")[0] for field in fields if field.endswith(("_low", "_high"))
        }
        assert {f"{of}{end}" for of in bounded for end in ("", "_low", "_high")} <= fields, name
        if "speed_up" in fields and name != "MachineUpdate":  # of one machine: no interval
            assert "speed_up_low" in fields, name


def test_lists_without_ranked_results_do_not_say_that_nothing_was_measured(post: Poster) -> None:
    assert "No results yet." in post.http.get("/results").text
    post(results.make_failure())
    for name in ("hardware", "machines"):
        assert "No ranked results yet." in post.http.get(f"/{name}").text
    assert 'class="none"' not in post.http.get("/results").text
