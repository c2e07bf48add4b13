"""Studies of set-ups: frameworks, batch sizes, the CPU against the GPU."""

import re
from functools import partial

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.client import Poster
from tests.server.test_studies import M2, SLUG

from bench_protocol.catalogue.matrix import Device

pytestmark = pytest.mark.sqlite


def _measure(
    post: Poster, step_ns: int, workload: str = "mnist-cnn", runs: int = 3, **cell: object
) -> None:
    device = Device(kind=cell.pop("device", "metal"))  # type: ignore[arg-type]
    for run in range(1, runs + 1):
        post.made(
            machine=M2,
            cell=results.make_cell(workload, device=device, **cell),
            step_ns=step_ns + 1_000 * run,
            run_id=f"{step_ns + run:032x}",
        )


def _heading(http: TestClient, page: str) -> str:
    found = re.search("<h1>(.*?)</h1>", http.get(page, params={"hardware": SLUG}).text)
    assert found
    return re.sub("<[^>]+>", "", found[1])


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
    assert naive["compared"] is None
    assert tuned["compared"]["speed_up"] == pytest.approx(902 / 402, rel=1e-3)
    assert tuned["compared"]["verdict_kind"] == "faster"
    assert table["rows"][0]["best"] is None
    best = table["rows"][1]["best"]
    assert best["speed_up"] == pytest.approx(302 / 402, rel=1e-3)
    assert (best["scope"], "on this machine" in best["verdict"]) == ("machines", True)
    assert answer["comparisons"] == 2
    assert [row["setups"] for row in table["rows"]] == [1, 2]


def test_batch_sizes_of_one_set_up_make_a_line(http: TestClient, post: Poster) -> None:
    _measure(post, 300_000, "fashion-mlp", recipe="naive", batch_size=128)
    _measure(post, 400_000, "fashion-mlp", recipe="naive", batch_size=512)
    _measure(post, 350_000, "fashion-mlp", recipe="tuned", batch_size=512)
    answer = http.get("/api/v1/batch-size", params={"hardware": SLUG}).json()
    (study,) = answer["studies"]
    (line,) = study["lines"]
    assert [figure["batch_size"] for figure in line["figures"]] == [128, 512]
    assert line["figures"][1]["compared"]["speed_up"] == pytest.approx(3.01, rel=0.01)
    assert answer["comparisons"] == 1
    page = http.get("/batch-size", params={"hardware": SLUG}).text
    assert page.count('class="whisker"') == 2
    # Its range is in the cell of the speed-up.
    assert re.search('data-label="Speed-up"><span class="compared[^>]*>.*?class="interval"', page)
    assert "about" not in _heading(http, f"/batch-size?hardware={SLUG}")


def test_a_heading_names_the_gain_of_the_fastest_set_up(http: TestClient, post: Poster) -> None:
    """A slower set-up gains more; without a verdict its gain is no finding."""
    for framework, small, large in (("mlx", 300_000, 600_000), ("tensorflow", 900_000, 900_000)):
        for batch_size, step_ns in ((128, small), (512, large)):
            own = {"recipe": "naive", "batch_size": batch_size, "framework": framework}
            _measure(post, step_ns, "fashion-mlp", runs=1, **own)
    heading = _heading(http, "/batch-size")
    assert heading.startswith("Batch 512 trains fashion-mlp about 2.")
    assert "times as fast as batch 128 with MLX naive on" in heading


@pytest.mark.parametrize(
    ("path", "heading"),
    [
        ("/frameworks", "No workload has two frameworks on Intel Core i7-8700 yet"),
        ("/batch-size", "No set-up on Intel Core i7-8700 has two batch sizes yet"),
        ("/cpu-vs-gpu", "No CPU and GPU to compare yet"),
        ("/trends", "Only one framework version so far"),
    ],
)
def test_the_heading_of_a_study_of_one_set_up_says_what_is_missing(
    http: TestClient, post: Poster, path: str, heading: str
) -> None:
    for recipe in ("naive", "tuned"):
        post.made(cell=results.make_cell(recipe=recipe))
    assert heading in re.sub("<.*?>", "", http.get(path).text)


