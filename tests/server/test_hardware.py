"""Hardware, machines, a machine's history, and filters."""

import html
import json
import random
import re
from typing import Any
from urllib.parse import unquote

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster, get, pages

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.machine import Environment
from bench_protocol.payload.readings import Energy
from bench_server.db.environments import framework_version, version_key
from bench_server.settings import Settings

H200 = ("cuda", "NVIDIA H200", None)
CUDA = Device(kind="cuda")
SLUG, I7 = "nvidia-h200", "intel-core-i7-8700"


def machine(seed: int = 3, driver: str = "560.35", memory_gib: int = 64) -> Any:
    made = results.make_machine("AMD EPYC 9654 96-Core Processor", H200, seed=seed)
    gpus = (made.gpus[0].model_copy(update={"driver": driver}),)
    return made.model_copy(update={"gpus": gpus, "memory_bytes": memory_gib * 2**30})


def test_hardware_and_machines(post: Poster) -> None:
    post.baseline("intel-core-i7-8700")
    post.made()
    cell = results.make_cell(device=CUDA)
    for seed in (3, 4):
        post.made(cell=cell, machine=machine(seed), step_ns=90_000 + seed)
    listed = get(post.http, "/hardware")
    assert [row["slug"] for row in listed["hardware"]] == ["intel-core-i7-8700", SLUG]
    assert listed["hardware"][1]["machines"] == 2
    assert get(post.http, "/hardware?q=H2")["hardware"] == listed["hardware"][1:]
    hardware = get(post.http, f"/hardware/{SLUG}")
    assert (hardware["name"], len(hardware["figures"])) == ("NVIDIA H200", 1)
    assert hardware["figures"][0]["machines"] == 2
    assert hardware["figures"][0]["mfu"] == pytest.approx(
        get(post.http, "/workloads")[0]["training_flops_per_sample"]
        * hardware["figures"][0]["samples_per_second"]
        / 67e12
    )
    assert hardware["score"]["value"] == pytest.approx(1_000_000 / 90_003, rel=1e-3)
    assert (hardware["score"]["covered"], hardware["score"]["missing"]) == (1, [])
    machines = [row for page in pages(post.http, "/machines?limit=1") for row in page["machines"]]
    assert len(machines) == 3
    assert sorted(machines, key=lambda row: row["machine_id"]) == machines
    identity = next(row["machine_id"] for row in machines if SLUG in row["hardware"])
    answer = get(post.http, f"/machines/{identity}")
    assert answer["machine"]["gpus"][0]["driver"] == "560.35"
    assert answer["figures"][0]["machine_id"] == identity
    for address in ("/machines/0123456789abcdef", "/hardware/none"):
        assert post.http.get(f"/api/v1{address}").status_code == 404
    for address in ("/machines/%00", "/hardware/%00", "/machines?cursor=WyJcdTAwMDAiXQ"):
        assert post.http.get(f"/api/v1{address}").status_code == 422


NO_BASELINE = "there is no baseline with a figure at a default batch size in float32"
NOTHING_IN_COMMON = "<bdi>Intel Core i7-8700</bdi>, have no workload in common, at its default"


@pytest.mark.parametrize(
    ("of_baseline", "reason"),
    [
        ({}, NO_BASELINE),
        ({"cell": results.make_cell(batch_size=128)}, NO_BASELINE),
        ({"cell": results.make_cell("fashion-mlp")}, NOTHING_IN_COMMON),
    ],
)
def test_a_hardware_without_a_score_says_why(
    post: Poster, of_baseline: dict[str, Any], reason: str
) -> None:
    post.baseline("intel-core-i7-8700")
    if of_baseline:
        post.made(**of_baseline)
    post.made(cell=results.make_cell(device=CUDA), machine=machine())
    page = post.http.get(f"/hardware/{SLUG}").text
    assert "No score: " in page
    assert reason in page


