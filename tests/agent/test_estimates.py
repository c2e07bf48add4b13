"""Estimates: from earlier repeats of this machine, similar cells, or assumptions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.agent.test_resume import CPU, measure
from tests.fakes.results import make_cell, make_measurement

from bench_agent.base.home import Home
from bench_agent.base.messages import Answer, Job, Probe, Timing
from bench_agent.output.plan_table import long_warning
from bench_agent.plan import estimates
from bench_agent.plan.estimates import OVERHEAD_STEPS, MeasuredTimes, cell_times_of
from bench_agent.plan.plan import Plan, Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.run import calibration
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.payload.result import Blocks, Failed, Gemm

BUDGET = Timing(budget_seconds=10)


def some_times(
    cell: Cell, step_ms: float = 10, wall: float = 12.0, **overrides: Any
) -> estimates.CellTimes:
    """Ten blocks of ten steps: a second at 10 ms a step; the rest of the wall time is overhead."""
    blocks: dict[str, Any] = {
        "steps_per_block": 10,
        "durations_ns": (round(step_ms * 1e7),) * 10,
        "stop_reason": "settled",
        "warm_up_steps": 10,
        "warm_up_ns": 500_000_000,
    }
    measurement = make_measurement(cell, blocks=Blocks(**blocks | overrides))
    return cell_times_of(cell, workload_named(cell.workload), measurement, BUDGET, wall)


def seconds(times: dict[str, estimates.CellTimes], cell: Cell, timing: Timing = BUDGET) -> float:
    return MeasuredTimes(cells=times).repeat_seconds(cell, workload_named(cell.workload), timing)


def test_what_was_measured_before_is_expected_again() -> None:
    cell = make_cell()
    assert seconds({cell.digest: some_times(cell)}, cell) == pytest.approx(12.0)
    unsettled = some_times(cell, stop_reason="budget")
    assert seconds({cell.digest: unsettled}, cell) == pytest.approx(12.0 - 1.0 + 10.0)


def test_epochs_are_counted_in_steps() -> None:
    cell = make_cell("fashion-mlp")
    steps = 2 * workload_named("fashion-mlp").steps_per_epoch(cell.batch_size)
    overhead = 12.0 - 1.0 - 0.5
    expected = pytest.approx(overhead + 0.5 + steps * 0.01)
    times = {cell.digest: some_times(cell)}
    assert seconds(times, cell, Timing(epochs=2)) == expected
    # An epoch takes 3.9 s: 10 s need three.
    longer = pytest.approx(overhead + 0.5 + 3 * steps / 2 * 0.01)
    assert seconds(times, cell, Timing(epochs=2, least_seconds=10)) == longer


def test_a_cell_not_seen_yet_is_inferred_from_its_framework_and_device() -> None:
    seen, new = make_cell(), make_cell("fashion-mlp")
    times = some_times(seen)
    step = estimates.step_flops(new, workload_named("fashion-mlp")) * 0.01 / times.step_flops
    base = 10.5 - OVERHEAD_STEPS * 0.01
    expected = base + OVERHEAD_STEPS * step + 0.5 + 1.0
    assert seconds({seen.digest: times}, new) == pytest.approx(expected)
    elsewhere = make_cell("fashion-mlp", framework="mlx")
    assert seconds({seen.digest: times}, elsewhere) != pytest.approx(expected)


def test_a_larger_step_is_expected_to_come_nearer_to_a_matrix_product() -> None:
    """A quarter of a gigaflop in 10 ms where 50 GFLOP/s are in reach: half is not arithmetic."""
    times = some_times(make_cell()).model_copy(
        update={"step_flops": 2.5e8, "gemm_flops": 50e9 / estimates.BULK_EFFICIENCY}
    )
    assert times.seconds_of_step(2.5e8) == pytest.approx(0.01)
    assert times.seconds_of_step(50e9) == pytest.approx(0.005 + 1.0)
    assert times.model_copy(update={"step_flops": 1e9}).seconds_of_step(10e9) == pytest.approx(0.1)


def test_a_matrix_product_that_was_not_waited_for_sets_no_estimate() -> None:
    """Enqueueing took 150 us: 7 PFLOP/s. VGG16's step is not estimated from that."""
    metal = Device(kind="metal")
    small, large = (make_cell(n, device=metal) for n in ("mnist-cnn", "cifar100-vgg16"))
    gemm = Gemm(size=8192, precision="float32", duration_ns=150_000)
    measurement = make_measurement(small, step_ns=5_000_000, gemm=gemm)
    times = cell_times_of(small, workload_named("mnist-cnn"), measurement, BUDGET, 12.0)
    flops = estimates.step_flops(large, workload_named(large.workload))
    assert times.seconds_of_step(flops) > flops / 4e12


