"""Bounds of speed: the process's own matrix product, blocks of one length, Winograd's savings."""

from typing import Any

import numpy as np
import pytest
from tests.fakes import results

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import PRODUCTS, Device
from bench_protocol.payload import device_bounds
from bench_protocol.payload.block_times import DOUBTFUL_MEAN
from bench_protocol.payload.result import Blocks, Gemm, Result
from bench_protocol.payload.witness import LastBlock
from bench_server.checks import table as result_checks
from bench_server.checks.verdicts import CheckVerdict
from bench_server.ingest import columns

WORKLOAD = workload_named("mnist-cnn")


def judged(result: Result, check: str) -> CheckVerdict:
    return next(verdict for verdict in result_checks.of_result(result) if verdict.check == check)


def verdict(check: str, **measured: Any) -> CheckVerdict:
    return judged(results.make_complete(measured=measured), check)


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
        (3.9, True, "doubtful"),
        (4.1, False, "doubtful"),
        (9.9, False, "doubtful"),
        (10.1, False, "quarantined"),
    ],
)
def test_a_training_far_above_its_own_matrix_product(
    ratio: float, passes: bool, effect: str
) -> None:
    found = verdict("own_product", gemm=product(ratio))
    assert (found.passed, found.effect, found.checked) == (passes, effect, True)
    assert found.figures["ratio"] == pytest.approx(ratio, rel=1e-3)


@pytest.mark.parametrize(("precision", "wanted"), PRODUCTS.items())
def test_the_product_has_the_number_format_of_the_cell(precision: Any, wanted: str) -> None:
    cell = results.make_cell(precision=precision)
    right = product(1).model_copy(update={"precision": wanted})
    other = product(1).model_copy(update={"precision": "float64"})
    for gemm, checked in ((right, True), (other, False), (None, False)):
        found = judged(results.make_complete(cell, gemm=gemm), "own_product")
        assert (found.passed, found.effect, found.checked) == (checked, "doubtful", checked)


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
    ("slow", "passes", "effect"),
    [
        (1, True, "doubtful"),
        (5.9, True, "doubtful"),
        (6.1, False, "doubtful"),
        (90, False, "doubtful"),
        (92, False, "quarantined"),
    ],
)
def test_few_blocks_that_hold_most_of_the_time(slow: float, passes: bool, effect: str) -> None:
    """One of ten blocks is this many times as long: the mean is (9 + slow) / 10 medians."""
    uneven = blocks((*(10_000_000,) * 9, round(slow * 10_000_000)))
    found = verdict("mean_over_median", blocks=uneven)
    assert (found.passed, found.effect) == (passes, effect)
    assert found.figures["ratio"] == pytest.approx((9 + slow) / 10)
    assert found.sentence.startswith(f"its block times are {'even' if passes else 'uneven'}: ")
    assert found.sentence.endswith(f" times their median; the limit is {DOUBTFUL_MEAN:g}")


@pytest.mark.parametrize(("noise", "epoch_blocks"), [(0.05, 2), (0.1, 4), (0.3, 25)])
def test_honest_runs_are_never_quarantined_for_the_ends_of_epochs(
    noise: float, epoch_blocks: int
) -> None:
    """Each epoch's end takes 14 blocks more, as the slowest of ``model.fit``; others are noisy."""
    random = np.random.default_rng(seed=11)
    for _ in range(100):
        steady, ends = (1e7 * random.lognormal(0, noise, (2, 100))).astype(int)
        assert verdict("mean_over_median", blocks=blocks(tuple(steady.tolist()))).passed
        ends[::epoch_blocks] += 140_000_000
        assert verdict("mean_over_median", blocks=blocks(tuple(ends.tolist()))).effect == "doubtful"


def test_every_figure_is_of_the_whole_time() -> None:
    """A slow block and the rest of the last epoch count in all figures that are ranked."""
    whole = blocks((10_000_000, 10_000_000, 40_000_000), LastBlock(steps=5, duration_ns=10_000_000))
    made = columns.of_result(results.make_complete(measured={"blocks": whole}))
    step_ns = 70_000_000 / 35
    assert made["ns_per_sample"] == pytest.approx(step_ns / 64)
    assert made["samples_per_second"] == pytest.approx(64e9 / step_ns)
    assert made["epoch_ns"] == WORKLOAD.steps_per_epoch(64) * step_ns


def test_speed_is_bounded_by_the_whole_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is ranked; the fastest block alone is bounded by ``possible_speed``."""
    flops = WORKLOAD.training_flops_per_sample * 64 * 1e3
    bound = device_bounds.Bound(flops / 3, "the vendor's peak")
    monkeypatch.setattr(device_bounds, "of_device", lambda machine, device, precision: bound)
    for last_ns, passes in ((10_000_000, False), (110_000_000, True)):
        times = blocks((*(10_000_000,) * 9, last_ns))
        assert verdict("below_peak", blocks=times, gemm=product(4)).passed is passes


def test_winograd_saves_products_inside_residual_blocks_too() -> None:
    """2.4 times the peak of a T4: above 1.1 times, below 2.25 times that."""
    workload = workload_named("resnet50-transfer")
    cell = results.make_cell(workload.name, device=Device(kind="cuda"))
    machine = results.make_machine(gpu=("cuda", "Tesla T4", 40))
    for times, passes in ((2.4, True), (2.6, False)):
        flops = times * 8.1e12
        step_ns = int(cell.batch_size * workload.training_flops_per_sample * 1e9 / flops)
        made = results.make_result(cell=cell, machine=machine, step_ns=step_ns)
        found = judged(made, "below_peak")
        limit = "; the limit is 20 TFLOP/s: the vendor's peak, 8.1 TFLOP/s, times 1.1 for clocks"
        assert f"{limit} and 2.25 for 3x3 convolutions" in found.sentence
        assert found.passed is passes


def test_a_matrix_product_above_the_bound_is_quarantined() -> None:
    """A product that no such device computes bounds nothing. It has no 3x3 convolutions."""
    size = 8192
    fast = Gemm(size=size, precision="float32", duration_ns=round(2 * size**3 / 3e12 * 1e9))
    found = verdict("below_peak", gemm=fast)
    assert (found.passed, found.effect) == (False, "quarantined")
    assert found.figures["product_flops"] == pytest.approx(3e12, rel=1e-3)
    assert verdict("below_peak", gemm=product(0.5)).passed
