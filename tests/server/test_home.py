"""The home page and what boards say once, without a browser."""

import html
import re
from typing import Any

import pytest
from markupsafe import escape
from tests.fakes import results
from tests.fakes.client import Poster
from typer.testing import CliRunner

from bench_protocol.catalogue.catalogue import CATALOGUE, SHORT_STEPS, workload_named
from bench_protocol.catalogue.matrix import Device
from bench_server.cli.main import main as cli
from bench_server.ranking.score import SCORED

M2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
AS_PAGE = {"accept": "text/html"}
H200 = results.make_machine("AMD EPYC 9654 96-Core Processor", ("cuda", "NVIDIA H200", None))


@pytest.fixture
def measured(post: Poster) -> Poster:
    post.baseline("apple-m2-max-12-core-cpu")
    for machine, kind, workload, step_ns in (
        *((M2, "metal", "mnist-cnn", 900_000), (H200, "cuda", "mnist-cnn", 200_000)),
        *((M2, "cpu", "mnist-cnn", 2_000_000), (M2, "metal", "fashion-mlp", 500_000)),
    ):
        device = Device(kind=kind)  # type: ignore[arg-type]
        post.made(cell=results.make_cell(workload, device=device), machine=machine, step_ns=step_ns)
    return post


def page(post: Poster, address: str) -> str:
    text = re.sub(r"\s+", " ", post.http.get(address).raise_for_status().text)
    return re.sub(r'<span class="whole">(.*?)</span>', r"\1", text)


def test_a_pill_says_what_its_size_is(measured: Poster) -> None:
    sizes = {one.parameter_count: one.size for one in CATALOGUE}
    assert {*sizes.values()} == {"small", "medium", "large"}
    for count, size in sizes.items():
        assert (count < 250_000, count >= 10_000_000) == (size == "small", size == "large")
    labels = "Small, under 250 k", "Medium, 250 k to 10 M", "Large, over 10 M"
    for address in ("/", "/?workload=mnist-cnn"):
        pills = page(measured, address).partition('id="workloads"')[2].partition("</nav>")[0]
        assert all(f">{label} weights</a>" in pills for label in labels), address


def test_home_says_of_each_model_what_is_trained(measured: Poster) -> None:
    """Models like another one, with short steps, have no pill unless one is chosen."""
    shown = page(measured, "/")
    assert "How fast does hardware train neural networks?" in shown
    pills, _, rest = shown.partition('id="workloads"')[2].partition("</nav>")
    for one in CATALOGUE:
        assert (f">{one.name}</a>" in pills) == (one.name not in SHORT_STEPS)
        assert f'href="/workloads/{one.name}">{one.name}</a>' in rest
        assert (f"</a>: {escape(one.summary)}</li>" in rest) == (one.name not in SHORT_STEPS)
    assert ">fashion-mlp</a></li>" in page(measured, "/?workload=fashion-mlp")


def test_a_size_chooses_boards_and_the_workloads_of_scores(measured: Poster) -> None:
    def found(query: str) -> tuple[set[str], int]:
        answer = measured.http.get(f"/api/v1/leaderboard?include=scores&{query}").json()
        terms = {one["score"]["terms"] for one in answer["scores"]}
        return {row["workload"] for row in answer["rows"]}, max(terms, default=0)

    small = sum(workload_named(name).size == "small" for name in SCORED)
    assert found("") == ({"mnist-cnn", "fashion-mlp"}, len(SCORED))
    assert found("size=small") == ({"mnist-cnn"}, small)
    assert found("size=medium") == ({"fashion-mlp"}, 0)
    assert measured.http.get("/api/v1/leaderboard?size=huge").status_code == 422
    both = measured.http.get("/api/v1/leaderboard?size=large&workload=mnist-cnn")
    assert (both.status_code, both.json()["field"]) == (422, "size")
    medium = page(measured, "/?size=medium")
    assert "Not measured yet" not in page(measured, "/?workload=fashion-mlp")
    assert 'href="/?workload=mnist-cnn"' in medium


def test_a_score_is_complete_when_all_scored_workloads_are_measured(measured: Poster) -> None:
    """Other workloads, however fast, change nothing."""

    def h200() -> dict[str, Any]:
        fresh = {"Cache-Control": "no-cache"}
        answer = measured.http.get("/api/v1/leaderboard?include=scores", headers=fresh).json()
        return next(one for one in answer["scores"] if one["hardware_slug"] == "nvidia-h200")

    for name in ("fashion-mlp", *SCORED[1:]):
        before = h200()
        assert (before["rank"], before["score"]["terms"]) == (None, len(SCORED))
        for machine, kind, step_ns in ((M2, "cpu", 5 * 10**9), (H200, "cuda", 5 * 10**8)):
            device = Device(kind=kind)  # type: ignore[arg-type]
            cell = results.make_cell(name, device=device)
            measured.made(cell=cell, machine=machine, step_ns=step_ns)
    assert before["score"]["missing"] == [SCORED[-1]]
    complete = h200()
    assert (complete["rank"], complete["score"]["missing"]) == (1, [])
    assert complete["score"]["value"] == pytest.approx(10)
    assert "in 1 of" not in page(measured, "/")


