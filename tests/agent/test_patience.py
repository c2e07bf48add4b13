"""How long a first repeat may be silent: TensorFlow's kernels for new NVIDIA GPUs are compiled."""

from pathlib import Path
from typing import Any

import pytest
from tests.agent.test_resume import OPEN, Quiet, measure
from tests.fakes.results import make_machine, make_measurement

from bench_agent.base.home import Home
from bench_agent.base.messages import Answer, FoundDevice, Job, Probe, SelfTestAnswer, SelfTestTask
from bench_agent.plan.estimates import MeasuredTimes, cell_times_of
from bench_agent.plan.plan import Plan, Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.run import journal, self_test
from bench_agent.run.context import RunContext
from bench_agent.run.patience import PTX_SECONDS, Place, limits_for, limits_in_turns, why_silent
from bench_agent.run.run import run_plan
from bench_agent.run.self_test import SelfTests
from bench_agent.run.worker_process import IN_TURNS, Limits
from bench_protocol.catalogue.matrix import Device


def plan_on(kind: str, framework: str) -> Plan:
    gpu = FoundDevice(kind=kind, index=0, name="NVIDIA B200")
    selection = Selection(frameworks=(framework,), workloads=("mnist-cnn",))
    probes = {framework: Probe(devices=(gpu,), environment=None)}
    return make_plan(PRESETS["smoke"], selection, probes)


def run_on(home: Home, kind: str, framework: str) -> tuple[list[Limits], list[str]]:
    limits_of: list[Limits] = []

    def run_job(job: Job, log: Path, limits: Limits, *others: Any) -> Answer:
        limits_of.append(limits)
        return measure(job)

    notes = Quiet()
    begun = journal.begin(home, "a" * 32, "0" * 64, plan_on(kind, framework))
    run_plan(begun, RunContext(home, notes, run_job=run_job, gate=OPEN))
    return limits_of, notes.notes


def test_the_first_repeat_of_tensorflow_on_cuda_may_compile(tmp_path: Path) -> None:
    (first, *others), notes = run_on(Home(tmp_path), "cuda", "tensorflow")
    assert first.silence_seconds == PTX_SECONDS
    assert first.total_seconds > PTX_SECONDS
    assert others
    assert all(limits.silence_seconds == Limits().silence_seconds for limits in others)
    (told,) = notes
    assert "PTX" in told
    assert "60 minutes" in told


@pytest.mark.parametrize(("kind", "framework"), [("cuda", "mlx"), ("cpu", "tensorflow")])
def test_no_other_repeat_is_waited_for_so_long(tmp_path: Path, kind: str, framework: str) -> None:
    limits, notes = run_on(Home(tmp_path), kind, framework)
    assert {one.silence_seconds for one in limits} == {Limits().silence_seconds}
    assert notes == []


TENSORFLOW = Place("tensorflow", Device(kind="cuda"), None)


def times_under(python: str | None) -> MeasuredTimes:
    planned = plan_on("cuda", "tensorflow").cells[0]
    measurement, timing = make_measurement(planned.cell), planned.timing
    times = cell_times_of(planned.cell, planned.workload, measurement, timing, 20.0, python)
    return MeasuredTimes(cells={planned.cell.digest: times})


def test_a_first_process_under_another_interpreter_may_compile_again() -> None:
    other = TENSORFLOW._replace(python="/other/bin/python")
    for known, unknown in ((TENSORFLOW, other), (other, TENSORFLOW)):
        times = times_under(known.python)
        assert why_silent(known, times) is None
        assert limits_for(known, 0.0, times).silence_seconds == Limits().silence_seconds
        assert limits_for(unknown, 0.0, times).silence_seconds == PTX_SECONDS
    assert "/other/bin/python" in str(why_silent(other, MeasuredTimes()))


def test_sides_of_ab_wait_as_long_as_a_run() -> None:
    """While one side compiles, the other is stopped."""
    slow, quick = plan_on("cuda", "tensorflow").cells[0], plan_on("cuda", "torch").cells[0]
    first = limits_in_turns((quick, slow), MeasuredTimes())
    assert first.silence_seconds == PTX_SECONDS
    assert first.total_seconds > PTX_SECONDS
    assert first.stall_seconds == IN_TURNS.stall_seconds
    for sides, times in (((quick, slow), times_under(None)), ((quick, quick), MeasuredTimes())):
        assert limits_in_turns(sides, times) == IN_TURNS


def test_a_self_test_may_compile_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silences: list[float] = []

    def run(task: SelfTestTask, log: Path, limits: Limits, *others: Any) -> SelfTestAnswer:
        silences.append(limits.silence_seconds)
        return SelfTestAnswer(figures=None)

    monkeypatch.setattr(self_test, "run_task", run)
    lines: list[str] = []
    SelfTests(Home(tmp_path), make_machine(), lines.append).outcome(TENSORFLOW, "float32")
    assert silences == [PTX_SECONDS]
    assert any("PTX" in line for line in lines)
