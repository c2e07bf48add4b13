"""Checks of speed, power, loss and outliers: figures that a right machine cannot have."""

import html
from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.client import Poster
from tests.server.test_result_checks import GPU, verdicts_of

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.readings import Energy
from bench_protocol.payload.result import Evaluation, Result
from bench_server.ingest import columns
from bench_server.projection import outliers
from bench_server.projection.eligibility import eligibility
from bench_server.projection.outliers import of_times
from bench_server.web.description_lists import training_facts


def on_gpu(name: str, samples_per_second: float, precision: str = "float32", **more: Any) -> Result:
    cell = results.make_cell("fashion-mlp", device=GPU, precision=precision)
    step_ns = int(cell.batch_size * 1e9 / samples_per_second)
    return results.make_result(
        cell=cell,
        machine=results.make_machine(gpu=("cuda", name, 132)),
        measurement=results.make_measurement(cell, step_ns, **more),
    )


MLP_FLOPS = workload_named("fashion-mlp").training_flops_per_sample
ENERGY_COLUMNS = ("joules_per_sample", "energy_scope")


@pytest.mark.parametrize(
    ("name", "precision", "teraflops", "passes"),
    [
        ("NVIDIA H200", "float32", 66, True),
        ("NVIDIA H200", "float32", 67 * 1.09, True),
        ("NVIDIA H200", "float32", 67 * 1.12, False),
        ("NVIDIA H200", "tf32", 400, True),
        ("NVIDIA H200", "tf32", 600, False),
        ("NVIDIA H300", "float32", 10_000, True),
    ],
)
def test_speed_above_the_vendors_peak(
    name: str, precision: str, teraflops: float, passes: bool
) -> None:
    verdict = verdicts_of(on_gpu(name, teraflops * 1e12 / MLP_FLOPS, precision))["below_peak"]
    assert (verdict.passed, verdict.effect) == (passes, "quarantined")
    assert ("no bound is known" in verdict.sentence) == (name == "NVIDIA H300")


def with_energy(scope: str, watts: float, seconds: float = 10.5, **machine: Any) -> Result:
    """Energy of this mean power; ``machine``: sockets of its processor, or its GPU's limit."""
    energy = Energy(
        source="nvml",
        scope=scope,
        energy_mj=round(watts * seconds * 1e3),
        window_ns=int(seconds * 1e9),
    )
    result = on_gpu("NVIDIA H200", 1e6, energy=energy)
    gpu = result.machine.gpus[0].model_copy(update={"power_limit_watts": machine.get("limit")})
    cpu = result.machine.cpu.model_copy(update={"sockets": machine.get("sockets")})
    changed = {"gpus": (gpu,), "cpu": cpu}
    return result.model_copy(update={"machine": result.machine.model_copy(update=changed)})


@pytest.mark.parametrize(
    ("scope", "watts", "machine", "wrong"),
    [
        ("cpu_package", 65, {}, ""),
        ("cpu_package", 0.001 / 10.5, {}, "at least 0.3 W"),  # 1 mJ for ten seconds
        ("cpu_package", 0, {}, "at least 0.3 W"),
        ("cpu_package", 0.29, {}, "at least 0.3 W"),
        ("cpu_package", 0.31, {}, ""),
        ("cpu_package", 1_001, {}, "at most 1,000 W"),
        ("cpu_package", 1e6, {}, "at most 1,000 W"),
        ("cpu_package", 1_900, {"sockets": 2}, ""),
        ("cpu_package", 2_100, {"sockets": 2}, "at most 2,000 W"),
        ("cpu_package", 1e6, {"sockets": 6_000}, "at most 8,000 W"),
        ("soc", 1e6, {}, "at most 1,000 W"),
        ("made-up", 1e6, {}, "at most 1,000 W"),
        ("gpu", 1_400, {}, ""),
        ("gpu", 3_100, {}, "at most 3,000 W"),
        ("gpu", 0.001 / 10.5, {"limit": 700.0}, "at least 0.3 W"),
        ("gpu", 730, {"limit": 700.0}, ""),
        ("gpu", 740, {"limit": 700.0}, "the GPU's limit is 700 W"),
    ],
)
def test_an_energy_beyond_its_bounds_is_no_figure(
    scope: str, watts: float, machine: dict[str, Any], wrong: str
) -> None:
    result = with_energy(scope, watts, **machine)
    verdict = verdicts_of(result)["energy"]
    assert (verdict.passed, verdict.effect, verdict.checked) == (not wrong, "doubtful", True)
    assert wrong in verdict.sentence
    stored = columns.of_result(result)
    assert [stored[name] is None for name in ENERGY_COLUMNS] == [bool(wrong)] * 2


def test_an_energy_for_more_flops_a_joule_than_any_device_has_is_no_figure() -> None:
    teraflops = 9_000  # 1.05e13 a joule at 860 W, which is possible on its own
    energy = Energy(source="nvml", scope="gpu", energy_mj=8_600_000, window_ns=10**10)
    result = on_gpu("NVIDIA H300", teraflops * 1e12 / MLP_FLOPS, energy=energy)
    assert "FLOPs a joule" in verdicts_of(result)["energy"].sentence
    assert columns.of_result(result)["joules_per_sample"] is None


