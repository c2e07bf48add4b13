"""How long a first repeat may be silent: TensorFlow's kernels for new NVIDIA GPUs are compiled."""

from pathlib import Path

import pytest
from tests.agent.test_resume import OPEN, Quiet, measure
from tests.fakes.results import make_measurement

from bench_agent.base.home import Home
from bench_agent.base.messages import Answer, FoundDevice, Job, Probe
from bench_agent.plan.plan import Plan, Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.run import calibration, journal
from bench_agent.run.patience import PTX_SECONDS
from bench_agent.run.run import run_plan
from bench_agent.run.worker_process import Limits, Listener
from bench_protocol.result import Conditions, Measured


class Notes(Quiet):
    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def plan_on(kind: str, framework: str) -> Plan:
    gpu = FoundDevice(kind=kind, index=0, name="NVIDIA B200")
    selection = Selection(frameworks=(framework,), workloads=("mnist-cnn",))
    probes = {framework: Probe(devices=(gpu,), environment=None)}
    return make_plan(PRESETS["smoke"], selection, probes)


def run_on(home: Home, kind: str, framework: str) -> tuple[list[Limits], list[str]]:
    """The limits of each repeat, and what the user was told."""
    limits_of: list[Limits] = []

    def run_job(job: Job, log: Path, limits: Limits, listener: Listener) -> Answer:
        limits_of.append(limits)
        return measure(job, log, limits, listener)

    notes = Notes()
    begun = journal.begin(home, "a" * 32, "0" * 64, plan_on(kind, framework))
    run_plan(begun, home, None, notes, run_job=run_job, gate=OPEN)
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


def test_a_calibration_may_compile_too(tmp_path: Path) -> None:
    lines: list[str] = []
    silences: list[float] = []

    def run_job(job: Job, log: Path, limits: Limits, python: str | None) -> Answer:
        silences.append(limits.silence_seconds)
        return Answer(outcome=Measured(measurement=make_measurement(job.cell)), environment=None)

    cells = list(plan_on("cuda", "tensorflow").cells)[:1]
    calibration.calibrate(
        cells, Home(tmp_path), lines.append, run_job, look=lambda device: Conditions()
    )
    assert silences == [PTX_SECONDS]
    assert any("PTX" in line for line in lines)
