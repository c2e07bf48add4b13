"""Hardware, machines, a machine's history, and filters."""

import html
import itertools
import json
import re
from typing import Any
from urllib.parse import unquote

import pytest
from tests.fakes import results
from tests.fakes.client import Poster, get, pages

from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.machine import Environment
from bench_protocol.payload.readings import Energy
from bench_server.answers.studies.trends import version_key
from bench_server.db.environments import framework_version
from bench_server.settings import Settings

H200 = ("cuda", "NVIDIA H200", None)
CUDA = Device(kind="cuda")
GROUPS = ("hardware", "machine", "setup")
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
    (figure,) = hardware["figures"]
    assert (hardware["name"], figure["machines"]) == ("NVIDIA H200", 2)
    flops = get(post.http, "/workloads")[0]["training_flops_per_sample"]
    assert figure["mfu"] == pytest.approx(flops * figure["samples_per_second"] / 67e12)
    machines = [row for page in pages(post.http, "/machines?limit=1") for row in page["machines"]]
    assert len(machines) == 3
    assert sorted(machines, key=lambda row: row["machine_id"]) == machines
    identity = next(row["machine_id"] for row in machines if SLUG in row["hardware"])
    answer = get(post.http, f"/machines/{identity}")
    assert answer["machine"]["gpus"][0]["driver"] == "560.35"
    assert answer["figures"][0]["machine_id"] == identity
    for address, status in (
        *(("/machines/0123456789abcdef", 404), ("/hardware/none", 404), ("/machines/%00", 422)),
        *(("/hardware/%00", 422), ("/machines?cursor=WyJcdTAwMDAiXQ", 422)),
    ):
        assert post.http.get(f"/api/v1{address}").status_code == status, address


def test_a_hardware_without_a_score_says_why(post: Poster) -> None:
    post.baseline(I7)
    post.made(cell=results.make_cell(device=CUDA), machine=machine())
    no_baseline = "there is no baseline with a figure at a default batch size in float32"
    for cell, reason in (
        (None, no_baseline),
        (results.make_cell(batch_size=128), no_baseline),
        (results.make_cell("fashion-mlp"), "have no scored workload in common, at its default"),
    ):
        if cell:
            post.made(cell=cell)
        page = post.http.get(f"/hardware/{SLUG}").text
        assert "No score: " in page
        assert reason in page


def test_a_history_is_of_one_cell_and_its_points_are_medians_of_runs(post: Poster) -> None:
    """test_disturbed_levels.py and test_feeds.py have its changes."""
    for run, repeat in itertools.product((1, 2), (1, 2, 3)):
        last = post.made(
            cell=results.make_cell(device=CUDA), machine=machine(), run_id=f"{run:032x}",
            repeat=repeat, step_ns=100_000 + repeat, clocks=results.clocks_from(run, repeat),
        )  # fmt: skip
    history = f"/machines/{get(post.http, f'/results/{last}')['machine_id']}/history"
    points = get(post.http, f"{history}?workload=mnist-cnn")["points"]
    assert [point["run_id"] for point in points] == [f"{run:032x}" for run in (1, 2)]
    for point in points:
        rates = [one["samples_per_second"] for one in point["repeats"]]
        assert rates == sorted(rates, reverse=True)
        assert point["result_id"] == point["repeats"][1]["result_id"]
        assert point["samples_per_second"] == pytest.approx(rates[1])
    post.made(cell=results.make_cell(device=CUDA, recipe="tuned"), machine=machine())
    refused = post.http.get(f"/api/v1{history}?workload=mnist-cnn")
    assert refused.status_code == 422
    assert refused.json()["detail"] == "2 of this machine's 2 cells fit; a history is of one"
    assert post.http.get("/api/v1/machines/0123456789abcdef/history").status_code == 404


def test_versions_sort_as_versions() -> None:
    ordered = ["unknown", "2.9", "2.9.1", "2.10.0rc1", "2.10.0rc2", "2.10.0", "2.10.1", "10.0"]
    keys = [version_key(version) for version in ordered]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(ordered)
    assert version_key("2.10.0") == version_key("2.10.0+cu124")
    assert version_key("Ubuntu 22.04.3 LTS") == version_key("22.04.3")
    assert version_key("9" * 60)


