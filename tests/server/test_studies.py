"""The studies: only comparable figures are compared."""

import re

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster
from tests.server.test_ranks import decide

from bench_protocol.base import format as people
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload import acts
from bench_protocol.payload.machine import Environment, OperatingSystem
from bench_server.answers.studies import trends
from bench_server.db.store import Store

pytestmark = pytest.mark.sqlite
M2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
SLUG = "apple-m2-max-30-core-gpu"


def _update(
    post: Poster, seed: int, version: str, day: int, step_ns: int, system: str = "14.6"
) -> str:
    os = OperatingSystem(name="macos", version=system)
    return post.made(
        machine=M2.model_copy(update={"machine_hash": f"{seed:064x}", "os": os}),
        cell=results.make_cell(device=Device(kind="metal")),
        step_ns=step_ns,
        clocks=results.clocks_from(day),
        environment=Environment(python="3.12.7", packages={"tensorflow": version}),
    )


def test_a_version_changes_what_it_changes_on_the_same_machine(
    http: TestClient, post: Poster
) -> None:
    """Four others join with the new version and are slower: over all machines nothing changed."""
    wave = (0, 3, -2, 1, -1, 2, -3, 4, -4)
    for version, first_day, step_ns in (("2.18.0", 1, 1_100_000), ("2.18.1", 11, 1_000_000)):
        for day, off in enumerate(wave, first_day):
            last = _update(post, 1, version, day, step_ns + 500 * off)
    machine = http.get(f"/api/v1/results/{last}").json()["machine_id"]
    for seed in (2, 3, 4, 5):
        _update(post, seed, "2.18.1", 20, 1_130_000 + 1_000 * seed)
    answer = http.get("/api/v1/trends").json()
    old, new = answer["versions"]
    assert new["samples_per_second"] < old["samples_per_second"]
    assert (old["update"], new["machines"]) == (None, 5)
    update = new["update"]
    assert update["compared"]["speed_up"] == pytest.approx(1.10, abs=0.002)
    assert update["compared"]["verdict_kind"] == "too_few_runs"
    assert update["compared"]["verdict"] == "on 1 machine; a verdict needs 3"
    # Nine runs on each side, which differ by at most 4 half percents.
    low, high = update["compared"]["speed_up_low"], update["compared"]["speed_up_high"]
    assert update["compared"]["speed_up_range_of"] == "own_repeats"
    assert 1.09 < low < 1.10 < high < 1.11
    assert update["only_one"] == 4
    (change,) = http.get(f"/api/v1/machines/{machine}/history").json()["changes"]
    assert change["speed_up"] == pytest.approx(update["compared"]["speed_up"], rel=1e-9)
    speed_up = update["compared"]["speed_up"]
    assert update["machines"] == [{"machine_id": machine, "speed_up": speed_up, "marked": True}]
    page = " ".join(http.get("/trends").text.split())
    assert "<h1>TensorFlow 2.18.1 is 1.10 times as fast as 2.18.0, on 1 machine</h1>" in page
    ends = (update["compared"][f"speed_up_{end}"] for end in ("low", "high"))
    shown = people.interval(*ends, people.times, "×")
    assert f'title="between repeats on the same machine">{shown}</span>' in page
    assert "on 1 machine with both versions" in page
    assert "4 machines have one version only" in page
    assert (
        f'<a href="/machines/{machine}">Machine {machine[:8]}</a>: 1.10 times as fast; '
        "its history marks a change of level there"
    ) in page


