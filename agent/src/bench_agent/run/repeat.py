"""One repeat in the parent process: from its preparation to the result that will be signed."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench_protocol.base.units import utc_text
from bench_protocol.payload import block_times
from bench_protocol.payload.readings import Conditions
from bench_protocol.payload.result import SCHEMA_VERSION, Agent, Clocks, Failed, Measured, Result
from bench_protocol.signing.keys import key_id

from .. import __version__
from ..base.messages import Answer, FormChoice, Job, WorkerEvent
from ..plan import estimates
from ..plan.plan import PlannedCell
from ..remote.outbox import Outbox
from .context import RunContext
from .forms import earlier_choice
from .idle_gate import IDLE_AND_COOL, remaining
from .interrupt import Stop
from .monitor import Monitor
from .patience import limits_for, place_of, why_silent
from .sign import RunIdentity, unknown_environment
from .worker_process import Limits, worker_command

# A repeat whose times do not fit, or whose clocks jumped, is measured again this often at most.
MOST_AGAIN = 2
# A longer repeat is not measured again: its challenge could expire.
LONGEST_AGAIN_SECONDS = 600.0
ADVICE = (
    "close other programs or wait for them (--wait-seconds 300); "
    "bench-agent doctor shows load and limits"
)


@dataclass(frozen=True)
class Prepared:
    """``before``: the machine's conditions. ``refusal``: the answer in place of a worker's, because
    the device fails its self-test."""

    planned: PlannedCell
    repeat: int
    log: Path
    limits: Limits = field(default_factory=Limits)
    form: FormChoice | None = None
    before: Conditions = field(default_factory=Conditions)
    refusal: Answer | None = None


def prepare(new: Prepared, context: RunContext, run_id: str, gone: Collection[str]) -> Prepared:
    """Test the device, choose the form of the step, and wait until the warnings ``gone`` are.

    Raises:
        KeyboardInterrupt: the user wants to stop.
        NotIdle: a strict gate did not open.
    """
    planned, home = new.planned, context.home
    if refusal := context.self_test(planned):
        return replace(new, refusal=refusal)
    measured_times = estimates.load(home.measured_times)
    if reason := why_silent(place_of(planned), measured_times):
        context.reporter.note(reason)
    earlier = earlier_choice(Outbox(home.outbox), run_id, planned.cell, new.repeat)
    form = earlier or context.choose_form(planned)
    limits = limits_for(place_of(planned), planned.estimate_seconds, measured_times)
    return _waited(replace(new, form=form, limits=limits), context, gone)


def _waited(ready: Prepared, context: RunContext, gone: Collection[str]) -> Prepared:
    """Wait until these warnings are gone; say where the repeat starts with one of them."""
    device, note, stop = ready.planned.cell.device, context.reporter.note, context.stop
    before = context.gate.wait(device, gone, note, stop)
    if (why := remaining(before, gone)) and not stop.requested:
        note(f"{why}: measuring anyway, with this warning")
    return replace(ready, before=before)


def or_kept(kept: Result, again: Callable[[], Result], stop: Stop) -> Result:
    """The result of another measurement; the one before it, if the user stops it meanwhile."""
    try:
        return again()
    except KeyboardInterrupt:
        stop.requested = True
        return kept


def measured(ready: Prepared, run: RunIdentity, context: RunContext) -> Result:
    """Measure a repeat; again, at most ``MOST_AGAIN`` times, where its times do not fit together.
    If the last ones do not and the machine's load explains them, the outcome is ``too_busy``."""
    result = _once(ready, run, context)
    calm = replace(context, gate=replace(context.gate, strict=False))
    for _ in range(MOST_AGAIN):
        if not (misfit := block_times.misfit(result)) or not _may_again(result, context):
            break
        context.reporter.note(f"{misfit.sentence}: measuring again")
        result = or_kept(
            result,
            lambda: _once(_waited(ready, calm, IDLE_AND_COOL), run, context),
            context.stop,
        )
    busy = block_times.too_busy(result)
    if busy is None or not isinstance(result.outcome, Measured):
        return result
    context.reporter.note(f"{busy}; {ADVICE}")
    kept = result.outcome.measurement
    outcome = Failed(kind="too_busy", phase="timing", measurement=kept)
    return result.model_copy(update={"outcome": outcome})


def _may_again(result: Result, context: RunContext) -> bool:
    took_seconds = (result.clocks.finished_ns - result.clocks.started_ns) / 1e9
    measured = isinstance(result.outcome, Measured)
    return measured and took_seconds <= LONGEST_AGAIN_SECONDS and not context.stop.requested


def _once(ready: Prepared, run: RunIdentity, context: RunContext) -> Result:
    """Run the worker, monitor it, and build the result. This reads the clocks for the last time."""
    planned, cell, clock = ready.planned, ready.planned.cell, run.clock
    job = Job(
        workload=planned.workload,
        cell=cell,
        seed=run.seed_of(cell),
        timing=planned.timing,
        form=ready.form,
    )
    command, cores = worker_command(planned.python), run.machine.cpu.logical_cores or 1

    def heard(message: WorkerEvent) -> None:
        watch.heard(message)
        context.reporter.heard(message)

    started = clock.now()
    sensed = context.reporter.sensed
    with Monitor(cell.device, ready.before, cores, clock.since_start_ns, sensed) as watch:
        answer = ready.refusal or context.run_job(job, ready.log, ready.limits, command, heard)
    finished = clock.now()
    answer = watch.seen_with(answer)
    signed = clock.now()
    return Result(
        schema_version=SCHEMA_VERSION,
        run_id=run.run_id,
        repeat=ready.repeat,
        cell=cell,
        seed=job.seed,
        preset=run.preset,
        challenge=run.challenge,
        nonce=None if run.challenge else run.own_nonce,
        agent=Agent(version=__version__, key_id=key_id(run.key.public_key())),
        machine=run.machine,
        environment=answer.environment or unknown_environment(planned.python),
        outcome=answer.outcome,
        clocks=Clocks(
            run_started=utc_text(clock.started),
            started=utc_text(started.wall),
            started_ns=started.since_start_ns,
            finished_ns=finished.since_start_ns,
            signed=utc_text(signed.wall),
            signed_ns=signed.since_start_ns,
        ),
        conditions=ready.before,
        telemetry=watch.telemetry(),
        warnings=answer.warnings,
        asked=planned.asked,
    )