def test_a_framework_has_its_version_under_any_wheels_name() -> None:
    for packages, version in (
        ({"tensorflow": "2.18.1", "tensorflow-metal": "1.2.0"}, "2.18.1"),
        ({"tensorflow-cpu": "2.21.0", "keras": "3.15.1"}, "2.21.0"),
        ({"tensorflow-metal": "1.2.0"}, None),
        ({}, None),
    ):
        environment = Environment(python="3.11.7", packages=packages)
        assert framework_version(results.make_result(environment=environment)) == version


def energetic(
    post: Poster, seed: int, step_ns: int, millijoules: int, scope: str = "cpu_package"
) -> None:
    cell = results.make_cell()
    energy = Energy(source="rapl", scope=scope, energy_mj=millijoules, window_ns=10**9)
    made = results.make_machine(f"Intel(R) Core(TM) i{seed}-8700", seed=seed)
    measurement = results.make_measurement(cell, step_ns, energy=energy)
    post.made(cell=cell, machine=made, measurement=measurement)


def test_sorting_and_grouping(post: Poster) -> None:
    """One slow with low energy, one fast with high energy, one without measured energy."""
    energetic(post, 1, 2_000_000, 10_000)
    energetic(post, 2, 1_000_000, 90_000)
    post.made(machine=results.make_machine("Intel(R) Core(TM) i3-8700", seed=3), step_ns=1_500_000)
    for group in GROUPS:
        board = f"/leaderboard?workload=mnist-cnn&group={group}"

        def numbers(query: str, board: str = board) -> list[int]:
            rows = get(post.http, f"{board}&{query}")["rows"]
            return [int(row["hardware"][len("Intel Core i") :][0]) for row in rows]

        assert numbers("rank_by=throughput") == [2, 3, 1]
        assert numbers("rank_by=energy") == [1, 2]
        frugal = get(post.http, f"{board}&rank_by=energy")["rows"][0]
        assert frugal["joules_per_epoch"] == pytest.approx(10 * 2e-3 * 937)
        assert frugal["samples_per_joule"] == pytest.approx(64 / (10 * 2e-3))
        assert numbers("rank_by=mfu") == numbers("trust_level=4") == []
        assert len(numbers("trust_level=1")) == 3


def test_energies_of_different_scopes_are_not_ranked_together(post: Poster) -> None:
    for seed, scope in ((1, "cpu_package"), (2, "soc"), (3, "cpu_package")):
        energetic(post, seed, 1_000_000, 10_000 * (4 - seed), scope)
    for group in GROUPS:
        board = f"/leaderboard?workload=mnist-cnn&rank_by=energy&group={group}"
        shown = get(post.http, board)
        assert shown["energy_scopes"] == ["cpu_package", "soc"]
        names = [(row["rank"], row["hardware"]) for row in shown["rows"]]
        ranks = (1, 2) if group in ("hardware", "setup") else (None, None)
        assert names == [(ranks[0], "Intel Core i3-8700"), (ranks[1], "Intel Core i1-8700")]
        (row,) = get(post.http, f"{board}&energy_scope=soc")["rows"]
        assert (row["rank"], row["hardware"]) == (ranks[0], "Intel Core i2-8700")


def test_a_board_page_by_page_while_more_arrive(post: Poster) -> None:
    numbers = itertools.count(1)

    def arrive(step_ns: int) -> None:
        made = results.make_machine(f"Intel(R) Core(TM) i7-{next(numbers)}", seed=next(numbers))
        post.made(machine=made, step_ns=step_ns)

    for number in range(1, 8):
        arrive(1_000_000 + 1000 * number)
    for group, sort in zip(GROUPS, ("", "-newest_at", ""), strict=True):
        board = f"/leaderboard?workload=mnist-cnn&group={group}&sort={sort}"
        wanted = [row["hardware"] for row in get(post.http, f"{board}&limit=100")["rows"]]
        assert len(wanted) > 6
        seen: list[str] = []
        for page in pages(post.http, f"{board}&limit=3"):
            seen += [row["hardware"] for row in page["rows"]]
            if len(seen) < 6:
                arrive(900_000 - 1000 * next(numbers))
        assert seen == wanted
    for board in ("leaderboard?", "leaderboard?workload=mnist-cnn&"):
        assert post.http.get(f"/api/v1/{board}cursor=abcd").status_code == 422


