"""Rows of a board sorted by a column, and families of hardware: ranks stay."""

import json
import re
from itertools import product
from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.client import Poster, get, pages

from bench_protocol.catalogue.matrix import Device
from bench_server.answers.families import FAMILIES, contains

GROUPS = ("hardware", "setup", "machine")
CUDA, METAL, CPU = Device(kind="cuda"), Device(kind="metal"), Device(kind="cpu")
M2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
RTX = results.make_machine("AMD Ryzen 9", ("cuda", "NVIDIA GeForce RTX 4090", None), seed=8)
H200 = results.make_machine("AMD EPYC 9654 96-Core Processor", ("cuda", "NVIDIA H200", None))
# Rows are sorted in Python; tests/server/test_api.py has the queries of a board.
pytestmark = pytest.mark.sqlite
NAMES = {
    "Apple M2 Max (30-core GPU)": "apple-m",
    "Apple M10 (10-core CPU)": "apple-m",
    "NVIDIA GeForce GTX 1080 Ti": "geforce",
    "NVIDIA A100-SXM4-80GB": "data-centre",
    "NVIDIA H20": "data-centre",
    "NVIDIA T4": "data-centre",
    "NVIDIA Tesla V100-SXM2-16GB": "data-centre",
    "NVIDIA L40S": "data-centre",
    "AMD Instinct MI300X": "data-centre",
    "NVIDIA T400 4GB": "workstation",
    "NVIDIA RTX A6000": "workstation",
    "NVIDIA Quadro P2000": "workstation",
    "AMD Radeon RX 7900 XTX": "radeon",
}


@pytest.fixture
def filled(post: Poster) -> Poster:
    post.baseline("apple-m2-max-12-core-cpu")
    for machine, device, step_ns in (
        *((M2, METAL, 900_000), (RTX, CUDA, 280_000)),
        *((H200, CUDA, 200_000), (M2, CPU, 2_000_000)),
    ):
        post.made(cell=results.make_cell(device=device), machine=machine, step_ns=step_ns)
    return post


def rows(post: Poster, **query: str) -> list[dict[str, Any]]:
    answer = post.http.get("/api/v1/leaderboard", params={"workload": "mnist-cnn"} | query)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["rows"])


def ranks(post: Poster, **query: str) -> list[int]:
    return [row["rank"] for row in rows(post, **query)]


def test_a_sorted_board_keeps_its_ranks_and_rows_without_a_value_are_last(filled: Poster) -> None:
    """The RTX 4090 has a price at launch; the M2 Max no memory that its maker states for each."""
    in_order = [1, 2, 3, 4]
    assert ranks(filled) == ranks(filled, sort="-hardware") == in_order
    assert ranks(filled, sort="hardware") == in_order[::-1]
    assert ranks(filled, sort="accuracy") == in_order  # none has one: by speed
    for field in (
        *("samples_per_second", "epoch_seconds", "speed_up", "price", "memory_bytes"),
        *("trust_level", "newest_at", "spread"),
    ):
        for sign in ("", "-"):
            values = [row[field] for row in rows(filled, sort=f"{sign}{field}")]
            there = sorted((value for value in values if value is not None), reverse=bool(sign))
            assert values == there + [None] * (4 - len(there)), field
            assert there
    first = rows(filled, sort="price")[0]
    assert (first["price"], first["price_currency"]) == (1599, "USD")
    page = filled.http.get("/?workload=mnist-cnn&sort=price").text
    assert re.search(r'data-label="Price"><span class="figure">1,599', page)
    assert 'data-label="Price"' not in filled.http.get("/?workload=mnist-cnn").text


def test_pages_and_export_have_the_same_order(filled: Poster) -> None:
    for group, sort in product(GROUPS, ("-hardware", "newest_at", "mfu", "price")):
        whole = rows(filled, sort=sort, group=group)
        assert len(whole) == 4
        query = f"workload=mnist-cnn&sort={sort}&group={group}&limit=1"
        found = pages(filled.http, f"/leaderboard?{query}")
        assert [row for page in found for row in page["rows"]] == whole
        lines = filled.http.get(f"/api/v1/leaderboard.jsonl?{query}").text.splitlines()
        order = [row["hardware"] for row in whole]
        assert [json.loads(line)["hardware"] for line in lines] == order


