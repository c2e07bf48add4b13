"""Self-tests: before a device is measured it shows that its stopwatch and its precision are right.

``self_tests.json`` in the agent's folder keeps each outcome, so that a test runs once; it runs
again when the device, its framework, the interpreter, the driver, the system, a setting that
changes speed or the agent changes.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from bench_protocol.base.units import Wire, plain_text
from bench_protocol.catalogue.matrix import Device, DeviceKind, Precision, Recipe
from bench_protocol.payload import device_bounds
from bench_protocol.payload.hardware import hardware_name
from bench_protocol.payload.machine import Machine
from bench_protocol.payload.result import Failed, Warn

from .. import engines
from ..base.home import Home, write_durably
from ..base.messages import Answer, SelfTestAnswer, SelfTestTask, reason
from ..base.self_test import problems
from ..plan import estimates
from ..plan.plan import PlannedCell
from ..worker.environment import speed_settings
from . import interpreters
from .patience import Place, limits_for, place_of, why_silent
from .worker_process import run_task, worker_command

# Packages of a framework's libraries, cuDNN among them.
LIBRARIES = "nvidia-"
REPEAT = "doctor --deep --only self-test"


class Subject(Wire):
    """The test is run again when any of these changes. ``source``: digest of the agent's files,
    whose synchronisation it is."""

    framework: str
    device: Device
    precision: Precision
    hardware: str
    python: str | None
    packages: dict[str, str]
    driver: str | None
    system: str
    source: str | None
    settings: dict[str, str]


class Kept(Wire):
    """The outcome of a self-test: what is wrong, a sentence each."""

    subject: Subject
    problems: tuple[str, ...]


class _File(Wire):
    """The content of ``self_tests.json``: outcomes by framework, device, precision, interpreter."""

    outcomes: dict[str, Kept] = Field(default={})


@dataclass(frozen=True)
class Outcome:
    """``problems``: what is wrong. ``failed``: how the worker ended if it measured nothing."""

    problems: tuple[str, ...]
    failed: Failed | None = None

    @property
    def words(self) -> str:
        return "; ".join(self.problems)

    @property
    def refusal(self) -> Answer | None:
        """The answer in place of each repeat that may not be measured, or None."""
        if not self.problems:
            return None
        failed = self.failed or Failed(
            kind="wrong_result", phase="start", exception_class="SelfTestFailed"
        )
        told = Warn(code="self_test_failed", figures={"problem": plain_text(self.words)})
        return Answer(outcome=failed, environment=None, warnings=(told,))


class SelfTests:
    """The self-tests of this machine. ``say`` shows a line to the user."""

    def __init__(self, home: Home, machine: Machine, say: Callable[[str], None]) -> None:
        self._home = home
        self._machine = machine
        self._say = say
        self._descriptions: dict[str | None, interpreters.Description | None] = {}
        self._outcomes: dict[tuple[Place, Precision], Outcome] = {}

    def refusal(self, planned: PlannedCell) -> Answer | None:
        """The answer in place of a repeat whose device fails its self-test; None if it passes.

        Raises:
            HomeProblem: the outcome cannot be stored.
        """
        place, precision = place_of(planned), planned.cell.precision
        known = self._outcomes.get((place, precision))
        outcome = known or self.outcome(place, precision)
        if outcome.problems and known is None:
            self._say(
                f"{place} in {precision} fails its self-test and is not measured: {outcome.words}; "
                f"to repeat the test: {self._home.command(REPEAT)}"
            )
        return outcome.refusal

    def outcome(self, place: Place, precision: Precision, *, again: bool = False) -> Outcome:
        """The stored outcome, or that of a test now.

        Args:
            again: test also where an outcome is stored, and replace it.

        Raises:
            HomeProblem: the outcome cannot be stored.
        """
        subject = self._subject(place, precision)
        name = f"{place} {precision} {place.python or ''}".strip()
        kept = _load(self._home).outcomes.get(name)
        if kept and kept.subject == subject and not again:
            outcome = Outcome(kept.problems)
        else:
            answer = self._run(place, precision)
            outcome = self._judged(answer, subject)
            if answer.figures:
                new = Kept(subject=subject, problems=outcome.problems)
                # Read again: another process may have stored an outcome meanwhile.
                outcomes = {**_load(self._home).outcomes, name: new}
                content = _File(outcomes=outcomes).model_dump_json(indent=2)
                write_durably(self._home.self_tests, content.encode())
        self._outcomes[place, precision] = outcome
        return outcome

    def _run(self, place: Place, precision: Precision) -> SelfTestAnswer:
        self._say(f"self-test: {place} in {precision}")
        measured_times = estimates.load(self._home.measured_times)
        if reason := why_silent(place, measured_times):
            self._say(reason)
        framework, device, python = place
        task = SelfTestTask(
            framework=framework,
            device=device,
            precision=precision,
            recipes=recipes_for(framework, device.kind, precision),
        )
        log = log_of(self._home, framework, device, precision)
        limits = limits_for(place, 0.0, measured_times)
        return run_task(task, log, limits, worker_command(python))

    def _judged(self, answer: SelfTestAnswer, subject: Subject) -> Outcome:
        device, precision = subject.device, subject.precision
        if answer.figures is None:
            ended = answer.failed or Failed(kind="crashed", phase="start")
            return Outcome((f"the self-test measured nothing: {reason(ended)}",), ended)
        bound = device_bounds.of_device(self._machine, device, precision)
        flops = bound.flops if bound else None
        return Outcome(tuple(problems(answer.figures, precision, device.kind, flops)))

    def _subject(self, place: Place, precision: Precision) -> Subject:
        framework, device, python = place
        if python not in self._descriptions:
            self._descriptions[python] = interpreters.describe(python)
        there = self._descriptions[python]
        wanted = engines.engine_named(framework).distributions
        packages = there.packages if there else {}
        gpu = self._machine.gpu(device)
        return Subject(
            framework=framework,
            device=device,
            precision=precision,
            hardware=hardware_name(self._machine, device),
            python=python,
            packages={
                name: version
                for name, version in packages.items()
                if name in wanted or name.startswith(LIBRARIES)
            },
            driver=gpu.driver if gpu else None,
            system=f"{self._machine.os.words} {self._machine.os.kernel or ''}".strip(),
            source=there.source if there else None,
            settings=speed_settings(os.environ),
        )


def log_of(home: Home, framework: str, device: Device, precision: Precision) -> Path:
    return home.logs / "self-test" / f"{framework}-{device}-{precision}.log"


def recipes_for(framework: str, kind: DeviceKind, precision: Precision) -> tuple[Recipe, ...]:
    """The recipes that a framework has on a kind of device in a precision; none if it has none."""
    engine = engines.engine_named(framework)
    return tuple(r for r in engine.recipes if engine.why_not(kind, r, precision) is None)


def _load(home: Home) -> _File:
    """The stored outcomes; none if the file is absent, damaged or of another version."""
    try:
        return _File.model_validate_json(home.self_tests.read_bytes())
    except (OSError, ValidationError):
        return _File()
