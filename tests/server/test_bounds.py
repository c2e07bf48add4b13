"""Bounds of speed: the process's own matrix product, blocks of one length, Winograd's savings."""

from typing import Any

import pytest
from tests.fakes import results

from bench_protocol.catalogue import CATALOGUE, workload_named
from bench_protocol.layers import Dense, Flatten, Residual
from bench_protocol.result import Blocks, Gemm
from bench_protocol.witness import LastBlock
from bench_protocol.workloads import Workload
from bench_server.ingest import bounds, columns, result_checks
from bench_server.ingest.verdicts import CheckVerdict

WORKLOAD = workload_named("mnist-cnn")


def verdict(check: str, **measured: Any) -> CheckVerdict:
    result = results.make_complete(measured=measured)
    return next(verdict for verdict in result_checks.of_result(result) if verdict.check == check)


def product(ratio: float) -> Gemm:
    """A matrix product whose rate is that of the default measurement over ``ratio``."""
    flops = WORKLOAD.training_flops_per_sample * 64 / 1e-3
    size = 4096
    return Gemm(
        size=size, precision="float32", duration_ns=round(2 * size**3 * ratio * 1e9 / flops)
    )


@pytest.mark.parametrize(
    ("ratio", "passes", "effect"),
    [
        (0.14, True, "doubtful"),
        (1.69, True, "doubtful"),
        (3.9, True, "doubtful"),
        (4.1, False, "doubtful"),
        (9.9, False, "doubtful"),
        (10.1, False, "quarantined"),
        (1_515, False, "quarantined"),
    ],
)
def test_a_training_far_above_its_own_matrix_product(
    ratio: float, passes: bool, effect: str
) -> None:
    judged = verdict("own_product", gemm=product(ratio))
    assert (judged.passed, judged.effect, judged.checked) == (passes, effect, True)
    assert judged.figures["ratio"] == pytest.approx(ratio, rel=1e-3)


def test_without_a_matrix_product_nothing_is_compared() -> None:
    judged = verdict("own_product")
    assert (judged.passed, judged.checked) == (True, False)


def blocks(durations_ns: tuple[int, ...], last: LastBlock | None = None) -> Blocks:
    return Blocks(
        steps_per_block=10,
        durations_ns=durations_ns,
        stop_reason="epochs",
        warm_up_steps=0,
        warm_up_ns=0,
        last_block=last,
    )


@pytest.mark.parametrize(
    ("slow", "passes"), [(1, True), (4.4, True), (5.9, True), (6.1, False), (440, False)]
)
def test_few_blocks_that_hold_most_of_the_time(slow: float, passes: bool) -> None:
    """One of ten blocks is this many times as long: the mean is (9 + slow) / 10 medians."""
    judged = verdict(
        "mean_over_median", blocks=blocks((*(10_000_000,) * 9, round(slow * 10_000_000)))
    )
    assert (judged.passed, judged.effect) == (passes, "doubtful")
    assert judged.figures["ratio"] == pytest.approx((9 + slow) / 10)


def test_every_figure_is_of_the_whole_time() -> None:
    """A slow block and the rest of the last epoch count in all figures that are ranked."""
    whole = blocks((10_000_000, 10_000_000, 40_000_000), LastBlock(steps=5, duration_ns=10_000_000))
    result = results.make_complete(measured={"blocks": whole})
    made = columns.of_result(result)
    step_ns = 70_000_000 / 35
    assert made["ns_per_sample"] == pytest.approx(step_ns / 64)
    assert made["samples_per_second"] == pytest.approx(64e9 / step_ns)
    assert made["epoch_ns"] == WORKLOAD.steps_per_epoch(64) * step_ns
    assert made["block_median_ns"] == 10_000_000


def test_speed_is_bounded_by_the_whole_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is ranked; the fastest block alone is bounded by ``possible_speed``."""
    flops = WORKLOAD.training_flops_per_sample * 64 * 1e3
    monkeypatch.setattr(bounds.peaks, "peak_flops", lambda hardware, precision: flops / 3)
    fast = verdict("below_peak", blocks=blocks((10_000_000,) * 10))
    assert not fast.passed
    slow = verdict("below_peak", blocks=blocks((*(10_000_000,) * 9, 110_000_000)))
    assert slow.passed


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda one: one.name)
def test_which_workloads_have_3x3_convolutions(workload: Workload) -> None:
    """Also inside the blocks of ResNet50."""
    names = {"mnist-cnn", "fashion-convnet", "cifar100-vgg16", "resnet50-transfer"}
    assert bounds.has_3x3_convolutions(workload) is (workload.name in names)
    inside = [layer for layer in workload.layers if isinstance(layer, Residual)]
    assert bool(inside) is (workload.name == "resnet50-transfer")
    assert not any(isinstance(layer, Dense | Flatten) for layer in inside)
