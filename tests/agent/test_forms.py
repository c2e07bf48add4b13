"""The forms of a cell's step: measured one by one, the fastest right one is chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from tests.agent.test_ab import a_side, measures
from tests.fakes.engine import FakeEngine
from tests.fakes.workloads import TINY, job_of

from bench_agent.base.messages import FormAnswer, FormChoice, Job
from bench_agent.run import ab
from bench_agent.run.forms import Forms
from bench_agent.run.patience import (
    FORM_SECONDS,
    PTX_SECONDS,
    Place,
    form_limits,
    with_form,
)
from bench_agent.run.worker_process import Limits, run_form, run_job, worker_command
from bench_agent.worker import forms as worker_forms
from bench_agent.worker import main as worker
from bench_protocol.catalogue import workload_named
from bench_protocol.matrix import Cell, Device
from bench_protocol.result import Failed, Measured, Trace

CUDA, COMMAND = Device(kind="cuda"), ("worker",)
RIGHT = Trace(optimizer="workload", batch_size=32, seed="0" * 32, losses=(2.3, 2.2), movements=(1,))
PLAIN, GRAPH, COMPILED = "eager", "cuda_graph", "compiled_cuda_graph"


def on_cuda(name: str = "fashion-mlp") -> Job:
    job = job_of(workload_named(name), "torch")
    cell = job.cell.model_copy(update={"device": CUDA, "recipe": "tuned"})
    return job.model_copy(update={"cell": cell})


def figures(step_us: float, **changes: Any) -> FormAnswer:
    fields = {"step_ns": step_us * 1000, "trace": RIGHT}
    return FormAnswer(**{**fields, **changes})


def other_losses(*losses: float | None) -> Trace:
    return RIGHT.model_copy(update={"losses": losses})


@dataclass
class Machine:
    """What each form gives here."""

    answers: dict[str, FormAnswer | Failed]
    ran: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def run(
        self, job: Job, form: str, log: Path, limits: Limits, command: Sequence[str]
    ) -> FormAnswer | Failed:
        self.ran.append(form)
        return self.answers[form]

    def choice(self, job: Job | None = None) -> FormChoice | None:
        forms = Forms(self.said.append, self.run)
        return forms.chosen(job or on_cuda(), Path("0001.log"), Limits(), COMMAND).form


def test_the_fastest_right_form_is_chosen_and_all_are_told() -> None:
    answers = {PLAIN: figures(900), GRAPH: figures(80.04), COMPILED: figures(95)}
    machine = Machine(answers)
    choice = machine.choice()
    assert choice is not None
    assert choice.name == GRAPH
    assert choice.tried == {
        PLAIN: "900.0 us a step",
        GRAPH: "80.0 us a step",
        COMPILED: "95.0 us a step",
    }
    assert machine.ran == [PLAIN, GRAPH, COMPILED]
    assert any("form cuda_graph" in line and "95.0 us" in line for line in machine.said)


def test_a_form_that_wins_nothing_is_not_taken() -> None:
    choice = Machine(dict.fromkeys((PLAIN, GRAPH, COMPILED), figures(900))).choice()
    assert choice is not None
    assert choice.name == PLAIN


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Failed(kind="timeout", phase="start"), "timeout"),
        (Failed(kind="out_of_memory", phase="start"), "out of memory"),
        (Failed(kind="crashed", phase="start", exit_code=-11), "crashed"),
        (FormAnswer(problem="InductorError: no C compiler"), "InductorError: no C compiler"),
        (FormAnswer(), "no figures"),
        (figures(1, trace=other_losses(2.3, 2.0)), "its loss differs by 9.1e-02"),
        (figures(1, trace=other_losses(2.3, None)), "its loss differs by inf"),
        (figures(1, trace=RIGHT.model_copy(update={"movements": (0.001,)})), "a movement"),
        (figures(1, trace=RIGHT.model_copy(update={"movements": (None,)})), "a movement"),
        (figures(1, masks_change=False), "it repeats its dropout masks"),
    ],
)
def test_a_form_that_fails_or_is_wrong_is_left_out_with_its_reason(
    answer: FormAnswer | Failed, reason: str
) -> None:
    choice = Machine({PLAIN: figures(900), GRAPH: answer, COMPILED: figures(700)}).choice()
    assert choice is not None
    assert choice.name == COMPILED
    assert choice.tried[GRAPH].startswith(f"left out: {reason}")


def test_without_figures_of_the_plain_form_nothing_is_chosen() -> None:
    """The repeat then fails in the plain form, and says how."""
    machine = Machine({PLAIN: Failed(kind="out_of_memory", phase="start")})
    assert machine.choice() is None
    assert machine.ran == [PLAIN]
    assert any("out of memory" in line for line in machine.said)


def test_a_cell_with_one_form_starts_nothing() -> None:
    machine = Machine({})
    for job in (job_of(TINY, "torch"), job_of(TINY, "mlx")):
        assert machine.choice(job) is None
    assert machine.ran == []


def test_all_repeats_of_a_cell_have_one_choice() -> None:
    machine = Machine(dict.fromkeys((PLAIN, GRAPH, COMPILED), figures(900)))
    forms = Forms(run=machine.run)
    for name in ("fashion-mlp", "fashion-mlp", "mnist-cnn"):
        forms.chosen(on_cuda(name), Path("0001.log"), Limits(), COMMAND)
    assert machine.ran == [PLAIN, GRAPH, COMPILED] * 2


def test_both_sides_of_ab_run_in_their_form(tmp_path: Path, monkeypatch: Any) -> None:
    chosen = FormChoice(name=GRAPH, tried={})
    monkeypatch.setattr(Forms, "_choice", lambda self, *given: chosen)
    given: list[tuple[FormChoice | None, float]] = []
    measure = measures({"tuned": 1_000_000}, [])

    def run(job: Job, log: Path, limits: Limits, *others: Any) -> Any:
        given.append((job.form, limits.silence_seconds))
        return measure(job, log, limits, *others)

    list(ab.pairs(a_side("A"), a_side("B"), 1, tmp_path, run_job=run, whole_runs=True))
    assert given == [(chosen, 4 * FORM_SECONDS)] * 2


def test_a_repeat_in_a_form_may_compile_in_silence() -> None:
    job, usual = on_cuda(), Limits()
    assert with_form(usual, job) == usual
    longer = with_form(usual, job.model_copy(update={"form": FormChoice(name=GRAPH, tried={})}))
    # After the timing a mixed cell opens seven sessions; a form's process opens three at most.
    assert longer.silence_seconds >= 3 * FORM_SECONDS
    assert longer.total_seconds - usual.total_seconds >= 3 * FORM_SECONDS
    assert form_limits(Place("torch", CUDA, None)).total_seconds == FORM_SECONDS
    first = form_limits(Place("tensorflow", CUDA, None))
    assert first.total_seconds > PTX_SECONDS


class FormedEngine(FakeEngine):
    form: str = PLAIN

    def forms(self, cell: Cell) -> tuple[str, ...]:
        return ()


def formed(engine: FakeEngine) -> FormedEngine:
    return FormedEngine(engine.clock, engine.session)


def test_the_time_of_a_step_is_without_its_compilation(engine: FakeEngine) -> None:
    fake = formed(engine)
    fake.session.step_ns = chain([60_000_000_000], repeat(250_000))
    answer = worker_forms.measure(fake, job_of(TINY), GRAPH, fake.clock)
    assert answer.step_ns == 250_000
    assert answer.trace is not None
    assert answer.trace.optimizer == "workload"
    assert answer.masks_change
    assert fake.form == GRAPH
    assert fake.session.closed


def test_a_form_that_raises_is_an_answer(monkeypatch: Any, engine: FakeEngine) -> None:
    fake = formed(engine)
    fake.open_error = RuntimeError("cannot capture /home/someone/x.py\nmore")
    monkeypatch.setattr(worker, "engine_named", lambda name: fake)
    answer = worker.formed(job_of(TINY), GRAPH, fake.clock)
    assert answer == FormAnswer(problem="RuntimeError: cannot capture x.py")


def test_a_repeat_opens_its_form_and_its_result_tells_of_all(
    monkeypatch: Any, engine: FakeEngine
) -> None:
    fake = formed(engine)
    monkeypatch.setattr(worker, "engine_named", lambda name: fake)
    tried = {PLAIN: "900.0 us a step", GRAPH: "80.0 us a step"}
    job = job_of(TINY).model_copy(update={"form": FormChoice(name=GRAPH, tried=tried)})
    assert Job.model_validate_json(job.model_dump_json()) == job
    outcome = worker.work(job, lambda message: None, fake.clock).outcome
    assert isinstance(outcome, Measured)
    assert fake.form == GRAPH
    assert outcome.measurement.recipe_settings == {
        "loop": "fake",
        "form": GRAPH,
        "form.eager": "900.0 us a step",
        "form.cuda_graph": "80.0 us a step",
    }


def test_a_job_without_a_form_can_be_read_by_an_older_agent() -> None:
    assert "form" not in job_of(TINY).model_dump()


def test_a_real_worker_measures_a_form_and_one_runs_in_it(tmp_path: Path) -> None:
    """The captured step of PyTorch, on a CPU: without a graph."""
    pytest.importorskip("torch", reason="torch is not installed: make frameworks")
    job = job_of(workload_named("mnist-dense"), "torch", budget_seconds=0.2, warm_up_seconds=0.1)
    job = job.model_copy(update={"cell": job.cell.model_copy(update={"recipe": "tuned"})})
    answer = run_form(job, GRAPH, tmp_path / "form", Limits(), worker_command())
    assert isinstance(answer, FormAnswer)
    assert answer.problem is None
    assert answer.step_ns
    assert answer.trace is not None
    assert len(answer.trace.losses) == 3
    job = job.model_copy(update={"form": FormChoice(name=GRAPH, tried={})})
    outcome = run_job(job, tmp_path / "repeat").outcome
    assert isinstance(outcome, Measured)
    assert outcome.measurement.recipe_settings["form"] == GRAPH
    assert outcome.measurement.recipe_settings["loop"] == "CUDA graph of a step"
