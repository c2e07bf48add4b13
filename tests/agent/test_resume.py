"""Journal and resume: an interrupted run continues, and no repeat is measured or stored twice."""

import gc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.outboxes import put
from tests.fakes.results import make_measurement, make_result
from typer.testing import CliRunner

from bench_agent.base.errors import ServerUnreachable, UsageProblem
from bench_agent.base.home import Home
from bench_agent.base.messages import Answer, BlockDone, FoundDevice, Job, PhaseBegan, Probe
from bench_agent.cli.main import app
from bench_agent.output.report.figures import report_of
from bench_agent.plan import estimates
from bench_agent.plan.plan import Plan, PlannedCell, Selection, make_plan
from bench_agent.plan.presets import LIKE, PRESETS, Preset
from bench_agent.remote.outbox import Outbox
from bench_agent.remote.submit import Delivery
from bench_agent.run import journal, posting
from bench_agent.run.context import RunContext
from bench_agent.run.idle_gate import IdleGate
from bench_agent.run.interrupt import Stop
from bench_agent.run.run import run_plan
from bench_agent.run.summary import RunSummary
from bench_agent.run.telemetry import Reading
from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.matrix import Cell
from bench_protocol.payload.readings import Conditions
from bench_protocol.payload.result import Measured, Result

CPU = FoundDevice(kind="cpu", index=0, name="CPU")
NONCE = "0" * 64
RUN_ID = "a" * 32
OPEN = IdleGate(look=lambda device: Conditions())
CLOSED = IdleGate(strict=True, look=lambda device: Conditions(on_battery=True))


class Quiet:
    def __init__(self) -> None:
        self.skips = 0
        self.notes: list[str] = []
        self.left: list[PlannedCell] = []

    def planned(self, plan: Plan, left: Sequence[PlannedCell]) -> None:
        self.left = list(left)

    def skipped(self, planned: PlannedCell) -> None:
        self.skips += 1

    def started(self, repeat: int, planned: PlannedCell) -> None: ...

    def heard(self, message: PhaseBegan | BlockDone) -> None: ...

    def sensed(self, reading: Reading) -> None: ...

    def finished(self, result: Result) -> None: ...

    def delivered(self, delivery: Delivery) -> None: ...

    def unreachable(self, error: ServerUnreachable) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)


def measured(cell: Cell, **figures: Any) -> Answer:
    return Answer(outcome=Measured(measurement=make_measurement(cell, **figures)), environment=None)


def measure(job: Job, *others: Any) -> Answer:
    return measured(job.cell)


def stop_at(number: int, how: Callable[[], Answer]) -> Callable[..., Answer]:
    calls = 0

    def run_job(job: Job, *others: Any) -> Answer:
        nonlocal calls
        calls += 1
        return how() if calls == number else measure(job)

    return run_job


def interrupt() -> Answer:
    raise KeyboardInterrupt


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def begun(home: Home) -> journal.Journal:
    here = {"mlx": Probe(devices=(CPU,), environment=None)}
    selection = Selection(frameworks=("mlx",), repeats=2)
    return journal.begin(home, RUN_ID, NONCE, make_plan(PRESETS["smoke"], selection, here))


def stored_repeats(home: Home) -> set[tuple[str, int]]:
    results = [entry.result() for entry in Outbox(home.outbox).pending()]
    assert len({(r.cell.digest, r.repeat) for r in results}) == len(results)
    return {(r.cell.digest, r.repeat) for r in results}


def go_on(
    home: Home, run_job: Callable[..., Answer] = measure, gate: IdleGate = OPEN
) -> tuple[RunSummary, Quiet]:
    waiting = journal.unfinished(home)
    assert waiting is not None
    quiet = Quiet()
    return run_plan(waiting, RunContext(home, quiet, run_job=run_job, gate=gate)), quiet