def test_history_marks_what_a_driver_changed(post: Poster) -> None:
    """Sixteen runs of three repeats; the median of each is a point."""
    cell, noise = results.make_cell(device=CUDA), random.Random(1)
    for run in range(16):
        driver, step_ns = ("550.9", 100_000) if run < 9 else ("560.35", 80_000)
        of_run = step_ns * noise.gauss(1, 0.01)
        for repeat in (1, 2, 3):
            last = post.made(
                cell=cell,
                machine=machine(driver=driver),
                run_id=f"{run:032x}",
                repeat=repeat,
                step_ns=round(of_run * (1 + repeat / 1000)),
                clocks=results.clocks_from(run + 1, repeat),
            )
    identity = get(post.http, f"/results/{last}")["machine_id"]
    machine_history = get(post.http, f"/machines/{identity}/history?workload=mnist-cnn")
    points = machine_history["points"]
    assert [point["run_id"] for point in points] == [f"{run:032x}" for run in range(16)]
    for point in points:
        _, middle, slowest = point["repeats"]
        assert point["result_id"] == middle["result_id"]
        assert point["samples_per_second"] == pytest.approx(middle["samples_per_second"])
        assert slowest["samples_per_second"] < middle["samples_per_second"]
    (change,) = machine_history["changes"]
    assert change["run_id"] == points[9]["run_id"]
    assert change["result_id"] == points[9]["repeats"][0]["result_id"]
    assert change["speed_up"] == pytest.approx(1.25, rel=0.02)
    assert change["speed_up_low"] < change["speed_up"] < change["speed_up_high"]
    assert change["speed_up_high"] < 1.06 * change["speed_up_low"]
    assert change["changed"] == [
        {"name": "machine.gpus.0.driver", "before": "550.9", "after": "560.35"}
    ]
    post.made(cell=results.make_cell(device=CUDA, recipe="tuned"), machine=machine())
    refused = post.http.get(f"/api/v1/machines/{identity}/history?workload=mnist-cnn")
    assert refused.status_code == 422
    assert refused.json()["detail"] == "2 of this machine's 2 cells fit; a history is of one"
    assert post.http.get("/api/v1/machines/0123456789abcdef/history").status_code == 404


def test_versions_sort_as_versions() -> None:
    ordered = ["2.9", "2.9.1", "2.10.0rc1", "2.10.0rc2", "2.10", "2.10.1", "10.0"]
    keys = [version_key(version) for version in ordered]
    assert keys == sorted(keys, key=str)
    assert len(set(keys)) == len(ordered)
    assert version_key("2.10") == version_key("2.10.0") == version_key("2.10.0+cu124")
    assert version_key("Ubuntu 22.04.3 LTS") == version_key("22.04.3")
    assert version_key("unknown") is None
    assert version_key("9" * 60) is not None


@pytest.mark.parametrize(
    ("packages", "version"),
    [
        ({"tensorflow": "2.18.1", "tensorflow-metal": "1.2.0"}, "2.18.1"),
        ({"tensorflow-cpu": "2.21.0", "keras": "3.15.1"}, "2.21.0"),
        ({"tensorflow-metal": "1.2.0"}, None),
        ({}, None),
    ],
)
def test_a_framework_has_its_version_under_any_wheels_name(
    packages: dict[str, str], version: str | None
) -> None:
    environment = Environment(python="3.11.7", packages=packages, libraries={}, settings={})
    cell = results.make_cell(framework="tensorflow")
    made = results.make_result(cell=cell, environment=environment)
    assert framework_version(made) == version