def test_each_update_is_measured_at_its_own_place(http: TestClient, post: Poster) -> None:
    """A framework makes the machine 1.11 times as fast, and a system, two weeks later, slower.
    Over all runs of a version the framework would have 1.05, and the slower system a speed-up."""
    wave = (0, 3, -2, 1, -1, 2)
    stages = (("2.18.0", "14.6", 1_110_000), ("2.18.1", "14.6", 1_000_000))
    for stage, (version, system, step_ns) in enumerate((*stages, ("2.18.1", "15.5", 1_060_000))):
        for day, off in enumerate(wave, 1 + 6 * stage):
            last = _update(post, 1, version, day, step_ns + 500 * off, system)
    machine = http.get(f"/api/v1/results/{last}").json()["machine_id"]
    changes = http.get(f"/api/v1/machines/{machine}/history").json()["changes"]
    for by, change in zip(("framework_version", "os_version"), changes, strict=True):
        answer = http.get("/api/v1/trends", params={"by": by}).json()
        update = answer["versions"][1]["update"]
        assert update["compared"]["speed_up"] == pytest.approx(change["speed_up"], rel=1e-9), by
    assert changes[0]["speed_up"] > 1.1 > 1 > changes[1]["speed_up"]


def test_versions_in_turns_are_compared_over_all_runs(http: TestClient, post: Poster) -> None:
    for day in range(1, 11):
        version, step_ns = ("2.18.0", 1_050_000) if day % 2 else ("2.18.1", 1_000_000)
        _update(post, 1, version, day, step_ns + 1_000 * day)
    update = http.get("/api/v1/trends").json()["versions"][1]["update"]
    assert update["compared"]["speed_up"] == pytest.approx(1.055 / 1.006, rel=0.01)
    assert not update["machines"][0]["marked"]
    assert "its history marks no change of level there" in http.get("/trends").text