def test_a_step_longer_than_the_budget_is_still_taken_twice() -> None:
    cell = make_cell()
    block = {"steps_per_block": 1, "durations_ns": (3 * 10**10,)}
    estimate = seconds({cell.digest: some_times(cell, step_ms=30_000, wall=1000.0, **block)}, cell)
    assert estimate == pytest.approx(1000.0 - 30.0 - 0.5 + 30.0 + 60.0)


def test_how_long_blocks_take_to_settle_is_learnt_from_all_that_tried() -> None:
    quick, slow = make_cell(), make_cell(recipe="tuned")
    times = {quick.digest: some_times(quick), slow.digest: some_times(slow, stop_reason="budget")}
    new = make_cell("fashion-mlp", framework="mlx")
    alone = seconds({}, new)
    assert alone - seconds(times, new) == pytest.approx(10.0 - (1.0 + 10.0) / 2)


def test_paces_survive_on_disk_and_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    path, cell = tmp_path / "new" / "paces.json", make_cell()
    assert estimates.load(path) == MeasuredTimes()
    estimates.note(path, cell, some_times(cell, step_ms=99))
    estimates.note(path, cell, some_times(cell))
    estimates.note(path, make_cell(recipe="tuned"), some_times(cell))
    assert estimates.load(path).cells[cell.digest] == some_times(cell)
    assert len(estimates.load(path).cells) == 2
    path.write_bytes(path.read_bytes()[:-9])
    assert estimates.load(path) == MeasuredTimes()


HERE = {name: Probe(devices=(CPU,), environment=None) for name in ("mlx", "jax")}


def plan_of(preset: str, home: Home) -> Plan:
    selection = Selection(frameworks=("mlx", "jax"))
    return make_plan(
        PRESETS[preset], selection, HERE, measured_times=estimates.load(home.measured_times)
    )


def test_calibration_runs_the_quickest_cell_of_each_unknown_place(tmp_path: Path) -> None:
    home, jobs, lines = Home(tmp_path), [], []
    before = plan_of("quick", home)
    jax = make_cell(framework="jax")
    estimates.note(home.measured_times, jax, some_times(jax))

    def run_job(job: Job, *others: Any) -> Answer:
        jobs.append(job.cell)
        return measure(job)

    cells = calibration.unknown(before, home)
    calibration.calibrate(cells, home, lines.append, run_job, iter([10.0, 15.0]).__next__)
    assert lines == ["calibrating: mlx on cpu"]
    least = min(
        before.cells, key=lambda p: p.cell.batch_size * p.workload.training_flops_per_sample
    )
    assert [(cell.framework, cell.workload) for cell in jobs] == [("mlx", least.cell.workload)]
    assert calibration.unknown(before, home) == []
    assert plan_of("quick", home).estimate_seconds != before.estimate_seconds


def test_a_plan_of_days_tells_how_to_shorten_it(tmp_path: Path) -> None:
    short = plan_of("smoke", Home(tmp_path))
    assert long_warning(short) is None
    first, *rest = short.cells
    long = replace(short, cells=(first.model_copy(update={"estimate_seconds": 2e5}), *rest))
    line = long_warning(long)
    assert line is not None
    assert "--budget-seconds" in line
    assert "days" in line or " h" in line


def test_calibration_that_fails_leaves_the_assumptions(tmp_path: Path) -> None:
    home = Home(tmp_path)
    failed = Answer(outcome=Failed(kind="crashed", phase="import"), environment=None)
    cells = calibration.unknown(plan_of("quick", home), home)
    calibration.calibrate(cells, home, lambda line: None, lambda *_: failed)
    assert estimates.load(home.measured_times) == MeasuredTimes()


def test_a_short_plan_is_not_worth_a_calibration(tmp_path: Path) -> None:
    assert not calibration.is_worth_it(plan_of("smoke", Home(tmp_path)))
    assert calibration.is_worth_it(plan_of("standard", Home(tmp_path)))