@pytest.mark.parametrize(
    ("where", "recipes"),
    [
        (["driver>=560"], ["tuned"]),
        (["driver<560.35"], ["naive"]),
        (["framework_version>=2.9", "framework_version<2.18"], ["naive"]),
        (["framework_version>2.9", "memory_bytes>=68719476736"], ["naive", "tuned"]),
        (["os=macos"], []),
        (["os!=macos", "python=3.11.7"], ["naive", "tuned"]),
        (["cores>6"], []),
    ],
)
@pytest.mark.parametrize("group", ["hardware", "machine", "setup"])
def test_attribute_filters(post: Poster, where: list[str], recipes: list[str], group: str) -> None:
    for recipe, version, driver in (("naive", "2.10.1", "550.120"), ("tuned", "2.18.1", "560.35")):
        environment = Environment(python="3.11.7", packages={"tensorflow": version})
        cell = results.make_cell(device=CUDA, recipe=recipe)
        post.made(cell=cell, machine=machine(driver=driver), environment=environment)
    query = {"workload": "mnist-cnn", "where": where, "group": group, "include": "others"}
    answer = post.http.get("/api/v1/leaderboard", params=query)
    assert answer.status_code == 200, answer.text
    rows = answer.json()["rows"]
    recipes_shown = [row["recipe"] for row in rows] + [
        o["recipe"] for row in rows for o in row["others"]
    ]
    assert sorted(recipes_shown) == recipes
    listed = post.http.get("/api/v1/results", params={"where": where}).json()["results"]
    assert sorted(row["recipe"] for row in listed) == recipes


@pytest.mark.parametrize(
    "where", ["driver", "colour=red", "memory_bytes>=big", "driver>new", "os>a"]
)
def test_conditions_that_cannot_be_asked(http: TestClient, where: str) -> None:
    answer = http.get("/api/v1/leaderboard", params={"where": where})
    assert answer.status_code == 422
    assert answer.json()["field"] == "where"


def test_sorting_and_grouping(post: Poster) -> None:
    """One slow with low energy, one fast with high energy, one without measured energy."""
    for seed, step_ns, millijoules in (
        (1, 2_000_000, 10_000),
        (2, 1_000_000, 90_000),
        (3, 1_500_000, 0),
    ):
        made = results.make_machine(f"Intel(R) Core(TM) i{seed * 2 + 1}-8700", seed=seed)
        energy = Energy(source="rapl", scope="cpu_package", energy_mj=millijoules, window_ns=10**9)
        cell = results.make_cell()
        measurement = results.make_measurement(
            cell, step_ns, **({"energy": energy} if millijoules else {})
        )
        post.made(cell=cell, machine=made, measurement=measurement)

    def rows(**query: str) -> list[dict[str, Any]]:
        query = {"workload": "mnist-cnn", "group": "hardware"} | query
        answer = post.http.get("/api/v1/leaderboard", params=query)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["rows"])

    for group in ("hardware", "machine", "setup"):
        names = [row["hardware"] for row in rows(group=group, rank_by="throughput")]
        assert names == [f"Intel Core i{n}-8700" for n in (5, 7, 3)]
        frugal = rows(group=group, rank_by="energy")
        assert [row["hardware"] for row in frugal] == [f"Intel Core i{n}-8700" for n in (3, 5)]
        assert frugal[0]["joules_per_epoch"] == pytest.approx(10 * 2e-3 * 937)
        assert frugal[0]["samples_per_joule"] == pytest.approx(64 / (10 * 2e-3))
        assert rows(group=group, rank_by="accuracy") == rows(group=group, rank_by="mfu") == []
        assert len(rows(group=group, trust_level="1")) == 3
        assert rows(group=group, trust_level="4") == []


def test_energies_of_different_scopes_are_not_ranked_together(post: Poster) -> None:
    for seed, scope in ((1, "cpu_package"), (2, "soc"), (3, "cpu_package")):
        cell = results.make_cell()
        energy = Energy(source="rapl", scope=scope, energy_mj=10_000 * (4 - seed), window_ns=10**9)
        made = results.make_machine(f"Intel(R) Core(TM) i{seed}-8700", seed=seed)
        measurement = results.make_measurement(cell, 1_000_000, energy=energy)
        post.made(cell=cell, machine=made, measurement=measurement)
    for group in ("hardware", "machine", "setup"):
        board = f"/leaderboard?workload=mnist-cnn&rank_by=energy&group={group}"
        shown = get(post.http, board)
        assert shown["energy_scopes"] == ["cpu_package", "soc"]
        names = [(row["rank"], row["hardware"]) for row in shown["rows"]]
        ranks = (1, 2) if group in ("hardware", "setup") else (None, None)
        assert names == [(ranks[0], "Intel Core i3-8700"), (ranks[1], "Intel Core i1-8700")]
        (row,) = get(post.http, f"{board}&energy_scope=soc")["rows"]
        assert (row["rank"], row["hardware"]) == (ranks[0], "Intel Core i2-8700")


