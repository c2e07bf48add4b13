"""The forms of a cell's step: measured one by one, the fastest right one is chosen."""

from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from tests.agent.test_ab import a_side, measures
from tests.agent.test_patience import plan_on
from tests.agent.test_resume import Quiet, measure
from tests.fakes.engine import FakeEngine
from tests.fakes.outboxes import put
from tests.fakes.results import make_measurement, make_result
from tests.fakes.seeding import invented, witness_of
from tests.fakes.workloads import TINY, cell_of, job_of

from bench_agent.base.home import Home
from bench_agent.base.messages import (
    LOCAL_NONCE,
    Answer,
    FormAnswer,
    FormChoice,
    FormTask,
    Job,
    Timing,
)
from bench_agent.plan.estimates import MeasuredTimes
from bench_agent.plan.plan import PlannedCell
from bench_agent.remote.outbox import Outbox
from bench_agent.run import ab, conformance, journal
from bench_agent.run.context import RunContext
from bench_agent.run.forms import Forms, earlier_choice
from bench_agent.run.idle_gate import IdleGate
from bench_agent.run.interrupt import Stop
from bench_agent.run.patience import FORM_SECONDS, PTX_SECONDS, Place, form_limits
from bench_agent.run.run import run_plan
from bench_agent.run.worker_process import Limits, run_task
from bench_agent.worker import forms as worker_forms
from bench_agent.worker import main as worker
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.payload.readings import Conditions
from bench_protocol.payload.result import Failed, FailureKind, Measured
from bench_protocol.payload.witness import Witness
from bench_protocol.training.recomputation import SessionJob

CUDA = Device(kind="cuda")
MLP = workload_named("fashion-mlp")
PLAIN, GRAPH, COMPILED = "eager", "cuda_graph", "compiled_cuda_graph"


def planned(name: str = "fashion-mlp", device: Device = CUDA, framework: str = "torch") -> Any:
    workload = workload_named(name)
    cell = cell_of(workload, framework, "tuned").model_copy(update={"device": device})
    return PlannedCell(cell=cell, workload=workload, timing=Timing(), estimate_seconds=1.0)


def figures(step_us: float, **changes: Any) -> FormAnswer:
    return FormAnswer(**{"step_ns": step_us * 1000, "witness": readings(), **changes})


def readings(**first: Any) -> Witness:
    job = SessionJob(MLP, LOCAL_NONCE, MLP.batch_size)
    right = invented(MLP, LOCAL_NONCE, MLP.batch_size)
    made = witness_of(job, make_measurement(planned().cell), right)
    one, *others = made.readings
    return made.model_copy(update={"readings": (one.model_copy(update=first), *others)})


@pytest.fixture(autouse=True)
def costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "recomputed", invented)


FORM_TASK = FormTask(workload=TINY, cell=cell_of(TINY), form=GRAPH)


def lost(kind: FailureKind, **more: Any) -> FormAnswer:
    return FORM_TASK.lost(Failed(kind=kind, phase="start", **more))


@dataclass
class Machine:
    answers: dict[str, FormAnswer]
    ran: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def run(self, task: FormTask, *others: Any) -> FormAnswer:
        self.ran.append(task.form)
        return self.answers[task.form]

    def forms(self) -> Forms:
        return Forms(Home(Path("nowhere")), self.said.append, self.run)

    def choice(self) -> FormChoice | None:
        return self.forms().choice(planned())


def test_the_fastest_right_form_is_chosen_and_all_are_told() -> None:
    answers = {PLAIN: figures(900), GRAPH: figures(80.04), COMPILED: figures(95)}
    machine = Machine(answers)
    tried = {PLAIN: "900.0 us a step", GRAPH: "80.0 us a step", COMPILED: "95.0 us a step"}
    assert machine.choice() == FormChoice(name=GRAPH, tried=tried)
    assert machine.ran == [PLAIN, GRAPH, COMPILED]
    assert any("form cuda_graph" in line and "95.0 us" in line for line in machine.said)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lost("timeout"), "timeout"),
        (lost("out_of_memory"), "out of memory"),
        (lost("crashed", exit_code=-11), "crashed"),
        (FormAnswer(problem="InductorError: no C compiler"), "InductorError: no C compiler"),
        (FormAnswer(), "no figures"),
        (figures(1, witness=readings(loss=99.0)), "the loss of the deep reading after"),
        (figures(1, witness=readings(loss=None)), "the loss of reading 1 is not finite"),
        (figures(1, witness=None), "no figures"),
        (figures(0), "no figures"),
        (figures(-1), "no figures"),
    ],
)
def test_a_form_that_fails_or_is_wrong_is_left_out_with_its_reason(
    answer: FormAnswer, reason: str
) -> None:
    choice = Machine({PLAIN: figures(900), GRAPH: answer, COMPILED: figures(700)}).choice()
    assert choice is not None
    assert choice.name == COMPILED
    assert choice.tried[GRAPH].startswith(f"left out: {reason}")


def test_without_figures_of_the_plain_form_nothing_is_chosen() -> None:
    """The repeat then fails in the plain form, and says how."""
    machine = Machine({PLAIN: lost("out_of_memory")})
    assert machine.choice() is None
    assert machine.ran == [PLAIN]
    assert any("out of memory" in line for line in machine.said)


def test_a_cell_with_one_form_starts_nothing() -> None:
    machine = Machine({})
    for cell in (planned(device=Device(kind="cpu")), planned(framework="mlx")):
        assert machine.forms().choice(cell) is None
    assert machine.ran == []


