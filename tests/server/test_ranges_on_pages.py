"""Ranges in answers and on pages, of a young site: one owner and one run of each hardware."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.client import Poster, get

from bench_protocol.catalogue.matrix import Device

MAC = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=1)
BOX = results.make_machine("AMD Ryzen 9 7950X", ("cuda", "NVIDIA GeForce RTX 4090", None), seed=2)
GPU, RTX, CPU = "apple-m2-max-30-core-gpu", "nvidia-geforce-rtx-4090", "apple-m2-max-12-core-cpu"
ASSUMES = "between repeats; assumes that machines of a model differ by 5 %"
pytestmark = pytest.mark.sqlite


@pytest.fixture
def young(post: Poster) -> Poster:
    """Two machines, one of them with its CPU, two frameworks and two batch sizes."""
    post.baseline(GPU)
    metal, cuda, cpu = (Device(kind=kind) for kind in ("metal", "cuda", "cpu"))
    for machine, framework, device, step_ns in (
        (MAC, "tensorflow", metal, 1_000_000),
        (MAC, "mlx", metal, 700_000),
        (MAC, "mlx", cpu, 2_000_000),
        (BOX, "torch", cuda, 300_000),
    ):
        for batch_size in (64, 128):
            cell = results.make_cell(framework=framework, device=device, batch_size=batch_size)
            for repeat in (1, 2, 3):
                own = {"run_id": f"{1:032x}", "repeat": repeat}
                post.made(machine=machine, cell=cell, step_ns=step_ns + 9_000 * repeat, **own)
    return post


def objects(answer: Any) -> Iterator[dict[str, Any]]:
    if isinstance(answer, dict):
        yield answer
    for value in answer.values() if isinstance(answer, dict) else answer:
        if isinstance(value, (dict, list)):
            yield from objects(value)


def test_every_figure_and_speed_up_has_a_range(young: Poster) -> None:
    boards = ("", "?group=setup", "?group=machine")
    for path in (
        *(f"/leaderboard{group}" for group in boards),
        *(f"/compare?ids={GPU},{RTX}", f"/hardware/{RTX}"),
        *("/frameworks", "/batch-size", "/cpu-vs-gpu", "/trends"),
    ):
        seen = 0
        for one in objects(get(young.http, path)):
            for name in ("samples_per_second", "speed_up"):
                if one.get(name) is None or f"{name}_low" not in one or one[name] == 1:
                    continue
                assert one[f"{name}_low"] < one[name] < one[f"{name}_high"], (path, one)
                assert one[f"{name}_range_of"] in ("repeats", "own_repeats")
                seen += 1
        assert seen, path
    # On one machine it is the machine's own.
    (table, *_) = get(young.http, f"/frameworks?hardware={GPU}")["tables"]
    ranges = {row["best"]["speed_up_range_of"] for row in table["rows"] if row["best"]}
    assert ranges == {"own_repeats"}


def test_every_page_draws_ranges_and_says_what_they_contain(young: Poster) -> None:
    home = " ".join(young.http.get("/").text.split())  # few words, and a link to them
    assert 'class="whisker"' in home
    assert 'lines are <a href="/verdicts#ranges">ranges</a>' in home
    assert ASSUMES not in home
    for path, drawn, labelled in (
        ("/?workload=mnist-cnn", "range", True),
        (f"/compare?ids={GPU},{RTX}", "whisker", True),
        (f"/frameworks?hardware={GPU}", "range", True),
        (f"/batch-size?hardware={GPU}", "whisker", True),
        ("/cpu-vs-gpu", "whisker", True),
        (f"/hardware/{RTX}", "range", False),
    ):
        page = " ".join(young.http.get(path).text.split())
        assert f'class="{drawn}"' in page, path
        assert (ASSUMES in page) == labelled, path
        assert "A range is the 95&nbsp;% interval of three or more owners" in page, path
        assert not re.search("not enough data|no verdict yet:", page), path
        if path.startswith(("/compare", "/frameworks", "/batch-size", "/cpu")):
            assert len(re.findall("No verdict yet on", page)) == 1, path
        if path == "/cpu-vs-gpu":
            few = "No verdict yet on 2 of 2 comparisons (1 run each): it needs three values"
            assert few in page


@pytest.mark.parametrize("ids", [f"{GPU},{RTX}", f"{RTX},{GPU}"])
def test_the_range_of_a_comparison_is_that_of_its_heading(young: Poster, ids: str) -> None:
    """The heading has the faster thing first, in whichever order they are compared."""
    text = re.sub("<[^>]+>", "", young.http.get(f"/compare?ids={ids}").text)
    heading = re.findall("RTX 4090 trains about ([0-9.]+) times as fast", text)
    ((low, high),) = re.findall("this speed-up is ([0-9.]+) to ([0-9.]+)", text)
    assert 1 < float(low) < float(heading[0]) < float(high)


def test_a_machine_is_shown_with_its_own_range(young: Poster) -> None:
    (machine,) = (
        one for one in get(young.http, "/machines")["machines"] if CPU in str(one["hardware"])
    )
    page = young.http.get(f"/machines/{machine['machine_id']}").text
    assert 'title="between repeats on the same machine"' in page
    assert ASSUMES not in page
    place, *_ = get(young.http, f"/machines/{machine['machine_id']}")["places"]
    assert place["samples_per_second_range_of"] == "own_repeats"


def test_a_slow_processor_meets_a_fast_gpu(post: Poster) -> None:
    """Its timing is long and that of the GPU short."""
    cpu = results.make_cell(framework="mlx", device=Device(kind="cpu"))
    long = results.make_measurement(cpu, 2_000_000, block_count=1_008)
    post.made(machine=MAC, cell=cpu, measurement=long)
    metal = results.make_cell(framework="mlx", device=Device(kind="metal"))
    post.made(machine=MAC, cell=metal, step_ns=100_000)
    answer = get(post.http, f"/compare?ids={CPU},{GPU}")
    assert (answer["common_cells"], answer["all_cells"]) == (1, 1)
    (row,) = answer["rows"]
    assert [cell["timing"] for cell in row["cells"]] == ["long", "short"]
    gpu = row["cells"][1]
    assert (gpu["mixed_timing"], gpu["mixed_data"]) == (True, False)
    assert gpu["speed_up"] / gpu["speed_up_low"] > 1.16
    assert gpu["speed_up"] / gpu["speed_up_low"] > 1.15 * gpu["speed_up_high"] / gpu["speed_up"]
    (pair,) = get(post.http, "/cpu-vs-gpu")["rows"]
    assert (pair["cpu"]["timing"], pair["gpu"]["timing"]) == ("long", "short")
    assert pair["compared"]["mixed_timing"]
    for path in (f"/compare?ids={CPU},{GPU}", "/cpu-vs-gpu"):
        page = post.http.get(path).text
        assert "short against long" in page
        assert "not measured" not in page