@pytest.mark.parametrize("group", ["hardware", "machine", "setup"])
@pytest.mark.parametrize("sort", ["", "-newest_at"])
def test_a_board_page_by_page_while_more_arrive(post: Poster, group: str, sort: str) -> None:
    def arrive(number: int, step_ns: int) -> None:
        made = results.make_machine(f"Intel(R) Core(TM) i7-{number}", seed=number)
        post.made(machine=made, step_ns=step_ns)

    for number in range(1, 8):
        arrive(number, 1_000_000 + 1000 * number)
    seen: list[str] = []
    query = f"workload=mnist-cnn&group={group}&limit=3&sort={sort}"
    for page in pages(post.http, f"/leaderboard?{query}"):
        seen += [row["hardware"] for row in page["rows"]]
        arrive(100 + len(seen), 500_000)
    wanted = [f"Intel Core i7-{number}" for number in range(1, 8)]
    assert seen == (wanted if not sort else wanted[::-1])
    assert post.http.get("/api/v1/leaderboard?cursor=abcd").status_code == 422
    assert post.http.get("/api/v1/leaderboard?workload=mnist-cnn&cursor=abcd").status_code == 422


@pytest.fixture
def five(post: Poster) -> None:
    """Five hardware, the fastest first."""
    post.baseline("intel-core-i7-5")
    for number in range(1, 6):
        made = results.make_machine(f"Intel(R) Core(TM) i7-{number}", seed=number)
        post.made(machine=made, step_ns=1_000_000 + 100_000 * number)


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize("group", ["hardware", "machine"])
def test_pages_lead_on_to_the_rows_that_they_do_not_show(post: Poster, group: str) -> None:
    if group == "machine":  # of hardware the home page is a chart
        assert "All rows" in post.http.get(f"/?group={group}&limit=2").text
    address = f"/?workload=mnist-cnn&group={group}&limit=2"
    seen: list[str] = []
    while address is not None:
        page = post.http.get(address).text
        seen += re.findall(r"<a class=\"name\" href=\"/hardware/([^\"]+)\"", page)
        following = re.search(r'<a href="([^"]+)">Next rows</a>', page)
        address = html.unescape(following[1]) if following else None
    assert seen == [f"intel-core-i7-{number}" for number in range(1, 6)]


