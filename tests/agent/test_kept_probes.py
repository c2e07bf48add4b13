"""The last answers of the frameworks: which command uses them, and when they are asked again."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bench_agent.base.home import Home
from bench_agent.base.messages import FoundDevice, Probe
from bench_agent.cli import setup
from bench_agent.cli.main import app
from bench_agent.doctor.table import Surroundings
from bench_agent.run import interpreters, kept_probes, probe
from bench_agent.run.interpreters import Interpreter

CPU = Probe(devices=(FoundDevice(kind="cpu", index=0, name="CPU"),), environment=None)
GPU = FoundDevice(kind="cuda", index=0, name="NVIDIA H200", compute_capability="9.0")
LAST = datetime(2026, 11, 27, 15, 30, tzinfo=UTC)


class Machine:
    def __init__(self, home: Home) -> None:
        self.home, self.asked, self.answer = home, 0, CPU
        self.change: dict[str, object] = {"modules": ("mlx.core", "jax")}

    def interpreters(self, **_: object) -> tuple[Interpreter, ...]:
        description = interpreters.own().description
        assert description is not None
        return (Interpreter(None, description.model_copy(update=self.change)),)

    def ask(self, *_: object) -> Probe:
        self.asked += 1
        return self.answer

    def plan(self, *options: str) -> Result:
        done = CliRunner().invoke(app, ["plan", "--preset", "smoke", *options])
        assert done.exit_code == 0, done.output
        return done


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(Home(tmp_path))
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(probe, "probe", made.ask)
    monkeypatch.setattr(interpreters, "every", lambda home, **more: made.interpreters(**more))
    return made


def test_a_second_plan_asks_no_framework_and_says_when_they_were_asked(machine: Machine) -> None:
    first = machine.plan("--json")
    assert "Asking for devices: jax, mlx. This takes some seconds, once." in first.stderr
    assert machine.asked == 2
    kept_probes.keep(machine.home, machine.interpreters(), {(None, "jax"): CPU}, LAST)
    second = machine.plan("--json")
    assert machine.asked == 2
    assert json.loads(second.stdout) == json.loads(first.stdout)
    (line,) = second.stderr.splitlines()
    assert line.startswith("Frameworks and devices as of 2026-11-27 15:30 UTC. To look again: ")
    assert line.endswith("bench-agent doctor")
    assert "as of" in machine.plan("--framework", "mlx").stderr
    assert machine.asked == 2


def other_interpreter(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    python = machine.home.root / "python"
    python.touch()
    monkeypatch.setattr(interpreters.sys, "executable", str(python))  # type: ignore[attr-defined]


def problem(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.answer = Probe(devices=(), environment=None, problem="ImportError: libcudnn")
    setup.probe_frameworks()
    machine.answer, machine.asked = CPU, 2


@pytest.mark.parametrize(
    "change",
    [
        lambda machine, patch: patch.setenv("CUDA_VISIBLE_DEVICES", "1"),
        lambda machine, patch: machine.change.update(installed="0" * 64),
        lambda machine, patch: machine.change.update(modules=("mlx.core", "jax", "torch")),
        lambda machine, patch: machine.home.probes.write_text('{"probes": 7'),
        other_interpreter,
        problem,
    ],
)
def test_a_plan_asks_again_where_something_changed(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Machine, pytest.MonkeyPatch], object],
) -> None:
    machine.plan()
    change(machine, monkeypatch)
    assert "Asking for devices" in machine.plan().stderr
    asked = machine.asked
    assert asked >= 4
    assert "as of" in machine.plan().stderr
    assert machine.asked == asked


@pytest.mark.parametrize(
    "look", [lambda home: setup.probe_frameworks(), lambda home: Surroundings(home).answers]
)
def test_a_run_and_a_doctor_always_ask_and_their_answers_are_kept(
    machine: Machine, look: Callable[[Home], object]
) -> None:
    machine.plan()
    machine.answer = CPU.model_copy(update={"devices": (*CPU.devices, GPU)})
    look(machine.home)
    assert machine.asked == 4
    cells = json.loads(machine.plan("--json").stdout)["cells"]
    assert machine.asked == 4
    assert {cell["device"]["kind"] for cell in cells} == {"cpu", "cuda"}


def test_answers_under_other_settings_are_not_kept(machine: Machine) -> None:
    setup.probe_frameworks(settings=("env", "CUDA_VISIBLE_DEVICES=1"))
    assert not machine.home.probes.exists()