def test_without_an_energy_nothing_is_checked() -> None:
    verdict = verdicts_of(on_gpu("NVIDIA H200", 1e6))["energy"]
    assert (verdict.passed, verdict.checked) == (True, False)
    assert verdict.sentence == "it has no energy: not measured"


def test_a_result_with_an_impossible_energy_is_ranked_by_speed_alone(post: Poster) -> None:
    energy = Energy(source="rapl", scope="cpu_package", energy_mj=1, window_ns=10_500_000_000)
    cell = results.make_cell()
    result = post.made(cell=cell, measurement=results.make_measurement(cell, energy=energy))
    answer = post.http.get(f"/api/v1/results/{result}").json()
    assert answer["ranked"]
    for group in ("hardware", "machine", "setup"):
        board = f"/api/v1/leaderboard?workload=mnist-cnn&group={group}"
        assert post.http.get(f"{board}&rank_by=energy").json()["rows"] == []
        (row,) = post.http.get(board).json()["rows"]
        assert row["joules_per_epoch"] is None
    (row,) = (one for one in answer["shows"] if one["what"] == "energy")
    assert row["status"] == "does_not_hold"
    assert html.escape(row["sentence"]) in post.http.get(f"/results/{result}").text


@pytest.mark.parametrize(
    ("loss", "block_count", "effect"),
    [(2.2, 100, None), (2.4, 100, "doubtful"), (3.6, 100, "unranked"), (3.6, 12, None)],
)
def test_the_loss_falls_within_an_epoch(loss: float, block_count: int, effect: str | None) -> None:
    evaluation = Evaluation(epochs=0, samples=10_000, loss=loss, accuracy=0.1)
    measurement = results.make_measurement(
        results.make_cell(), block_count=block_count, evaluation=evaluation
    )
    verdict = verdicts_of(results.make_result(measurement=measurement))["falling_loss"]
    assert (None if verdict.passed else verdict.effect) == effect
    assert verdict.checked is (block_count == 100)


@pytest.mark.parametrize("workload", ["mnist-cnn", "resnet50-transfer"])
def test_a_loss_that_is_no_number_is_a_doubt(workload: str) -> None:
    evaluation = Evaluation(epochs=0, samples=10_000, loss=None, accuracy=0.1)
    cell = results.make_cell(workload)
    measurement = results.make_measurement(cell, evaluation=evaluation)
    verdict = verdicts_of(results.make_result(cell=cell, measurement=measurement))["falling_loss"]
    assert (verdict.passed, verdict.checked, verdict.effect) == (False, True, "doubtful")


@pytest.mark.parametrize(
    ("peers", "passes"),
    [
        ((1.0, 1.01, 0.99, 1.02, 0.98), True),
        ((2.0, 2.02, 1.98, 2.01, 1.99), False),
        ((0.5, 0.51, 0.49, 0.505, 0.495), False),
        ((2.0, 2.0, 2.0, 2.0), True),
        ((1.05, 1.05, 1.05, 1.05, 1.05), True),
        ((0.4, 1.0, 1.8, 2.5, 4.0), True),
    ],
)
def test_outliers_among_owners(peers: tuple[float, ...], passes: bool) -> None:
    own_ns = 1_000_000 / 64
    others = of_times([own_ns * peer for peer in peers])
    verdict = verdicts_of(results.make_result(), others)["outlier"]
    assert verdict.passed is passes
    assert verdict.checked is (len(peers) >= outliers.OWNERS_FOR_OUTLIERS)


@pytest.mark.parametrize(
    ("faster", "effect"),
    [
        *((1.9, "doubtful"), (2.1, "quarantined"), (1_490.0, "quarantined")),
        *((1 / 1.9, "doubtful"), (1 / 2.1, "quarantined"), (0.001, "quarantined")),
    ],
)
def test_an_outlier_far_from_others_is_held_back(faster: float, effect: str) -> None:
    times = [faster * 1_000_000 / 64 * peer for peer in (1.0, 1.01, 0.99, 1.02, 0.98)]
    verdicts = verdicts_of(results.make_complete(), of_times(times))
    assert (verdicts["outlier"].passed, verdicts["outlier"].effect) == (False, effect)
    judged = eligibility([one for name, one in verdicts.items() if name != "clocks"], 0)
    assert judged.rankable is (effect == "doubtful")
    assert judged.trust_level == 2
    if not judged.rankable:
        assert "held back for review" in str(judged.unranked_reason)
    slow = "far below the other owners of this hardware: a power limit"
    assert (slow in verdicts["outlier"].sentence) is (faster < 1)


@pytest.mark.parametrize(("epochs", "words"), [(10, ["0.0 %"]), (0, [])])
def test_no_accuracy_is_not_an_accuracy_of_zero(epochs: int, words: list[str]) -> None:
    cell = results.make_cell()
    evaluation = Evaluation(epochs=epochs, samples=10_000, loss=2.3, accuracy=0.0)
    measurement = results.make_measurement(cell).model_copy(update={"evaluation": evaluation})
    facts = training_facts(results.make_result(cell=cell, measurement=measurement))
    assert [fact.value for fact in facts if fact.label == "Test accuracy"] == words