@pytest.mark.usefixtures("five")
def test_speed_ups_of_machines_go_on_in_the_export(
    post: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_server.export.rows.PAGE", 2)
    address = "/api/v1/leaderboard.jsonl?workload=mnist-cnn&group=machine"
    lines = [json.loads(line) for line in post.http.get(address).text.splitlines()]
    assert [line["rank"] for line in lines] == [None] * 5
    assert [round(line["speed_up"], 3) for line in lines] == [1.364, 1.25, 1.154, 1.071, 1.0]


@pytest.mark.parametrize("name", ["Эльбрус-8СВ", "龙芯 3A6000", "परम शक्ति", "معالج 5"])
def test_a_name_in_another_script_is_a_hardware_of_its_own(post: Poster, name: str) -> None:
    post.made()
    result = post.made(machine=results.make_machine(name, seed=2), step_ns=900_000)
    slug = get(post.http, f"/results/{result}")["hardware_slug"]
    assert slug == name.lower().replace(" ", "-")
    for address in (
        *(f"/api/v1/hardware/{slug}", f"/hardware/{slug}", f"/hardware?q={name[:3]}", "/"),
        *(f"/compare?ids={slug},{I7}", f"/?baseline={slug}", f"/results?hardware={slug}&limit=1"),
        *(f"/frameworks?hardware={slug}", f"/hardware/{slug}/badge.svg"),
        *(f"/api/v1/leaderboard.csv?hardware={slug}", f"/api/v1/results?hardware={slug}&limit=1"),
        *(
            f"/hardware/{slug}/feed.atom",
            f"/hardware/{slug}/card.png",
            f"/results/{result}",
            f"/api/v1/asks?hardware={slug}",
        ),
    ):
        answer = post.http.get(address)
        assert answer.status_code == 200, (address, answer.text)
    assert f'/hardware/{slug}"' in unquote(post.http.get("/").text)
    assert Settings(baseline=slug).baseline == slug


def test_a_machine_goes_by_its_gpu(post: Poster) -> None:
    """Even if its processor is faster."""
    for device, step_ns in ((CUDA, 900_000), (Device(kind="cpu"), 300_000)):
        last = post.made(cell=results.make_cell(device=device), machine=machine(), step_ns=step_ns)
    identity = get(post.http, f"/results/{last}")["machine_id"]
    answer = get(post.http, f"/machines/{identity}")
    assert answer["name"] == "NVIDIA H200"
    assert len(answer["hardware"]) == 2
    things = get(post.http, f"/compare?ids={identity},nvidia-h200")["things"]
    assert things[0]["name"] == f"NVIDIA H200, machine {identity[:8]}"


def test_compare_machines_with_prices(post: Poster) -> None:
    cell = results.make_cell(device=CUDA)
    for seed in (3, 4):
        for run in (1, 2, 3):
            last = post.made(
                cell=cell, machine=machine(seed), run_id=f"{3 * seed + run:032x}",
                step_ns=100_000 * seed + run,
            )  # fmt: skip
    ids = [row["machine_id"] for row in get(post.http, "/machines")["machines"]]
    slow = get(post.http, f"/results/{last}")["machine_id"]
    fast = next(identity for identity in ids if identity != slow)
    answer = get(post.http, f"/compare?ids={slow},{fast}&price.{slow}=1000&price.{fast}=2000")
    assert [thing["kind"] for thing in answer["things"]] == ["machine", "machine"]
    assert [thing["price"]["amount"] for thing in answer["things"]] == [1000, 2000]
    _, second = answer["rows"][0]["cells"]
    assert second["verdict"].startswith("1.33 times as fast")
    assert second["n"] == 3
    speed = second["samples_per_second"]
    assert second["samples_per_second_per_price"] == pytest.approx(speed / 2000)
    for wrong in (f"price.{slow}=0", f"price.{slow}=x", "price.other=3", f"price.{slow}=inf"):
        refused = post.http.get(f"/api/v1/compare?ids={slow},{fast}&{wrong}")
        assert refused.status_code == 422
        assert refused.json()["field"].startswith("price.")


def test_a_rank_is_shown_beside_the_figure_that_has_it(post: Poster) -> None:
    """The second machine was measured in a slower set-up than the one that is ranked."""
    post.enroll()
    fast, slow = machine(seed=3), machine(seed=4)
    post.made(machine=fast, cell=results.make_cell(recipe="tuned", device=CUDA), step_ns=1_000_000)
    last = post.made(
        machine=slow, cell=results.make_cell(recipe="naive", device=CUDA), step_ns=4_000_000
    )
    identity = get(post.http, f"/results/{last}")["machine_id"]
    (place,) = get(post.http, f"/machines/{identity}")["places"]
    assert (place["rank"], place["in_ranked_setup"]) == (1, False)
    assert place["of_ranked"] == pytest.approx(0.25)
    page = post.http.get(f"/machines/{identity}").text
    (heading,) = re.findall("<h1><bdi>(.*?)</bdi></h1>", page)
    text = re.sub("<[^>]+>", "", page)
    assert re.sub("<[^>]+>", "", heading) == (
        f"This {place['hardware']} is the only one of its kind here (tensorflow naive, mnist-cnn)"
    )
    assert (
        "TensorFlow tuned on the same chip is 4.00 times as fast: "
        "bench-agent run --framework tensorflow --workload mnist-cnn"
    ) in text
    assert f"{place['hardware']} is 1st of 1 on mnist-cnn, by speed." in text
    (cell,) = re.findall(r'<td data-label="Its hardware\'s rank">(.*?)</td>', page)
    assert cell == "1st of 1"