def test_three_machines_with_both_versions_have_an_interval(http: TestClient, post: Poster) -> None:
    """Over machines: what makes one machine slower than another cancels."""
    for seed, level in ((1, 1_000_000), (2, 2_000_000), (3, 3_000_000), (4, 1_500_000)):
        _update(post, seed, "2.18.0", 1, level)
        _update(post, seed, "2.18.1", 2, level * (100 + seed) // 125)
    _update(post, 5, "2.18.0", 1, 4_000_000)
    update = http.get("/api/v1/trends").json()["versions"][1]["update"]
    compared = update["compared"]
    assert compared["speed_up"] == pytest.approx(1.25 / 1.025, rel=1e-3)
    assert 1.15 < compared["speed_up_low"] < compared["speed_up"] < compared["speed_up_high"] < 1.3
    assert (compared["n"], compared["n_of"]) == (4, "machines")
    assert (update["only_one"], update["machines"]) == (1, [])
    assert compared["verdict"].startswith("1.22 times as fast on 4 machines (95 % CI ")
    page = http.get("/trends").text
    assert "<h1>TensorFlow 2.18.1 is 1.22 times as fast as 2.18.0</h1>" in page
    assert "on 4 machines with both versions" in page
    assert "the axis does not begin at zero" in page
    # Between the two versions: no figure of the plot has that ratio.
    assert re.search(r'<text class="tick mark-words faster" x="50.0%" [^>]*>1\.22×</text>', page)
    assert not re.search(r'<text class="tick" [^>]*>1\.22×</text>', page)


def test_versions_of_different_machines_say_nothing_of_the_version(
    http: TestClient, post: Poster
) -> None:
    _update(post, 1, "2.9.1", 1, 1_000_000)
    _update(post, 2, "2.10.0", 2, 2_000_000)
    answer = http.get("/api/v1/trends").json()
    assert [point["version"] for point in answer["versions"]] == ["2.9.1", "2.10.0"]
    update = answer["versions"][1]["update"]
    assert update == {"compared": None, "only_one": 2, "left_out": 0, "machines": []}
    assert answer["comparisons"] == 0
    assert "no machine has both versions" in http.get("/trends").text


def test_trends_search_what_was_measured_most(
    http: TestClient, post: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each hardware and workload once, with results that fit the filters; two versions first."""
    monkeypatch.setattr(trends, "MOST_CANDIDATES", 2)

    def send(workload: str, recipe: str = "naive", version: str = "2.18.0") -> None:
        cell = results.make_cell(workload, device=Device(kind="metal"), recipe=recipe)
        environment = Environment(python="3.12.7", packages={"tensorflow": version})
        post.made(machine=M2, cell=cell, environment=environment)

    for recipe in ("naive", "tuned", "pipeline") * 3:
        send("mnist-cnn", recipe)
    for version in ("2.18.0", "2.18.1"):
        send("fashion-mlp", version=version)
    nvidia = results.make_machine(gpu=("cuda", "NVIDIA A100", None), seed=3)
    driven = tuple(gpu.model_copy(update={"driver": "550.54"}) for gpu in nvidia.gpus)
    post.made(
        machine=nvidia.model_copy(update={"gpus": driven}),
        cell=results.make_cell("fashion-mlp", framework="torch", device=Device(kind="cuda")),
        environment=Environment(python="3.12.7", packages={"torch": "2.4.0"}),
    )
    a100 = "nvidia-a100"
    for query, hardware, workload, versions in (
        ("", SLUG, "fashion-mlp", 2),
        ("workload=mnist-cnn", SLUG, "mnist-cnn", 1),
        (f"hardware={a100}", a100, "fashion-mlp", 1),
        ("framework=torch", a100, "fashion-mlp", 1),
        ("by=driver", a100, "fashion-mlp", 1),
        ("workload=fashion-mlp&by=driver", a100, "fashion-mlp", 1),
    ):
        answer = http.get(f"/api/v1/trends?{query}").json()
        shown = answer["hardware_slug"], answer["workload"], len(answer["versions"])
        assert shown == (hardware, workload, versions), query
    refused = http.get(f"/api/v1/trends?hardware={SLUG}&by=driver")
    assert refused.status_code == 404
    assert refused.json()["detail"] == f"no figures of versions with hardware '{SLUG}', by 'driver'"
    page = http.get(f"/trends?hardware={SLUG}&by=driver", headers={"Accept": "text/html"}).text
    assert "No ranked run there says which; choose framework_version or os_version" in page
    assert "may be mistyped" not in page
    assert http.get("/api/v1/trends?framework=jax").status_code == 404


def test_a_stranger_decides_no_study(http: TestClient, post: Poster, store: Store) -> None:
    """Neither by faster set-ups nor by real data, beside two confirmed owners."""
    metal, cpu = Device(kind="metal"), Device(kind="cpu")

    def send(seed: int, step_ns: int, **cell: object) -> None:
        made = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=seed)
        key = results.private_key(seed)
        post.made(key=key, machine=made, cell=results.make_cell(**cell), step_ns=step_ns)

    for seed in (1, 2):
        post.enroll(results.private_key(seed))
        send(seed, 900_000, framework="tensorflow", device=metal)
        send(seed, 500_000, framework="mlx", device=metal)
        send(seed, 2_000_000, framework="tensorflow", device=cpu)
        decide(store, "confirm", owner=acts.first_owner(results.key_id(results.private_key(seed))))
    post.enroll(results.private_key(3))
    send(3, 400_000, framework="torch", device=metal)
    for framework in ("torch", "jax"):
        send(3, 400_000, framework=framework, device=metal, data="real")
    send(3, 300_000, framework="jax", device=cpu)
    (table,) = http.get(f"/api/v1/frameworks?hardware={SLUG}").json()["tables"]
    assert [row["framework"] for row in table["rows"]] == ["mlx", "tensorflow"]
    assert table["rows"][1]["best"]["speed_up"] == pytest.approx(1 / 1.8, rel=1e-3)
    assert [row["setups"] for row in table["rows"]] == [1, 1]
    (row,) = http.get("/api/v1/cpu-vs-gpu").json()["rows"]
    assert [row[kind]["framework"] for kind in ("cpu", "gpu")] == ["tensorflow", "mlx"]
    assert (row["cpu_setups"], row["gpu_setups"]) == (1, 2)


def test_nothing_measured_is_no_error(http: TestClient) -> None:
    for study in ("frameworks", "batch-size", "cpu-vs-gpu", "trends"):
        assert http.get(f"/api/v1/{study}").status_code == 200
        page = http.get(f"/{study}", headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert 'class="empty"' in page.text
    assert http.get("/api/v1/frameworks?hardware=nobody").status_code == 422
    assert http.get("/feed.atom").status_code == 200
