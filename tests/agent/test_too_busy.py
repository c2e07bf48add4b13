"""A repeat whose times do not fit together is measured again, and then not blamed on its sender."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.agent.test_resume import CPU, NONCE, OPEN, RUN_ID, Quiet
from tests.fakes.results import make_machine, make_measurement, make_result
from typer.testing import CliRunner

from bench_agent.base.home import Home
from bench_agent.base.messages import Answer, BlockDone, Job, PhaseBegan, Probe, WorkerEvent
from bench_agent.cli.main import app
from bench_agent.output.documents import one_line
from bench_agent.plan.plan import Selection, make_plan
from bench_agent.plan.presets import PRESETS
from bench_agent.run import journal, monitor, run
from bench_agent.run.context import RunContext
from bench_agent.run.interrupt import Stop
from bench_agent.run.sign import RunClock
from bench_protocol.payload.machine import Machine
from bench_protocol.payload.result import Failed, Measured, Result, Warn

BUSY = (Warn(code="other_load", figures={"busy_cores": 1.5, "cores": 2.0}),)
SETTINGS = make_result().environment
# The time by which the parent's clock advances in each block.
FILLED, LATE = 1.0, 1.5


class Worker:
    """Answers with 12 blocks of a second, of which the parent sees another time.

    ``seen``: one factor an attempt, the last for all others. ``slowest``: factor of the last block.
    """

    def __init__(self, *seen: float, slowest: int = 1, **answer: Any) -> None:
        self.attempts = self.now_ns = 0
        self._seen, self._slowest, self._answer = seen, slowest, answer

    def __call__(self, job: Job, log: Any, limits: Any, command: Any, heard: Any) -> Answer:
        seen = self._seen[min(self.attempts, len(self._seen) - 1)]
        self.attempts += 1
        tell: Callable[[WorkerEvent], None] = heard
        measured = make_measurement(job.cell, step_ns=10**8)
        *others, last = measured.blocks.durations_ns
        blocks = (*others, last * self._slowest)
        tell(PhaseBegan(phase="timing"))
        for duration_ns in blocks:
            self.now_ns += round(duration_ns * seen)
            tell(BlockDone(duration_ns=duration_ns, steps=10, share_done=0.5))
        timed = measured.blocks.model_copy(update={"durations_ns": blocks})
        outcome = Measured(measurement=measured.model_copy(update={"blocks": timed}))
        return Answer(
            **{"outcome": outcome, "environment": SETTINGS, "warnings": BUSY} | self._answer
        )


@pytest.fixture
def measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Result, list[str]]]:
    def result(
        worker: Worker, machine: Machine | None = None, stop: Stop | None = None
    ) -> tuple[Result, list[str]]:
        monkeypatch.setattr(run, "read_machine", lambda home: machine or make_machine())
        monkeypatch.setattr(monitor, "busy_cores", lambda began, ended: 0.0)
        home, quiet = Home(tmp_path / "home"), Quiet()
        only = Selection(
            frameworks=("mlx",), workloads=("mnist-cnn",), recipes=("tuned",), repeats=1
        )
        here = {"mlx": Probe(devices=(CPU,), environment=None)}
        noted = journal.begin(home, RUN_ID, NONCE, make_plan(PRESETS["smoke"], only, here))
        context = RunContext(
            home,
            quiet,
            gate=OPEN,
            run_job=worker,
            stop=stop or Stop(),
            new_clock=lambda: RunClock(monotonic_ns=lambda: worker.now_ns),
        )
        (measured,) = run.run_plan(noted, context).results
        return measured, quiet.notes

    return result


FAILURE = Failed(kind="diverged", phase="timing", measurement=make_measurement(make_result().cell))


@pytest.mark.parametrize(
    ("worker", "status", "attempts"),
    [
        (Worker(FILLED), "measured", 1),
        (Worker(LATE, outcome=FAILURE), "failed", 1),
        (Worker(FILLED, slowest=20), "measured", 3),  # only doubtful
        # Nothing explains the times, so nothing is said to explain them, and the server judges.
        (Worker(LATE, warnings=()), "measured", 3),
    ],
    ids=["fit", "failed", "uneven", "no load"],
)
def test_what_is_kept_after_how_many_attempts(
    measure: Any, worker: Worker, status: str, attempts: int
) -> None:
    result, _ = measure(worker)
    assert (result.outcome.status, worker.attempts) == (status, attempts)


def test_times_that_do_not_fit_are_measured_again_until_they_do(measure: Any) -> None:
    worker = Worker(LATE, FILLED)
    result, (note,) = measure(worker)
    assert isinstance(result.outcome, Measured)
    assert worker.attempts == 2
    assert "s, and the parent process saw" in note
    assert note.endswith(": measuring again")


@pytest.mark.parametrize(
    "worker", [Worker(LATE), Worker(FILLED, slowest=200)], ids=["late", "slow"]
)
def test_after_three_attempts_a_busy_machine_is_named_with_its_load(
    measure: Any, worker: Worker
) -> None:
    result, notes = measure(worker)
    assert worker.attempts == 3
    assert isinstance(result.outcome, Failed)
    assert (result.outcome.kind, result.outcome.phase) == ("too_busy", "timing")
    assert result.measurement is not None
    assert one_line(result) == "too busy to measure"
    assert notes[-1].startswith("too busy to measure: other programs kept 1.5 of 2 cores busy; its")
    assert "--wait-seconds" in notes[-1]


MACHINE = make_machine()
LIMITED = MACHINE.model_copy(update={"cpu": MACHINE.cpu.model_copy(update={"quota_cores": 0.5})})
THREADS = SETTINGS.model_copy(update={"settings": {"OMP_NUM_THREADS": "48"}})


@pytest.mark.parametrize(
    ("answer", "machine", "words"),
    [
        ({}, LIMITED, "a limit grants 0.5 of 12 cores"),
        ({"environment": THREADS}, MACHINE, "OMP_NUM_THREADS is 48 on 12 cores"),
    ],
)
def test_a_limit_of_the_machine_is_a_load_too(
    measure: Any, answer: dict[str, Any], machine: Machine, words: str
) -> None:
    result, notes = measure(Worker(LATE, warnings=(), **answer), machine)
    assert isinstance(result.outcome, Failed)
    assert words in notes[-1]


def test_nothing_is_measured_again_after_an_interrupt(measure: Any) -> None:
    stop = Stop()

    class Stopping(Worker):
        def __call__(self, *arguments: Any) -> Answer:
            stop.requested = True
            return super().__call__(*arguments)

    worker = Stopping(LATE)
    measure(worker, stop=stop)
    assert worker.attempts == 1


def test_what_was_measured_is_kept_where_measuring_it_again_is_interrupted(
    measure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(Worker):
        def __call__(self, *arguments: Any) -> Answer:
            if self.attempts:
                raise KeyboardInterrupt
            return super().__call__(*arguments)

    stop = Stop()
    result, _ = measure(Interrupted(LATE, warnings=()), stop=stop)
    assert (isinstance(result.outcome, Measured), stop.requested) == (True, True)
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    for command, member in (("status", "pending"), ("report", "results")):
        assert len(json.loads(CliRunner().invoke(app, [command, "--json"]).stdout)[member]) == 1
