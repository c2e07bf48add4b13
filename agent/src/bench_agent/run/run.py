"""Run a plan: a fresh process for each repeat; each result is signed and stored before the next."""

from functools import partial

from bench_protocol.base import format as people
from bench_protocol.payload.result import Result

from ..base.errors import UsageProblem
from ..base.home import Home
from ..base.keys import load_or_create_key
from ..machine import read_machine
from ..plan import estimates
from ..plan.plan import PlannedCell
from ..remote.outbox import Outbox
from .context import RunContext
from .idle_gate import COOL, IDLE_AND_COOL
from .journal import Journal, end
from .keep_awake import awake
from .posting import Posting
from .repeat import MOST_AGAIN, Prepared, measured, or_kept, prepare
from .sign import RunIdentity, sign
from .summary import RunSummary


def run_plan(journal: Journal, context: RunContext) -> RunSummary:
    """Measure every repeat that is not in the outbox; sign, store and, with a server, post each. If
    the journal is not on disk, the run cannot resume.

    Raises:
        HomeProblem: key or outbox cannot be used.
        UsageProblem: a strict gate did not open. Before the first repeat the journal is removed.
    """
    home, reporter, stop = context.home, context.reporter, context.stop
    run = RunIdentity(
        run_id=journal.run_id,
        own_nonce=journal.nonce,
        preset=journal.preset,
        machine=read_machine(home),
        key=load_or_create_key(home),
        clock=context.new_clock(),
    )
    plan, outbox, summary = journal.plan(), Outbox(home.outbox), RunSummary()
    post = Posting(context, run, summary)
    left = [planned for n, planned in plan if not outbox.find(run.run_id, planned.cell, n)]
    reporter.planned(plan, left)
    post.knock()
    gone: tuple[str, ...] = IDLE_AND_COOL
    try:
        with awake():
            for number, (repeat, planned) in enumerate(plan, 1):
                if done := outbox.find(run.run_id, planned.cell, repeat):
                    summary.entries.append(done)
                    reporter.skipped(planned)
                    continue
                stop.check()
                log = home.logs / run.run_id / f"{number:04d}.log"
                ready = prepare(Prepared(planned, repeat, log), context, run.run_id, gone)
                stop.check()
                reporter.started(repeat, planned)
                run, result = _measured_in_one_go(ready, run, post, context)
                if not ready.refusal:
                    gone = COOL
                summary.entries.append(outbox.put(result, sign(result, run.key)))
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


def _measured_in_one_go(
    ready: Prepared, run: RunIdentity, post: Posting, context: RunContext
) -> tuple[RunIdentity, Result]:
    """A repeat, measured again where the machine slept or its clock was set meanwhile, and where
    the server was away when a challenge had to be renewed, and is back: such results would stay at
    trust level 1. Where no challenge was given before, all of them do."""
    had_challenge, run = run.challenge is not None, post.bound(run)
    result = measured(ready, run, context)
    for times_left in reversed(range(1 + MOST_AGAIN)):
        had_challenge |= run.challenge is not None
        jump = run.clock.jump_seconds()
        if ready.refusal or not had_challenge or (run.challenge and not jump):
            break
        again = times_left > 0 and not context.stop.requested
        if jump:
            context.reporter.note(_jump_words(jump, again))
        renewed = post.bound(run) if again else run
        if not again or not (jump or renewed.challenge):
            break
        if not jump:
            context.reporter.note("the server answers again: this repeat is measured again")
        run = renewed
        result = or_kept(result, partial(measured, ready, run, context), context.stop)
    return run, result


def _jump_words(jump_seconds: float, again: bool) -> str:
    forward = jump_seconds > 0
    how = "slept, or its clock was set forward" if forward else "has a clock that was set back"
    then = "is measured again" if again else "stays at trust level 1; the next ones do not"
    return f"the machine {how}, by {people.rough(abs(jump_seconds))}: this repeat {then}"


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
