"""Other machines beside a report's own bars: published figures, and those ranked next to it."""

import httpx
import pytest
from tests.fakes.results import make_cell, make_result

from bench_agent.output.report import page
from bench_agent.output.report.charts import charts_of
from bench_agent.output.report.figures import report_of
from bench_agent.output.report.neighbours import (
    Around,
    Neighbour,
    around_published,
    around_ranked,
    beside,
    published_beside,
)
from bench_agent.remote.client import Client, ServerRefused
from bench_agent.remote.rank import MachineRank, next_to


def test_the_nearest_published_figure_of_the_same_set_up_stands_beside_the_own_bars() -> None:
    """At 64,000 samples/s MLX's fastest is nearer, but of another framework."""
    report = report_of([make_result()])
    (other,) = published_beside(report)
    assert other.label == "NVIDIA GeForce RTX 4070 SUPER, tensorflow naive, published"
    assert other.samples_per_second == pytest.approx(60_000 * 10 / 44)
    around = around_published(report)
    (group,) = (beside(one, around.neighbours) for one in charts_of(report).fastest)
    assert [bar.share for bar in group.bars] == [1.0, pytest.approx(60_000 / 4.4 / 64_000)]
    html = page.html(report, around)
    assert other.label in html
    assert "unsigned" in html
    assert "published" not in page.html(report)


def test_a_faster_neighbour_shortens_the_own_bars() -> None:
    report = report_of([make_result()])
    faster = Neighbour("mnist-cnn", 64, "faster", 128_000.0)
    groups = charts_of(report).fastest
    ((first, own),) = (beside(one, (faster,)).bars for one in groups)
    assert (first.label, first.share) == ("faster", 1.0)
    assert own.share == pytest.approx(0.5)
    other_batch = Neighbour("mnist-cnn", 128, "other batch", 1.0)
    assert tuple(beside(one, (other_batch,)) for one in groups) == groups


def test_workloads_without_a_published_figure_have_no_such_bar() -> None:
    assert around_published(report_of([make_result(cell=make_cell("fashion-lstm"))])) == Around()


def board(request: httpx.Request) -> httpx.Response:
    if "/machines/" in request.url.path:
        return httpx.Response(200, json={"places": [{"workload": "mnist-cnn", "rank": 2}]})
    assert request.url.params["workload"] == "mnist-cnn"
    setup = {"framework": "jax", "recipe": "tuned", "batch_size": 64, "workload": "mnist-cnn"}
    rows = [
        {**setup, "rank": rank, "hardware": name, "samples_per_second": 100_000.0 / rank}
        for rank, name in ((1, "H200"), (2, "own"), (3, "T4"), (4, "CPU"))
    ]
    return httpx.Response(200, json={"rows": rows})


def test_the_hardware_ranked_above_and_below_stands_beside_the_own_bars() -> None:
    client = Client("http://server.test", None, transport=httpx.MockTransport(board))
    rows = next_to(client, "0f1e", ["mnist-cnn", "fashion-mlp"])
    assert [(row.rank, row.hardware) for row in rows] == [(1, "H200"), (3, "T4")]
    around = around_ranked(rows, MachineRank("http://server.test/machines/0f1e", "2nd of 4"))
    assert [bar.label for bar in around.neighbours] == [
        "1st: H200, jax tuned",
        "3rd: T4, jax tuned",
    ]
    drawn = page.html(report_of([make_result()]), around)
    assert "This hardware is 2nd of 4." in drawn
    assert "1st: H200, jax tuned" in drawn


def test_a_server_that_refuses_is_not_one_without_neighbours() -> None:
    def fails(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, json={"code": "not_found", "detail": "no such machine"})

    client = Client("http://server.test", None, transport=httpx.MockTransport(fails))
    with pytest.raises(ServerRefused, match="no such machine"):
        next_to(client, "0f1e", ["mnist-cnn"])
