"""The API: boards, comparisons, pages of results, OpenAPI examples."""

import html
import json
import re
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster, get, pages

from bench_protocol.catalogue.catalogue import CATALOGUE
from bench_protocol.catalogue.matrix import TUNED_ON_CUDA, Device
from bench_server.answers import cursors
from bench_server.web.every_answer import SECURITY_HEADERS

M2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
METAL = Device(kind="metal")
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
M2_MAX, I7 = "apple-m2-max-30-core-gpu", "intel-core-i7-8700"


def test_workloads(http: TestClient) -> None:
    fields = ("name", "digest", "parameter_count", "training_flops_per_sample")
    shown = [[one[name] for name in fields] for one in get(http, "/workloads")]
    assert shown == [[getattr(one, name) for name in fields] for one in CATALOGUE]


def test_board(post: Poster) -> None:
    post.baseline(I7)
    for repeat in (1, 2, 3):
        post.made(run_id="c" * 32, repeat=repeat, step_ns=1_000_000 * repeat)
    fast = post.made(cell=results.make_cell(device=METAL), machine=M2, step_ns=100_000)
    post.made(cell=results.make_cell(device=METAL, recipe="tuned"), machine=M2, step_ns=50_000)
    post.made(cell=results.make_cell(batch_size=256), step_ns=1_000)
    answer = get(post.http, "/leaderboard?workload=mnist-cnn&include=others")
    (baseline,) = answer["baselines"]
    assert baseline.items() >= {"hardware_slug": I7, "setup": "tensorflow naive"}.items()
    first, second = answer["rows"]
    m2_max = {"hardware": "Apple M2 Max (30-core GPU)", "recipe": "tuned", "rank": 1, "setups": 2}
    assert first.items() >= m2_max.items()
    assert first["speed_up"] == pytest.approx(40)
    assert [(o["recipe"], o["result_id"]) for o in first["others"]] == [("naive", fast)]
    assert second["samples_per_second"] == pytest.approx(32_000)
    assert second["epoch_seconds"] == pytest.approx(937 * 64 / 32_000)
    counts = {"rank": 2, "repeats": 3, "runs": 1, "machines": 1, "owners": 1, "setups": 1}
    assert second.items() >= (counts | {"backing": "one", "data": "generated"}).items()


FILTERS = {
    "device=metal": [M2_MAX],
    "device=cpu": [I7],
    "framework=mlx": [],
    "framework=tensorflow&recipe=naive": [M2_MAX, I7],
    "q=m2": [M2_MAX],
    "q=%25": [],
    f"hardware={I7}": [I7],
    "batch_size=256": [],
    "precision=tf32": [],
    "data=real": [],
    "data=generated&precision=any&batch_size=any&workload=&group=setup": [M2_MAX, I7],
}


def test_board_filters(post: Poster) -> None:
    post.made()
    post.made(cell=results.make_cell(device=METAL), machine=M2, step_ns=100_000)
    for query, hardware in FILTERS.items():
        rows = get(post.http, f"/leaderboard?{query}")["rows"]
        assert [row["hardware_slug"] for row in rows] == hardware, query
    rows = get(post.http, f"/leaderboard?baseline={M2_MAX}")["rows"]
    assert [row["speed_up"] for row in rows] == pytest.approx([1, 0.1])


def test_compare(post: Poster) -> None:
    cell, metal = results.make_cell(), results.make_cell(device=METAL)
    for run in (1, 2, 3):
        run_id = f"{run:032x}"
        post.made(cell=cell, run_id=run_id, step_ns=1_000_000 + run)
        last = post.made(cell=metal, machine=M2, run_id=run_id, step_ns=500_000 + run)
    post.made(cell=results.make_cell("fashion-mlp"))
    answer = get(post.http, f"/compare?ids={I7},{M2_MAX},{last}")
    assert [thing["kind"] for thing in answer["things"]] == ["hardware", "hardware", "result"]
    assert (answer["common_cells"], answer["all_cells"]) == (1, 2)
    common, rest = answer["rows"]
    assert (common["common"], rest["common"], rest["cells"][1:]) == (True, False, [None, None])
    _, hardware, result = common["cells"]
    assert hardware["speed_up"] == pytest.approx(2, rel=1e-4)
    assert hardware["verdict"].startswith("2.00 times as fast on these two machines (95 % CI ")
    assert (hardware["n"], hardware["n_other"], hardware["n_of"]) == (3, 3, "runs")
    assert hardware["scope"] == answer["things"][1]["scope"] == "machines"
    assert (answer["comparisons"], hardware["adjusted_p_value"]) == (1, hardware["p_value"])
    assert result["verdict_kind"] == "too_few_runs"
    assert answer["things"][1]["speed_up"] == pytest.approx(2, rel=1e-4)