def test_unknown_sorts_and_families_are_refused_with_what_there_is(filled: Poster) -> None:
    board = "/api/v1/leaderboard?workload=mnist-cnn"
    for query, there in (
        *(("sort=nope", "samples_per_second"), ("sort=--spread", "trust_level")),
        ("family=nope", "data-centre"),
    ):
        answer = filled.http.get(f"{board}&{query}")
        assert (answer.status_code, answer.json()["field"]) == (422, query.partition("=")[0])
        assert there in answer.json()["detail"]
    assert filled.http.get("/api/v1/results?family=nope").status_code == 422
    cursor = filled.http.get(f"{board}&sort=hardware&limit=1").json()["next_cursor"]
    assert filled.http.get(f"{board}&sort=spread&cursor={cursor}").status_code == 422


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_of_one_family(name: str) -> None:
    device = "metal" if name.startswith("Apple") else "cuda"
    assert [one for one in FAMILIES if contains(one, name, device)] == [NAMES[name], "gpu"]
    assert contains("cpu", name, "cpu")


def test_a_family_is_a_search(filled: Poster) -> None:
    apple = ["Apple M2 Max (30-core GPU)", "Apple M2 Max (12-core CPU)"]
    nvidia = ["NVIDIA H200", "NVIDIA GeForce RTX 4090"]
    of_family = dict.fromkeys(FAMILIES, apple[:0]) | {
        "apple-m": apple,
        "geforce": nvidia[1:],
        "data-centre": nvidia[:1],
        "gpu": [*nvidia, *apple[:1]],
        "cpu": apple[1:],
    }
    for (family, names), group in product(of_family.items(), GROUPS):
        found = rows(filled, family=family, group=group)
        assert [row["hardware"] for row in found] == names, (family, group)
    assert (
        ranks(filled, family="apple-m") == ranks(filled, family="apple-m", group="setup") == [3, 4]
    )
    assert ranks(filled, family="apple-m", group="machine") == [None, None]
    (row,) = get(filled.http, "/results?family=geforce")["results"]
    assert row["hardware"] == nvidia[1]
    every, apples = (
        get(filled.http, f"/leaderboard?include=scores{more}")["scores"]
        for more in ("", "&family=apple-m")
    )
    assert {one["hardware_slug"].split("-")[0] for one in apples} <= {"apple"}
    assert len(apples) < len(every)


HEADINGS = {
    "workload=mnist-cnn": "mnist-cnn: NVIDIA H200 is fastest, 320,000 samples/s",
    "group=setup": "NVIDIA H200 trains mnist-cnn fastest, measured by one owner",
    "workload=mnist-cnn&family=cpu": "mnist-cnn, CPUs: Apple M2 Max (12-core CPU) is fastest, "
    "32,000 samples/s",
    "workload=mnist-cnn&family=radeon": "Radeon: no ranked results yet",
    "family=radeon": "Radeon: no ranked results yet",
    "workload=fashion-lstm": "Who trains fashion-lstm fastest?",
    "workload=mnist-cnn&q=4090": "NVIDIA GeForce RTX 4090 is 2nd of 4 on mnist-cnn",
    "workload=mnist-cnn&q=m2&group=setup": "Apple M2 Max (30-core GPU), tensorflow naive, is 3rd "
    "of 4 on mnist-cnn",
    "workload=mnist-cnn&q=radeon": "No ranked hardware matches the search",
    "q=m2&group=machine": "Machines of the hardware that is searched for",
    "workload=mnist-cnn&group=machine": "Machines that train mnist-cnn",
    "group=machine&family=radeon": "Radeon: no ranked results yet",
    "group=machine&workload=mnist-cnn&device=cuda": "On CUDA: machines that train mnist-cnn",
}


def test_the_heading_is_the_finding(filled: Poster) -> None:
    for query, heading in HEADINGS.items():
        (found,) = re.findall("<h1>(.*?)</h1>", filled.http.get(f"/?{query}").text)
        assert re.sub("<[^>]+>", "", found) == heading
