"""The studies on both databases: only comparable figures are compared."""

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.machine import Environment
from bench_protocol.matrix import Device

M2 = results.make_machine("Apple M2 Max", ("metal", "Apple M2 Max", 30), seed=2)
SLUG = "apple-m2-max-30-core-gpu"


def _measure(post: Poster, step_ns: int, workload: str = "mnist-cnn", **cell: object) -> None:
    device = Device(kind=cell.pop("device", "metal"))  # type: ignore[arg-type]
    for run in (1, 2, 3):
        post.made(
            machine=M2,
            cell=results.make_cell(workload, device=device, **cell),
            step_ns=step_ns + 1_000 * run,
            run_id=f"{step_ns + run:032x}",
        )


def test_frameworks_meet_at_equal_batch_and_data(http: TestClient, post: Poster) -> None:
    _measure(post, 900_000, framework="tensorflow", recipe="naive")
    _measure(post, 400_000, framework="tensorflow", recipe="tuned")
    _measure(post, 300_000, framework="mlx", recipe="naive")
    _measure(post, 100_000, framework="mlx", recipe="naive", batch_size=256)
    answer = http.get("/api/v1/frameworks").json()
    assert answer["hardware_slug"] == SLUG
    (table,) = answer["tables"]
    assert (table["workload"], table["batch_size"]) == ("mnist-cnn", 64)
    assert [row["framework"] for row in table["rows"]] == ["mlx", "tensorflow"]
    naive, pipeline, tuned = table["rows"][1]["recipes"]
    assert pipeline is None
    assert naive["held"] is None
    assert tuned["held"]["speed_up"] == pytest.approx(902 / 402, rel=1e-3)
    assert tuned["held"]["kind"] == "faster"
    best = table["rows"][0]["best"]
    assert best["speed_up"] == pytest.approx(402 / 302, rel=1e-3)
    assert (best["scope"], "on this machine" in best["verdict"]) == ("machines", True)
    # MLX against TensorFlow and the reverse are one comparison; TensorFlow's recipes are another.
    assert answer["comparisons"] == 2
    assert [(row["setups"], row["other_setups"]) for row in table["rows"]] == [(1, 2), (2, 1)]


def test_batch_sizes_of_one_set_up_make_a_line(http: TestClient, post: Poster) -> None:
    _measure(post, 300_000, "fashion-mlp", recipe="naive", batch_size=128)
    _measure(post, 400_000, "fashion-mlp", recipe="naive", batch_size=512)
    _measure(post, 350_000, "fashion-mlp", recipe="tuned", batch_size=512)
    answer = http.get("/api/v1/batch-size", params={"hardware": SLUG}).json()
    (study,) = answer["studies"]
    (line,) = study["lines"]
    assert [figure["batch_size"] for figure in line["figures"]] == [128, 512]
    assert line["figures"][1]["held"]["speed_up"] == pytest.approx(3.01, rel=0.01)
    assert answer["comparisons"] == 1


def test_the_gpu_pays_from_the_work_where_it_stays_ahead(http: TestClient, post: Poster) -> None:
    _measure(post, 900_000, "fashion-mlp", batch_size=32)
    _measure(post, 300_000, "fashion-mlp", batch_size=32, device="cpu")
    _measure(post, 1_000_000, "mnist-cnn")
    _measure(post, 5_000_000, "mnist-cnn", device="cpu")
    answer = http.get("/api/v1/cpu-vs-gpu").json()
    assert (answer["cpu_slug"], answer["gpu_slug"]) == ("apple-m2-max-12-core-cpu", SLUG)
    small, large = answer["rows"]
    assert small["held"]["kind"] == "slower"
    assert large["held"]["kind"] == "faster"
    assert (large["cpu_setups"], large["gpu_setups"], answer["comparisons"]) == (1, 1, 2)
    for field, slug, kind in (("cpu", SLUG, "CPU"), ("gpu", answer["cpu_slug"], "GPU")):
        refused = http.get("/api/v1/cpu-vs-gpu", params={field: slug})
        assert refused.status_code == 422
        assert refused.json()["field"] == field
        assert f"is no {kind}" in refused.json()["detail"]
        assert "/cpu-vs-gpu" in refused.json()["hint"]
        assert http.get("/cpu-vs-gpu", params={field: slug}).status_code == 422
    page = " ".join(http.get("/cpu-vs-gpu").text.split())
    assert "Of the 2 cells that both were measured in" in page
    assert "All of them have enough runs for an interval. This is one pair of devices" in page
    assert answer["pays_from_flops"] == large["flops_per_step"] > small["flops_per_step"]


def test_trends_order_versions_as_versions(http: TestClient, post: Poster) -> None:
    for number, version in enumerate(("2.10.0", "2.9.1"), 1):
        for run in (1, 2, 3):
            post.made(
                machine=M2,
                cell=results.make_cell(device=Device(kind="metal")),
                step_ns=number * 1_000_000 + run,
                run_id=f"{3 * number + run:032x}",
                environment=Environment(python="3.12.7", packages={"tensorflow": version}),
            )
    answer = http.get("/api/v1/trends").json()
    assert [point["version"] for point in answer["versions"]] == ["2.9.1", "2.10.0"]
    assert answer["versions"][1]["held"]["speed_up"] == pytest.approx(2, rel=1e-3)
    by_driver = http.get("/api/v1/trends", params={"hardware": SLUG, "by": "driver"})
    assert by_driver.status_code == 404


def test_nothing_measured_is_no_error(http: TestClient) -> None:
    for study in ("frameworks", "batch-size", "cpu-vs-gpu", "trends"):
        assert http.get(f"/api/v1/{study}").status_code == 200
        page = http.get(f"/{study}", headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert 'class="empty"' in page.text
    assert http.get("/api/v1/frameworks?hardware=nobody").status_code == 422
    assert http.get("/feed.atom").status_code == 200