def test_pages_lead_on_to_the_rows_that_they_do_not_show(
    post: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slugs = [f"intel-core-i7-{number}" for number in range(1, 6)]  # the fastest first
    post.baseline(slugs[-1])
    for number in range(1, 6):
        made = results.make_machine(f"Intel(R) Core(TM) i7-{number}", seed=number)
        post.made(machine=made, step_ns=1_000_000 + 100_000 * number)
    # Of hardware the home page is a chart.
    assert "All rows" in post.http.get("/?group=machine&limit=2").text
    for group in ("hardware", "machine"):
        address = f"/?workload=mnist-cnn&group={group}&limit=2"
        seen: list[str] = []
        while address is not None:
            page = post.http.get(address).text
            seen += re.findall(r"<a class=\"name\" href=\"/hardware/([^\"]+)\"", page)
            following = re.search(r'<a href="([^"]+)">Next rows</a>', page)
            address = html.unescape(following[1]) if following else None
        assert seen == slugs
    monkeypatch.setattr("bench_server.export.rows.PAGE", 2)
    address = "/api/v1/leaderboard.jsonl?workload=mnist-cnn&group=machine"
    lines = [json.loads(line) for line in post.http.get(address).text.splitlines()]
    assert [line["rank"] for line in lines] == [None] * 5
    assert [round(line["speed_up"], 3) for line in lines] == [1.364, 1.25, 1.154, 1.071, 1.0]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_name_in_another_script_is_a_hardware_of_its_own(post: Poster) -> None:
    post.made()
    for seed, name in enumerate(("Эльбрус-8СВ", "龙芯 3A6000", "परम शक्ति", "معالج 5"), 2):
        result = post.made(machine=results.make_machine(name, seed=seed), step_ns=900_000)
        slug = get(post.http, f"/results/{result}")["hardware_slug"]
        assert slug == name.lower().replace(" ", "-")
        for address in (
            *(f"hardware/{slug}", f"hardware?q={name[:3]}", f"compare?ids={slug},{I7}"),
            *(f"?baseline={slug}", f"results?hardware={slug}&limit=1", f"results/{result}"),
            *(f"frameworks?hardware={slug}", f"hardware/{slug}/badge.svg"),
            *(f"hardware/{slug}/feed.atom", f"hardware/{slug}/card.png"),
            *(f"api/v1/hardware/{slug}", f"api/v1/results?hardware={slug}&limit=1"),
            *(f"api/v1/leaderboard.csv?hardware={slug}", f"api/v1/asks?hardware={slug}"),
        ):
            answer = post.http.get(f"/{address}")
            assert answer.status_code == 200, (address, answer.text)
        assert f'/hardware/{slug}"' in unquote(post.http.get("/").text)
        assert Settings(baseline=slug).baseline == slug


def test_a_machine_goes_by_its_gpu(post: Poster) -> None:
    for device, step_ns in ((CUDA, 900_000), (Device(kind="cpu"), 300_000)):
        last = post.made(cell=results.make_cell(device=device), machine=machine(), step_ns=step_ns)
    identity = get(post.http, f"/results/{last}")["machine_id"]
    answer = get(post.http, f"/machines/{identity}")
    assert answer["name"] == "NVIDIA H200"
    assert len(answer["hardware"]) == 2
    things = get(post.http, f"/compare?ids={identity},nvidia-h200")["things"]
    assert things[0]["name"] == f"NVIDIA H200, machine {identity[:8]}"


def test_a_rank_is_shown_beside_the_figure_that_has_it(post: Poster) -> None:
    """The second machine was measured in a slower set-up than the one that is ranked."""
    for seed, recipe, step_ns in ((3, "tuned", 1_000_000), (4, "naive", 4_000_000)):
        cell = results.make_cell(recipe=recipe, device=CUDA)
        last = post.made(machine=machine(seed), cell=cell, step_ns=step_ns)
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
        "TensorFlow tuned on the same chip is 4.00 times as fast (3.63 to 4.41): "
        "bench-agent run --framework tensorflow --workload mnist-cnn"
    ) in text
    assert f"{place['hardware']} is 1st of 1 on mnist-cnn, by speed." in text
    (cell,) = re.findall(r'<td data-label="Its hardware\'s rank">(.*?)</td>', page)
    assert cell == "1st of 1"
