"""Runs a plan: a fresh process a repeat, each result signed and on disk before the next starts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench_protocol import doubts
from bench_protocol.machine import Machine
from bench_protocol.result import Measured, Result, Telemetry

from . import paces
from .awake import awake
from .bystanders import Bystanders
from .client import Client, Delivery, ServerUnreachable
from .doctor import examine
from .doctor.surroundings import Surroundings
from .home import Home
from .interrupt import Stop
from .job import Answer, BlockDone, Job, PhaseBegan
from .journal import Journal, end
from .keys import load_or_create_key
from .machine import read_machine
from .outbox import Outbox
from .plan import Plan, PlannedCell
from .problems import UsageProblem
from .record import RunClock, RunIdentity, make_result, sign
from .runner import Limits, Listener, run_job
from .telemetry import Reading, Sampler

RunJob = Callable[[Job, Path, Limits, Listener], Answer]


class Reporter(Protocol):
    """Is told what happens, to show it to a person."""

    def planned(self, plan: Plan) -> None: ...

    def skipped(self, planned: PlannedCell) -> None: ...

    def started(self, repeat: int, planned: PlannedCell) -> None: ...

    def heard(self, message: PhaseBegan | BlockDone) -> None: ...

    def sensed(self, reading: Reading) -> None: ...

    def finished(self, result: Result) -> None: ...

    def delivered(self, delivery: Delivery) -> None: ...

    def unreachable(self, error: ServerUnreachable) -> None: ...


@dataclass
class RunSummary:
    """What a run gave."""

    results: list[Result] = field(default_factory=list)
    sent: int = 0
    refused: int = 0
    waiting: int = 0
    server_unreachable: bool = False
    interrupted: bool = False

    @property
    def failed(self) -> int:
        return sum(not isinstance(result.outcome, Measured) for result in self.results)


def run_plan(
    journal: Journal,
    home: Home,
    server: str | None,
    reporter: Reporter,
    stop: Stop | None = None,
    run_job: RunJob = lambda job, log, limits, listener: run_job(
        job, log, limits=limits, listener=listener
    ),
) -> RunSummary:
    """Measure every repeat that is not in the outbox; sign, keep and, with a server, post each.

    Args:
        journal: what to run, as :func:`~bench_agent.journal.begin` noted it.
        stop: asked before each repeat whether the person at the keyboard wants to end.

    Raises:
        HomeProblem: key or outbox cannot be used.
    """
    plan, key = journal.plan(), load_or_create_key(home)
    run = RunIdentity(
        run_id=journal.run_id,
        seed=journal.seed,
        preset=journal.preset,
        machine=read_machine(home),
        key=key,
        clock=RunClock(),
    )
    outbox = Outbox(home.outbox)
    summary = RunSummary()
    post = Posting(server, key, run.machine.machine_hash, outbox, reporter, summary)
    reporter.planned(plan)
    post.knock()
    try:
        with awake():
            for number, (repeat, planned) in enumerate(plan, 1):
                if done := outbox.find(run.run_id, planned.cell, repeat):
                    summary.results.append(done.result())
                    reporter.skipped(planned)
                    continue
                if stop and stop.asked:
                    raise KeyboardInterrupt
                reporter.started(repeat, planned)
                log = home.logs / run.run_id / f"{number:04d}.log"
                result = _one_repeat(run, planned, repeat, log, run_job, reporter)
                outbox.put(sign(result, key))
                _note_pace(home, planned, result)
                summary.results.append(result)
                reporter.finished(result)
                post.waiting()
    except KeyboardInterrupt:
        summary.interrupted = True
    else:
        end(home)
    post.last_time()
    summary.waiting = len(list(outbox.pending()))
    return summary


def refuse_unfit(home: Home) -> None:
    """Stop where every figure would be wrong: WSL 1, native Windows, a translated Python.

    Raises:
        UsageProblem: with what doctor says of it and the command that mends it.
    """
    for finding in examine(Surroundings(home), ("system", "architecture")):
        if finding.verdict == "fail":
            raise UsageProblem(f"{finding.sentence}; to mend it: {finding.mend}")


def _one_repeat(
    run: RunIdentity,
    planned: PlannedCell,
    repeat: int,
    log: Path,
    run_job: RunJob,
    reporter: Reporter,
) -> Result:
    job = Job(workload=planned.workload, cell=planned.cell, seed=run.seed, timing=planned.timing)
    limits = Limits(total_seconds=max(600.0, 10 * planned.estimate_seconds))
    started = run.clock.now()
    sampler = Sampler(planned.cell.device, run.clock.since_start_ns, reporter.sensed)
    with sampler, Bystanders() as others:
        answer = run_job(job, log, limits, reporter.heard)
    finished = run.clock.now()
    telemetry = sampler.telemetry()
    answer = _with_doubts(answer, telemetry, others.busy_cores, run.machine)
    return make_result(run, planned.cell, repeat, answer, started, finished, telemetry)


def _note_pace(home: Home, planned: PlannedCell, result: Result) -> None:
    if measurement := result.measurement:
        wall_seconds = (result.clocks.finished_ns - result.clocks.started_ns) / 1e9
        pace = paces.pace_of(
            planned.cell, planned.workload, measurement, planned.timing, wall_seconds
        )
        paces.note(home.paces, planned.cell, pace)


def _with_doubts(
    answer: Answer, telemetry: Telemetry, other_cores: float, machine: Machine
) -> Answer:
    """The answer with what the blocks, the sensors and other programs give to doubt."""
    measurement = answer.outcome.measurement
    found = [
        *answer.warnings,
        *(doubts.of_blocks(measurement.blocks) if measurement else ()),
        *doubts.of_telemetry(telemetry),
        *doubts.of_other_load(other_cores, machine.cpu.logical_cores or 1),
    ]
    return answer.model_copy(update={"warnings": tuple(found)})


class Posting:
    """Posts what waits, and stops asking a server that does not answer until the end."""

    def __init__(
        self,
        server: str | None,
        key: Ed25519PrivateKey,
        machine_hash: str,
        outbox: Outbox,
        reporter: Reporter,
        summary: RunSummary,
    ) -> None:
        self._client = Client(server, key) if server else None
        self._machine_hash = machine_hash
        self._outbox = outbox
        self._reporter = reporter
        self._summary = summary

    def knock(self) -> None:
        """Say before the measuring, not after it, that the server does not answer."""
        if self._client:
            try:
                self._client.knock()
            except ServerUnreachable as error:
                self._reporter.unreachable(error)
                self._summary.server_unreachable = True

    def waiting(self) -> None:
        """Post everything in the outbox, unless the server was away before."""
        if self._client and not self._summary.server_unreachable:
            self._post(self._client)

    def last_time(self) -> None:
        """Post what is left, trying again even if the server was away."""
        if not self._client:
            return
        self._post(self._client)
        if self._summary.server_unreachable and not list(self._outbox.pending()):
            self._summary.server_unreachable = False
        self._client.close()

    def _post(self, client: Client) -> None:
        try:
            for delivery in client.submit(self._outbox, self._machine_hash):
                self._summary.sent += delivery.state == "sent"
                self._summary.refused += delivery.state == "refused"
                self._reporter.delivered(delivery)
        except ServerUnreachable as error:
            if not self._summary.server_unreachable:
                self._reporter.unreachable(error)
            self._summary.server_unreachable = True
