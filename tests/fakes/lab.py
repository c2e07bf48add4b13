"""A machine that ``bench-agent watch`` watches: real command, runs and outbox; its frameworks,
drivers, load and clock are as a test says."""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fakes.results import make_machine, make_measurement
from typer.testing import CliRunner, Result

from bench_agent.base.home import Home
from bench_agent.base.messages import Answer, FoundDevice, Job, Probe
from bench_agent.cli import run as cli_run
from bench_agent.cli import watch as command
from bench_agent.cli.main import app
from bench_agent.remote.outbox import Outbox
from bench_agent.run import run
from bench_agent.run.forms import Forms
from bench_agent.run.idle_gate import IdleGate
from bench_agent.run.self_test import SelfTests
from bench_agent.run.sign import RunClock
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.payload import doubts
from bench_protocol.payload.machine import Environment, Machine
from bench_protocol.payload.readings import Conditions
from bench_protocol.payload.result import Failed, Measured

SET = ("--workload", "fashion-mlp", "--budget-seconds", "0.5")
IDLE = Conditions()
BUSY = Conditions(cpu_utilisation_percent=80.0)


@dataclass
class Lab:
    """``fails``: recipes that run out of memory; ``measured``: the cells, in their order."""

    home: Home
    now: datetime = datetime(2026, 3, 2, 3, tzinfo=UTC)
    driver: str = "570.1"
    torch: str = "2.9.0"
    fails: frozenset[str] = frozenset()
    conditions: Conditions = IDLE
    measured: list[Cell] = field(default_factory=list)

    @property
    def machine(self) -> Machine:
        machine = make_machine(gpu=("cuda", "NVIDIA H200", None))
        gpus = (machine.gpus[0].model_copy(update={"driver": self.driver}),)
        return machine.model_copy(update={"gpus": gpus})

    @property
    def software(self) -> Environment:
        return Environment(python="3.11.7", packages={"torch": self.torch, "numpy": "2.0.2"})

    @property
    def probes(self) -> dict[tuple[str | None, str], Probe]:
        cpu = FoundDevice(kind="cpu", index=0, name="CPU")
        return {(None, "torch"): Probe(devices=(cpu,), environment=self.software)}

    def run_job(self, job: Job, *others: Any) -> Answer:
        self.measured.append(job.cell)
        reported = self.software.model_copy(update={"libraries": {"blas": "openblas"}})
        if job.cell.recipe in self.fails:
            failed = Failed(kind="out_of_memory", phase="timing", exception_class="MemoryError")
            return Answer(outcome=failed, environment=reported)
        measured = Measured(measurement=make_measurement(job.cell, 1_000_000))
        return Answer(outcome=measured, environment=reported)

    def look(self, device: Device) -> Conditions:
        return self.conditions

    def watch(self, *options: str) -> Result:
        return CliRunner().invoke(app, ["watch", *SET, *options])

    def document(self, *options: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.watch("--json", *options).stdout)
        return said

    def stored(self) -> int:
        return len(list(Outbox(self.home.outbox).pending()))


def make_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    lab = Lab(Home(tmp_path / "home"))
    monkeypatch.setenv("BENCH_HOME", str(lab.home.root))
    monkeypatch.delenv("BENCH_SERVER", raising=False)
    monkeypatch.setattr(command, "usable_interpreters", lambda home: ())
    monkeypatch.setattr(command, "probe_each", lambda *_: lab.probes)
    monkeypatch.setattr(command, "read_machine", lambda home: lab.machine)
    monkeypatch.setattr(cli_run, "read_machine", lambda home: lab.machine)
    monkeypatch.setattr(run, "read_machine", lambda home: lab.machine)
    monkeypatch.setattr(SelfTests, "refusal", lambda self, planned: None)
    monkeypatch.setattr(Forms, "choice", lambda self, planned: None)
    monkeypatch.setattr(command, "datetime", SimpleNamespace(now=lambda zone: lab.now))
    monkeypatch.setattr(command, "IdleGate", lambda *_, strict: IdleGate(0.0, strict, lab.look))
    monkeypatch.setattr(doubts, "of_other_load", lambda *_: [])  # of the real machine
    clock = partial(RunClock, wall=lambda: lab.now)
    monkeypatch.setattr(
        cli_run,
        "run_plan",
        lambda journal, context: run.run_plan(
            journal, replace(context, run_job=lab.run_job, new_clock=clock)
        ),
    )
    return lab
