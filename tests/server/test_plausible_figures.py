"""Checks of speed, power, loss and outliers: figures that a right machine cannot have."""

from typing import Any

import pytest
from tests.fakes import results
from tests.server.test_result_checks import GPU, verdicts_of

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.readings import Energy
from bench_protocol.payload.result import Result
from bench_server.projection import outliers
from bench_server.projection.eligibility import eligibility
from bench_server.projection.outliers import of_times


def on_gpu(name: str, samples_per_second: float, precision: str = "float32", **more: Any) -> Result:
    cell = results.make_cell("fashion-mlp", device=GPU, precision=precision)
    step_ns = int(cell.batch_size * 1e9 / samples_per_second)
    return results.make_result(
        cell=cell,
        machine=results.make_machine(gpu=("cuda", name, 132)),
        measurement=results.make_measurement(cell, step_ns, **more),
    )


MLP_FLOPS = workload_named("fashion-mlp").training_flops_per_sample


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


@pytest.mark.parametrize(("watts", "passes"), [(699, True), (730, True), (740, False)])
def test_mean_power_within_the_limit(watts: int, passes: bool) -> None:
    result = on_gpu(
        "NVIDIA H200",
        1e6,
        energy=Energy(source="nvml", scope="gpu", energy_mj=watts * 10_000, window_ns=10**10),
    )
    gpu = result.machine.gpus[0].model_copy(update={"power_limit_watts": 700.0})
    machine = result.machine.model_copy(update={"gpus": (gpu,)})
    verdict = verdicts_of(result.model_copy(update={"machine": machine}))["mean_power"]
    assert (verdict.passed, verdict.effect) == (passes, "doubtful")
    assert verdict.checked
    unlimited = verdicts_of(result)["mean_power"]
    assert unlimited.passed
    assert not unlimited.checked


@pytest.mark.parametrize(
    ("loss", "block_count", "passes"),
    [(2.2, 100, True), (2.4, 100, True), (3.5, 100, False), (3.5, 12, True)],
)
def test_the_loss_falls_within_an_epoch(loss: float, block_count: int, passes: bool) -> None:
    cell = results.make_cell()
    measurement = results.make_measurement(cell, block_count=block_count, last_loss=loss)
    assert (
        verdicts_of(results.make_result(measurement=measurement))["falling_loss"].passed is passes
    )


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