def test_page_sizes_that_differ_are_seen(post: Poster) -> None:
    sizes = {4096: "4.0 KiB", 65536: "64.0 KiB"}
    ids = [post.made(machine=results.make_machine(page_bytes=size)) for size in sizes]
    exported = post.http.get("/api/v1/export.jsonl").text.splitlines()
    assert {json.loads(line)["page_bytes"] for line in exported} == sizes.keys()
    things = get(post.http, f"/compare?ids={','.join(ids)}")["things"]
    for one, thing, (size, words) in zip(ids, things, sizes.items(), strict=True):
        assert f"result {one[:8]}, " in thing["name"]
        assert thing["name"].endswith(f", pages of {words}")
        assert get(post.http, f"/results/{one}")["page_bytes"] == size
        assert words in post.http.get(f"/results/{one}").text
    assert "pages of" not in get(post.http, f"/compare?ids={I7},{ids[0]}")["things"][1]["name"]


def test_compare_set_ups_of_one_machine(post: Poster) -> None:
    ids = []
    for number, (framework, recipe, runs) in enumerate(
        [("tensorflow", "naive", 3), ("tensorflow", "tuned", 3), ("mlx", "naive", 2)], 1
    ):
        cell = results.make_cell(framework=framework, recipe=recipe)
        for run in range(1, runs + 1):
            last = post.made(cell=cell, run_id=f"{run:032x}", step_ns=1_000_000 // number + run)
        ids.append(last)
    answer = get(post.http, f"/compare?ids={','.join(f'setup-{one}' for one in ids)}")
    assert (answer["common_cells"], answer["all_cells"]) == (1, 1)
    assert [thing["name"] for thing in answer["things"]] == [
        "Intel Core i7-8700, tensorflow naive",
        "Intel Core i7-8700, tensorflow tuned",
        "Intel Core i7-8700, mlx naive",
    ]
    (row,) = answer["rows"]
    assert (row["framework"], row["recipe"], row["batch_size"]) == (None, None, 64)
    _, tuned, mlx = row["cells"]
    assert tuned["verdict"].startswith("2.00 times as fast on this machine (95 % CI ")
    assert mlx["verdict"] == "no verdict yet: 2 and 3 runs, needs 3 a side"
    single = get(post.http, f"/compare?ids={','.join(ids)}")
    (row,) = single["rows"]
    assert row["cells"][1]["verdict"] == "no verdict yet: 1 and 1 runs, needs 3 a side"
    assert single["things"][0]["name"].startswith("Intel Core i7-8700, tensorflow naive, result ")
    assert get(post.http, f"/compare?ids={I7},{ids[0]}")["rows"][0]["framework"] == "tensorflow"
    # Set-ups that differ in more have it in their names.
    larger = post.made(cell=results.make_cell(batch_size=256))
    answer = get(post.http, f"/compare?ids=setup-{ids[0]},setup-{larger}")
    assert answer["common_cells"] == 0
    first, second = (thing["name"] for thing in answer["things"])
    assert "batch 64, generated data, on cpu" in first
    assert "batch 256" in second


def test_a_loop_that_we_could_not_measure_is_marked(post: Poster) -> None:
    for kind, recipe in (("cuda", "tuned"), ("cuda", "naive"), ("cpu", "tuned")):
        marked = (kind, recipe) == ("cuda", "tuned")
        cell = results.make_cell(recipe=recipe, device=Device(kind=kind))
        page = post.http.get(f"/results/{post.made(cell=cell)}").text
        assert (">an expert may be faster</span>" in page) is marked
        assert (TUNED_ON_CUDA in html.unescape(page)) is marked
    board = post.http.get("/?workload=mnist-cnn").text
    assert board.count(">an expert may be faster</span>") == 1  # among those without a rank
    cell = results.make_cell(framework="jax", recipe="tuned", device=Device(kind="cuda"))
    page = post.http.get(f"/results/{post.made(cell=cell)}").text
    assert "with JAX on CUDA was 0.64 to 1.07 times as fast as hand-written loops" in page


def test_unsteady_rows_are_marked_and_ranked(post: Poster) -> None:
    steady = post.made(machine=M2, step_ns=2_000_000)
    blocks = results.make_measurement(cell := results.make_cell()).blocks
    rough = blocks.model_copy(update={"durations_ns": (10_000_000, 13_000_000, 16_000_000) * 4})
    shaky = post.made(measurement=results.make_measurement(cell, blocks=rough))
    rows = get(post.http, "/leaderboard?workload=mnist-cnn")["rows"]
    assert [(row["result_id"], row["unsteady"]) for row in rows] == [(shaky, True), (steady, False)]
    for identity, marked in ((shaky, True), (steady, False)):
        assert get(post.http, f"/results/{identity}")["unsteady"] is marked
        assert (">unsteady</span>" in post.http.get(f"/results/{identity}").text) is marked
    assert post.http.get("/?workload=mnist-cnn").text.count(">unsteady</span>") == 1


def test_results_page_by_page_while_more_arrive(post: Poster) -> None:
    posted = [post.made() for _ in range(7)]
    seen: list[str] = []
    for page in pages(post.http, "/results?limit=3"):
        seen += [row["id"] for row in page["results"]]
        post.made()
    assert seen == posted[::-1]


def test_results_and_their_filters(post: Poster) -> None:
    result = results.make_result(run_id="e" * 32)
    made, failed, run = post.made(), post(results.make_failure()), post(result)
    for query, ids in {
        "status=failed": [failed],
        "ranked=false": [run, failed],
        "status=failed&ranked=true": [],
        f"run_id={'e' * 32}": [run],
        f"key_id={results.key_id(results.private_key())}": [run, failed, made],
        "workload=fashion-lstm": [],
    }.items():
        assert [one["id"] for one in get(post.http, f"/results?{query}")["results"]] == ids, query
    answer = get(post.http, f"/results/{run}")
    assert answer["result"] == result.model_dump(mode="json")
    assert answer["cell"] == result.cell.model_dump(mode="json")
    assert answer["samples_per_second"] == pytest.approx(64_000)
    assert (answer["epoch_seconds"], answer["trust_level"]) == (0.937, 1)


@ON_SQLITE
def test_the_description_is_complete(http: TestClient) -> None:
    document, page = http.get("/openapi.json").json(), http.get("/docs").text
    assert cursors.write("apple-m2-max-30-core-gpu") in page  # letter by letter
    for limits in ("integer, 1 to 200; default 50", "at most 100"):
        assert limits in page
    for path, methods in document["paths"].items():
        assert f"<code>{path}</code>" in page
        for method, operation in methods.items():
            assert re.fullmatch(r"[A-Z].{10,}", operation["summary"]), (method, path)
            bodies = operation.get("requestBody", {}).get("content", {})
            assert all(form["example"] for form in bodies.values()), path
            parameters = operation.get("parameters", ())
            assert all(one.get("description") for one in parameters), path
            examples = {(p["in"], p["name"]): p["schema"]["examples"] for p in parameters}
            if method == "get":
                check_examples(http, path, examples)


def check_examples(http: TestClient, path: str, examples: dict[tuple[str, str], list[Any]]) -> None:
    address = re.sub(r"{(\w+)}", lambda match: str(examples["path", match[1]][0]), path)
    asked = {name: values for (where, name), values in examples.items() if where == "query"}
    # A comparison needs its ids, and a board's cursor its workload.
    always = {name: asked[name][0] for name in ("ids", "workload") if name in asked}
    for name, values in asked.items():
        for value in values:
            answer = http.get(address, params=always | {name.replace("ID", "nvidia-h200"): value})
            detail = answer.json().get("detail", "") if answer.status_code == 422 else ""
            unknown = re.search(" no (hardware|owner)", detail)
            assert answer.status_code in (200, 404) or unknown, (path, name, answer.text)


@ON_SQLITE
def test_headers(http: TestClient) -> None:
    for address in ("/", "/api/v1/workloads", "/nothing", "/static/site.css"):
        headers = http.get(address).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_headers_of_an_unexpected_error(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.state, "store", None)
    http = TestClient(app, raise_server_exceptions=False)
    for accepts in ("text/html", "application/json"):
        answer = http.get("/readyz", headers={"Accept": accepts})
        assert answer.status_code == 500
        assert answer.headers.items() >= {k.lower(): v for k, v in SECURITY_HEADERS.items()}.items()
