"""Run a plan: a fresh process for each repeat; each result is signed and stored before the next."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bench_protocol.payload.readings import Conditions
from bench_protocol.payload.result import Result

from ..base.errors import UsageProblem
from ..base.home import Home
from ..base.keys import load_or_create_key
from ..base.messages import Answer, FormChoice, Job, WorkerEvent
from ..machine import read_machine
from ..plan import estimates
from ..plan.plan import PlannedCell
from ..remote.outbox import Outbox
from .forms import earlier_choice
from .idle_gate import COOL, IDLE_AND_COOL, IdleGate
from .interrupt import Stop
from .journal import Journal, end
from .keep_awake import awake
from .monitor import Monitor
from .patience import limits_for, place_of, why_silent, with_form
from .posting import Posting
from .reporter import Reporter
from .sign import RunClock, RunIdentity, make_result, sign
from .summary import RunSummary
from .worker_process import Limits, Listener, run_task, worker_command

RunJob = Callable[[Job, Path, Limits, Sequence[str], Listener], Answer]


def run_plan(
    journal: Journal,
    home: Home,
    server: str | None,
    reporter: Reporter,
    stop: Stop | None = None,
    run_job: RunJob = run_task,
    gate: IdleGate = IdleGate(),
    token: str | None = None,
    self_test: Callable[[PlannedCell], Answer | None] = lambda planned: None,
    choose_form: Callable[[PlannedCell], FormChoice | None] = lambda planned: None,
    new_clock: Callable[[], RunClock] = RunClock,
) -> RunSummary:
    """Measure every repeat that is not in the outbox; sign, store and, with a server, post each.

    Args:
        journal: what to run, as :func:`~bench_agent.run.journal.begin` noted it. If it is not on
            disk, the run cannot resume.
        stop: says, before each repeat, whether the user wants to stop.
        run_job: runs a repeat, by default in a worker process.
        gate: waits for an idle and cool machine before the first repeat, and for a cool one
            before the others.
        token: the server's read token, where it is private.
        self_test: the answer in place of a repeat whose device fails its self-test, or None; see
            :meth:`.self_test.SelfTests.refusal`.
        choose_form: the form of a cell's step; see :meth:`.forms.Forms.choice`.
        new_clock: starts the run's clock, again at each challenge.

    Raises:
        HomeProblem: key or outbox cannot be used.
        UsageProblem: a strict gate did not open. Before the first repeat the journal is removed.
    """
    plan, key = journal.plan(), load_or_create_key(home)
    run = RunIdentity(
        run_id=journal.run_id,
        own_nonce=journal.nonce,
        preset=journal.preset,
        machine=read_machine(home),
        key=key,
        clock=new_clock(),
    )
    outbox = Outbox(home.outbox)
    summary = RunSummary()
    post = Posting(run.run_id, server, token, home, key, outbox, reporter, summary, new_clock)
    left = [planned for n, planned in plan if not outbox.find(run.run_id, planned.cell, n)]
    reporter.planned(plan, left)
    post.knock()
    measured_here = False
    try:
        with awake():
            for number, (repeat, planned) in enumerate(plan, 1):
                if done := outbox.find(run.run_id, planned.cell, repeat):
                    summary.entries.append(done)
                    reporter.skipped(planned)
                    continue
                if stop and stop.requested:
                    raise KeyboardInterrupt
                refusal = self_test(planned)
                measured_times = estimates.load(home.measured_times)
                if reason := why_silent(place_of(planned), measured_times):
                    reporter.note(reason)
                earlier = earlier_choice(outbox, run.run_id, planned.cell, repeat)
                form = None if refusal else earlier or choose_form(planned)
                wait_for = COOL if measured_here else IDLE_AND_COOL
                before = (
                    Conditions()
                    if refusal
                    else gate.wait(planned.cell.device, wait_for, reporter.note, stop)
                )
                if stop and stop.requested:
                    raise KeyboardInterrupt
                run = post.bound(run)
                seconds = planned.estimate_seconds
                usual = limits_for(place_of(planned), seconds, measured_times)
                limits = with_form(usual, form)
                reporter.started(repeat, planned)
                log = home.logs / run.run_id / f"{number:04d}.log"
                runs = answering(refusal) if refusal else run_job
                result = _one_repeat(
                    run, planned, repeat, form, log, limits, runs, reporter, before
                )
                measured_here = measured_here or refusal is None
                summary.entries.append(outbox.put(result, sign(result, key)))
                _note_times(home, planned, result)
                reporter.finished(result)
                post.waiting()
    except KeyboardInterrupt:
        summary.interrupted = True
    except UsageProblem:
        if not summary.entries:
            end(home, run.run_id)  # nothing was measured, so nothing can resume
        raise
    else:
        end(home, run.run_id)
    post.last_time()
    summary.waiting = len(list(outbox.pending()))
    return summary


def answering(answer: Answer) -> RunJob:
    """Starts no worker: this is the answer."""
    return lambda *_: answer


def _one_repeat(
    run: RunIdentity,
    planned: PlannedCell,
    repeat: int,
    form: FormChoice | None,
    log: Path,
    limits: Limits,
    run_job: RunJob,
    reporter: Reporter,
    before: Conditions,
) -> Result:
    cell = planned.cell
    job = Job(
        workload=planned.workload,
        cell=cell,
        seed=run.seed_of(cell),
        timing=planned.timing,
        nonce=run.nonce,
        form=form,
    )
    cores = run.machine.cpu.logical_cores or 1

    def heard(message: WorkerEvent) -> None:
        watch.heard(message)
        reporter.heard(message)

    started = run.clock.now()
    with Monitor(cell.device, before, cores, run.clock.since_start_ns, reporter.sensed) as watch:
        answer = run_job(job, log, limits, worker_command(planned.python), heard)
    finished = run.clock.now()
    seen = watch.seen_with(answer)
    telemetry, python = watch.telemetry(), planned.python
    return make_result(
        run, cell, repeat, seen, started, finished, before, telemetry, python, planned.asked
    )


def _note_times(home: Home, planned: PlannedCell, result: Result) -> None:
    if measurement := result.measurement:
        wall_seconds = (result.clocks.finished_ns - result.clocks.started_ns) / 1e9
        times = estimates.cell_times_of(
            planned.cell,
            planned.workload,
            measurement,
            planned.timing,
            wall_seconds,
            planned.python,
        )
        estimates.note(home.measured_times, planned.cell, times)