def test_home_rings_the_hardware_and_the_machine_that_are_named(measured: Poster) -> None:
    assert 'class="ringed"' not in page(measured, "/")
    home = page(measured, "/?q=h200")
    assert home.count('class="ringed"') == 1
    assert "◀ searched" in home
    assert "<h1>NVIDIA H200 trains 10.0 times as fast as" in home
    rows = measured.http.get("/api/v1/results?hardware=apple-m2-max-30-core-gpu").json()["results"]
    machine = rows[0]["machine_id"]
    for beginning in (machine, machine[:8]):
        home = page(measured, f"/?q={beginning}")
        assert home.count("◀ machine") == 2  # its GPU and its CPU
        assert f'href="/machines/{machine}"' in home
        assert "<h1>Apple M2 Max (30-core GPU) trains 2.22 times as fast as" in home
    assert "◀ you" not in home, "nobody knows whose it is"
    assert page(measured, "/?q=apple").count("◀ searched") == 2
    assert "No ranked hardware matches the search" in page(measured, "/?q=0123456789abcdef")


def test_beside_published_figures_alone_nothing_is_compared(
    post: Poster, database_url: str
) -> None:
    """A new site: one machine of one owner, whose figure is no baseline, and copied figures."""
    CliRunner().invoke(cli, ["import-published", "--database-url", database_url])
    post.made(machine=M2, cell=results.make_cell(device=Device(kind="metal")), step_ns=900_000)
    home = page(post, "/")
    rate = "Apple M2 Max (30-core GPU) trains mnist-cnn at 71,111 samples/s, measured by one owner"
    assert f"<h1>{rate}</h1>" in home
    assert "1 GPU or CPU, no figure with a second owner yet; 10 published, without ranges" in home
    assert "signed" not in home.partition("<footer")[0].partition("<main")[2]
    assert "Measured here: no figure with a second owner yet." in page(post, "/?group=setup")
    assert "<h1>Apple M2 Max (30-core GPU) trains" in page(post, "/?q=m2")


def test_every_page_has_the_search_in_its_header(measured: Poster) -> None:
    for address in ("/", "/?workload=mnist-cnn", "/trust", "/log", "/compare", "/hardware", "/no"):
        shown = re.sub(r"\s+", " ", measured.http.get(address, headers=AS_PAGE).text)
        header = shown.partition("<header")[2].partition("</header>")[0]
        assert header.count('<form method="get" action="/" role="search"') == 1, address
        assert header.count('name="q" value=""') == 1, address
    header = page(measured, "/?family=gpu&q=h200").partition("</header>")[0]
    assert '<input type="hidden" name="family" value="gpu">' in header
    assert 'name="q" value="h200"' in header


def test_home_has_switch_and_boxes_and_only_boards_with_results(measured: Poster) -> None:
    home = page(measured, "/")
    assert 'class="board"' not in home
    assert home.count('name="ids"') == 3
    cpus = page(measured, "/?family=cpu")
    assert 'aria-current="true">CPU</a>' in cpus
    assert "/hardware/nvidia-h200" not in cpus
    assert 'name="family" value="gpu"' in page(measured, "/?family=gpu")
    boards = page(measured, "/?group=setup")
    assert boards.count('class="board"') == 2
    assert boards.count("Not measured yet:") == 1
    assert "No ranked results yet" not in boards


def followed(post: Poster, address: str, link: str) -> str:
    found = re.search(rf'href="([^"]+)">{link}</a>', page(post, address))
    assert found
    return page(post, html.unescape(found[1]))


def test_a_board_says_once_what_its_rows_share(measured: Poster) -> None:
    """Rows of machines have no column of ranks; a filter by backing ranks rows again."""
    address = "/?workload=mnist-cnn"
    board = page(measured, address)
    table = board[board.index("<tbody") : board.index("</tbody>")]
    for words in ("Short timings", "All data is generated.", "Measured by one owner."):
        assert words in board, words
    for mark in (">short<", ">generated<", "untested loop", "level"):
        assert mark not in table, mark
    assert '<td role="cell" class="rank">1</td>' in table
    machines = followed(measured, address, "Every machine")
    assert '<td role="cell" class="rank">' not in machines
    assert 'aria-label="Rank"' not in machines
    confirmed = followed(measured, address, "Only confirmed")
    assert "<h1>Only confirmed: no ranked results yet</h1>" in confirmed