def test_all_repeats_of_a_cell_have_one_choice() -> None:
    machine = Machine(dict.fromkeys((PLAIN, GRAPH, COMPILED), figures(900)))
    forms = machine.forms()
    for name in ("fashion-mlp", "fashion-mlp", "mnist-cnn"):
        forms.choice(planned(name))
    assert machine.ran == [PLAIN, GRAPH, COMPILED] * 2


def test_no_form_is_measured_once_the_user_wants_to_stop() -> None:
    machine, stop = Machine({PLAIN: figures(900)}), Stop()

    def run(*arguments: Any) -> FormAnswer:
        stop.requested = True
        return machine.run(*arguments)

    with pytest.raises(KeyboardInterrupt):
        Forms(Home(Path("nowhere")), machine.said.append, run, stop).choice(planned())
    assert machine.ran == [PLAIN]


CHOSEN = FormChoice(name=GRAPH, tried={})


def test_both_sides_of_ab_run_in_their_form(tmp_path: Path) -> None:
    given: dict[str, FormChoice | None] = {}
    measure = measures({"tuned": 1_000_000}, [])

    def run(job: Job, log: Path, *others: Any) -> Any:
        given[log.stem[-1]] = job.form
        return measure(job)

    a, b = a_side("A"), a_side("B")
    forms = {"A": CHOSEN, "B": None}
    list(
        ab.pairs(
            *(a, b, 1, tmp_path),
            run_job=run,
            choose_form=lambda planned, command: forms["A" if planned is a.planned else "B"],
        )
    )
    assert given == forms


def test_each_repeat_of_a_run_has_its_cells_form(tmp_path: Path) -> None:
    """It is chosen before the machine is looked at, so that it cools down after it."""
    home, order = Home(tmp_path), []
    given: list[FormChoice | None] = []

    def choose(planned: PlannedCell) -> FormChoice:
        order.append("form")
        return CHOSEN

    def look(device: Device) -> Conditions:
        order.append("look")
        return Conditions()

    def run(job: Job, *others: Any) -> Answer:
        given.append(job.form)
        return measure(job)

    begun = journal.begin(home, "a" * 32, "0" * 64, plan_on("cuda", "torch"))
    gate = IdleGate(0.0, look=look)
    context = RunContext(home, Quiet(), run_job=run, gate=gate, choose_form=choose)
    run_plan(begun, context)
    assert given == [CHOSEN] * len(begun.plan())
    assert order[0] == "form"


def test_a_run_that_resumes_keeps_the_form_of_its_cells(tmp_path: Path) -> None:
    outbox, chosen = Outbox(tmp_path), FormChoice(name=GRAPH, tried={PLAIN: "900.0 us a step"})
    result = make_result()
    measurement = make_measurement(result.cell).model_copy(
        update={"recipe_settings": worker_forms.settings(chosen)}
    )
    put(outbox, result.model_copy(update={"outcome": Measured(measurement=measurement)}))
    assert earlier_choice(outbox, result.run_id, result.cell, 2) == chosen
    assert earlier_choice(outbox, result.run_id, result.cell, 1) is None
    assert earlier_choice(outbox, "f" * 32, result.cell, 2) is None


def test_a_form_compiles_within_the_silence_of_a_repeat() -> None:
    assert Limits().silence_seconds > FORM_SECONDS
    times = MeasuredTimes()
    assert form_limits(Place("torch", CUDA, None), times).total_seconds == FORM_SECONDS
    assert form_limits(Place("tensorflow", CUDA, None), times).total_seconds > PTX_SECONDS


class FormedEngine(FakeEngine):
    form: str = PLAIN

    def forms(self, cell: Cell) -> tuple[str, ...]:
        return ()


def formed(engine: FakeEngine) -> FormedEngine:
    return FormedEngine(engine.clock, engine.session)


def test_the_time_of_a_step_is_without_its_compilation(engine: FakeEngine) -> None:
    fake = formed(engine)
    fake.session.step_ns = chain([60_000_000_000], repeat(250_000))
    # Its readings are compared with figures of generated data, also where the cell's are real.
    real = FORM_TASK.model_copy(update={"cell": cell_of(TINY).model_copy(update={"data": "real"})})
    answer = worker_forms.measure(fake, real, fake.clock)
    assert answer.step_ns == 250_000
    assert answer.witness is not None
    assert len(answer.witness.readings) == 3
    assert (fake.form, fake.session.closed) == (GRAPH, True)


def test_a_form_that_raises_is_an_answer(monkeypatch: Any, engine: FakeEngine) -> None:
    fake = formed(engine)
    fake.open_error = RuntimeError("cannot capture /home/someone/x.py\nmore")
    monkeypatch.setattr(worker, "engine_named", lambda name: fake)
    answer = worker.formed(FORM_TASK, fake.clock)
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


@pytest.mark.process
def test_a_real_worker_measures_a_form_and_one_runs_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed: make frameworks")
    job = job_of(workload_named("mnist-dense"), "torch", budget_seconds=0.2, warm_up_seconds=0.1)
    job = job.model_copy(update={"cell": job.cell.model_copy(update={"recipe": "tuned"})})
    task = FormTask(workload=job.workload, cell=job.cell, form=GRAPH)
    answer = run_task(task, tmp_path / "form")
    assert answer.problem is None
    assert answer.step_ns
    assert answer.witness is not None
    monkeypatch.undo()
    verdict = conformance.judged(task.cell, task.workload, answer.witness, LOCAL_NONCE, {})
    assert verdict.kind == "conformant", verdict
    job = job.model_copy(update={"form": CHOSEN})
    outcome = run_task(job, tmp_path / "repeat").outcome
    assert isinstance(outcome, Measured)
    assert outcome.measurement.recipe_settings["form"] == GRAPH
    assert outcome.measurement.recipe_settings["loop"] == "CUDA graph of a step"