def test_a_run_begins_with_what_its_results_cannot_have_and_what_it_resumes(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_to_plan(*_: object, **__: object) -> None:
        raise UsageProblem("planned")

    monkeypatch.setenv("BENCH_HOME", str(home.root))
    monkeypatch.setattr("bench_agent.cli.run.planned", nothing_to_plan)
    monkeypatch.setattr("bench_agent.cli.run.consent_before", lambda *_: True)

    def said(*options: str) -> str:
        return CliRunner().invoke(app, ["run", *options]).stderr

    first, second, *_ = said("--resume").split("\n")
    assert first.startswith("Without --server these results can be shown later, but never ranked")
    assert "add --server URL" in first
    assert second == "There is no run yet: --resume starts a new one, with --preset quick."
    assert "ranked" not in said("--server", "http://server.test")
    put(Outbox(home.outbox), make_result())
    words = "The last run is complete: --resume starts a new one, with --preset smoke."
    assert said("--resume", "--preset", "smoke").split("\n")[1] == words
    begun(home)
    monkeypatch.setattr("bench_agent.cli.run.run_plan", nothing_to_plan)
    assert "new one" not in said("--resume")


@pytest.mark.parametrize("cut_at", range(1, 9))
def test_a_run_cut_off_anywhere_goes_on_with_the_first_missing_repeat(
    home: Home, cut_at: int
) -> None:
    planned = [note.cell for note in begun(home).cells]
    cut_off, _ = go_on(home, stop_at(cut_at, interrupt))
    assert cut_off.interrupted
    assert len(stored_repeats(home)) == cut_at - 1
    summary, quiet = go_on(home)
    assert quiet.skips == cut_at - 1
    assert len(quiet.left) == 8 - quiet.skips
    assert len(summary.results) == 8
    assert len(stored_repeats(home)) == 8
    assert {r.run_id for r in summary.results} == {RUN_ID}
    assert [figures.cell for figures in report_of(summary.results).cells] == planned
    assert journal.unfinished(home) is None


def test_a_run_beside_a_server_that_is_away_says_what_it_can_never_have(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posting, "Client", WithoutChallenge)
    monkeypatch.setattr(posting, "submit", lambda client, outbox: iter(()))
    said: list[str] = []
    quiet = Quiet()
    quiet.unreachable = lambda error: said.append(str(error))  # type: ignore[method-assign]
    run_plan(begun(home), RunContext(home, quiet, "http://s", run_job=measure, gate=OPEN))
    assert said[0].endswith("away; what is measured without its challenge can never be ranked")


def test_a_run_on_a_busy_machine_says_what_it_does(home: Home) -> None:
    begun(home)
    busy = Conditions(cpu_utilisation_percent=97.0)
    _, quiet = go_on(home, gate=IdleGate(look=lambda device: busy))
    (note,) = quiet.notes  # between repeats only heat counts
    assert note == (
        "the processor was 97 % busy before the start: measuring anyway, with this warning"
    )


class WithoutChallenge:
    server = "http://server.test"

    def __init__(self, *about: object, **more: object) -> None: ...

    def knock(self) -> None: ...

    def challenge(self, run_id: str) -> None:
        raise ServerUnreachable("away")

    def result_on_board(self, result_id: str) -> None: ...

    def close(self) -> None: ...


def test_results_of_earlier_runs_are_counted_apart(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sent(client: WithoutChallenge, outbox: Outbox) -> Iterator[Delivery]:
        for entry in list(outbox.pending()):
            yield Delivery(outbox.move(entry, "sent", {}), "sent", {"id": "r"})

    monkeypatch.setattr(posting, "Client", WithoutChallenge)
    monkeypatch.setattr(posting, "submit", sent)
    begun(home)
    cut_off, _ = go_on(home, stop_at(3, interrupt))
    put(Outbox(home.outbox), make_result())
    resumed = journal.unfinished(home)
    assert resumed is not None
    context = RunContext(home, Quiet(), WithoutChallenge.server, run_job=measure, gate=OPEN)
    summary = run_plan(resumed, context)
    assert cut_off.sent == 0
    assert (len(summary.results), summary.sent, summary.sent_earlier) == (8, 9, 1)


def test_a_strict_refusal_leaves_a_run_to_resume_only_where_something_was_measured(
    home: Home,
) -> None:
    begun(home)
    with pytest.raises(UsageProblem, match="battery"):
        go_on(home, gate=CLOSED)
    assert journal.unfinished(home) is None
    begun(home)
    go_on(home, stop_at(2, interrupt))
    with pytest.raises(UsageProblem, match="battery"):
        go_on(home, gate=CLOSED)
    assert len(go_on(home)[0].results) == 8


def test_a_run_notes_the_times_of_every_cell_and_what_is_doubtful(home: Home) -> None:
    begun(home)
    summary, _ = go_on(home, lambda job, *_: measured(job.cell, block_count=3))
    assert set(estimates.load(home.measured_times).cells) == {
        digest for digest, _ in stored_repeats(home)
    }
    assert all("few_blocks" in {w.code for w in result.warnings} for result in summary.results)


def test_a_run_keeps_none_of_its_results_in_memory(home: Home) -> None:
    def results_in_memory() -> int:
        gc.collect()
        return sum(isinstance(each, Result) for each in gc.get_objects())

    before = results_in_memory()
    begun(home)
    go_on(home, stop_at(5, interrupt))
    summary, _ = go_on(home)  # with repeats that were skipped and repeats that were measured
    assert len(summary.entries) == 8
    assert results_in_memory() - before <= 1
    assert len(summary.results) == 8


def test_without_a_server_the_runs_own_nonce_seeds_sessions(home: Home) -> None:
    jobs: list[Job] = []

    def noted(job: Job, *others: Any) -> Answer:
        jobs.append(job)
        return measure(job)

    begun(home)
    summary, _ = go_on(home, noted)
    for job, result in zip(jobs, summary.results, strict=True):
        seed = nonces.seed_of(NONCE, job.cell.workload_digest)
        assert (job.seed, result.seed, result.nonce) == (seed, seed, NONCE)
        assert result.challenge is None


@pytest.mark.parametrize("preset", [PRESETS["standard"], LIKE["m2-max-article"]])
def test_accuracy_passes_and_published_epochs_come_back_too(home: Home, preset: Preset) -> None:
    here = {"tensorflow": Probe(devices=(CPU,), environment=None)}
    selection = Selection(frameworks=("tensorflow",), workloads=("fashion-mlp",))
    made = make_plan(preset, selection, here)
    journal.begin(home, RUN_ID, NONCE, made)
    again = journal.unfinished(home)
    assert again is not None
    assert again.plan().preset == preset
    resumed, wanted = (
        [(repeat, planned.cell.digest, planned.timing) for repeat, planned in plan]
        for plan in (again.plan(), made)
    )
    assert resumed == wanted


def test_a_first_interrupt_ends_after_the_repeat(home: Home) -> None:
    stop = Stop()

    def ask() -> Answer:
        stop.requested = True
        return measured(waiting.cells[2].cell)

    waiting = begun(home)
    context = RunContext(home, Quiet(), stop=stop, run_job=stop_at(3, ask), gate=OPEN)
    assert run_plan(waiting, context).interrupted
    assert len(stored_repeats(home)) == 3