def test_a_heading_says_that_too_few_runs_decide(http: TestClient, post: Poster) -> None:
    for batch_size, device in ((128, "metal"), (512, "metal"), (128, "cpu")):
        own = {"recipe": "naive", "batch_size": batch_size, "device": device}
        _measure(post, 300_000, "fashion-mlp", runs=1, **own)
    for page in ("/batch-size", "/cpu-vs-gpu"):
        assert any(word in _heading(http, page) for word in ("about", "looks")), page
        assert "too few" not in _heading(http, page)
        assert "is faster" not in _heading(http, page)


def test_a_heading_claims_no_difference_that_is_not_clear(http: TestClient, post: Poster) -> None:
    heading = partial(_heading, http)
    _measure(post, 900_500, framework="tensorflow")
    _measure(post, 900_000, framework="mlx")
    _measure(post, 1_799_000, framework="mlx", batch_size=128)
    _measure(post, 902_000, framework="mlx", device="cpu")
    gpu = "Apple M2 Max (30-core GPU)"
    assert heading("/frameworks") == f"No framework is clearly the fastest on {gpu}"
    assert heading("/batch-size") == f"No larger batch trains clearly faster on {gpu}"
    assert heading("/cpu-vs-gpu") == (
        f"{gpu} looks faster than Apple M2 Max (12-core CPU) in every workload, "
        "without a clear difference"
    )
    # A table of one framework counts as no workload.
    _measure(post, 900_000, "fashion-mlp", framework="mlx")
    _measure(post, 400_000, "fashion-mlp", framework="mlx", recipe="tuned")
    _measure(post, 500_000, "mnist-dense", framework="mlx")
    _measure(post, 900_000, "mnist-dense", framework="jax")
    assert heading("/frameworks") == f"MLX is the fastest framework in 1 of 2 workloads on {gpu}"
    _measure(post, 1_000_000, "mnist-dense", framework="mlx", batch_size=128)
    assert heading("/batch-size").startswith("Batch 128 trains mnist-dense 2")


def test_the_gpu_pays_from_the_work_where_it_stays_ahead(http: TestClient, post: Poster) -> None:
    _measure(post, 900_000, "fashion-mlp", batch_size=32)
    _measure(post, 300_000, "fashion-mlp", batch_size=32, device="cpu")
    _measure(post, 1_000_000, "mnist-cnn")
    _measure(post, 5_000_000, "mnist-cnn", device="cpu")
    answer = http.get("/api/v1/cpu-vs-gpu").json()
    assert (answer["cpu_slug"], answer["gpu_slug"]) == ("apple-m2-max-12-core-cpu", SLUG)
    small, large = answer["rows"]
    assert small["compared"]["verdict_kind"] == "slower"
    assert large["compared"]["verdict_kind"] == "faster"
    assert (large["cpu_setups"], large["gpu_setups"], answer["comparisons"]) == (1, 1, 2)
    for field, slug, kind in (("cpu", SLUG, "CPU"), ("gpu", answer["cpu_slug"], "GPU")):
        refused = http.get("/api/v1/cpu-vs-gpu", params={field: slug})
        assert refused.status_code == 422
        assert refused.json()["field"] == field
        assert f"is no {kind}" in refused.json()["detail"]
        assert "/cpu-vs-gpu" in refused.json()["hint"]
        assert http.get("/cpu-vs-gpu", params={field: slug}).status_code == 422
    page = " ".join(http.get("/cpu-vs-gpu").text.split())
    assert "Both were measured in 2 combinations of workload and batch size." in page
    assert "No verdict yet" not in page
    heading = _heading(http, "/cpu-vs-gpu")
    cpu = "Apple M2 Max (12-core CPU)"
    assert heading.startswith(f"Apple M2 Max (30-core GPU) is faster than {cpu} from")
    assert page.count('class="whisker"') == 2
    for name in ("fashion-mlp", "mnist-cnn"):
        assert f">{name}</tspan></text>" in page
    for slug in (SLUG, answer["cpu_slug"]):
        assert http.get("/api/v1/cpu-vs-gpu", params={"hardware": slug}).json() == answer
    assert http.get("/api/v1/cpu-vs-gpu?hardware=nope").status_code == 422
    assert answer["pays_from_flops"] == large["flops_per_step"] > small["flops_per_step"]
