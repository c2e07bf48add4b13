"""The worker: one repeat of one cell in its own process.

``python -m bench_agent.worker --parent PID --answer-fd N`` reads a ``Job`` as JSON on standard
input and writes the messages of :mod:`.messages` to file descriptor N, one a line. All other
output is log.
"""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence

from bench_protocol.payload.machine import Environment
from bench_protocol.payload.result import Failed

from ..base.messages import (
    Answer,
    FormAnswer,
    Job,
    LastMessage,
    PhaseBegan,
    Probe,
    SelfTestAnswer,
    TraceAnswer,
    WorkerEvent,
)
from ..base.self_test import SelfTestJob
from ..engines import engine_named
from . import conformance_trace, environment, failures, forms, parent_watch, self_test
from .lockstep import LockstepClock
from .repeat import Repeat

LONGEST_PROBLEM = 150
Timed = Callable[[Callable[[], object]], int]
Tell = Callable[[WorkerEvent | LastMessage], None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Read a job or a probe's name, answer, and end."""
    parser = argparse.ArgumentParser(prog="python -m bench_agent.worker")
    parser.add_argument("--parent", type=int, required=True, metavar="PID")
    parser.add_argument("--answer-fd", type=int, required=True, metavar="N")
    parser.add_argument("--probe", metavar="FRAMEWORK")
    parser.add_argument("--trace", action="store_true", help="train the job's traces only")
    parser.add_argument("--form", metavar="FORM", help="measure a form of the job's step")
    parser.add_argument("--self-test", action="store_true", help="test a device")
    parser.add_argument("--turns", metavar="ADDRESS", help="time in turns with other workers")
    options = parser.parse_args(arguments)
    parent_watch.die_with(options.parent)
    clock = time.perf_counter_ns
    in_turn = LockstepClock(clock, options.turns) if options.turns else None
    with os.fdopen(options.answer_fd, "w", encoding="utf-8") as answers:

        def tell(message: WorkerEvent | LastMessage) -> None:
            answers.write(message.model_dump_json() + "\n")
            answers.flush()
            if in_turn and message == PhaseBegan(phase="timing"):
                in_turn.meet()

        if options.probe:
            tell(probe(options.probe))
            return 0
        if options.self_test:
            tell(tested(SelfTestJob.model_validate_json(sys.stdin.buffer.read()), clock))
            return 0
        job = Job.model_validate_json(sys.stdin.buffer.read())
        if options.form:
            tell(formed(job, options.form, clock))
            return 0
        tell(traced(job) if options.trace else work(job, tell, in_turn or clock))
    return 0


def work(job: Job, tell: Tell, clock: Callable[[], int] = time.perf_counter_ns) -> Answer:
    """Run the job's repeat. Never raises for what the repeat does.

    Args:
        tell: receives phases, blocks and the end of the timing as they happen.
        clock: monotonic, in nanoseconds.
    """
    try:
        engine = engine_named(job.cell.framework)
    except (LookupError, ImportError) as error:
        traceback.print_exc()
        name = failures.class_of(error)
        failed = Failed(kind="unavailable", phase="start", exception_class=name)
        return Answer(outcome=failed, environment=None)
    repeat = Repeat(job, engine, tell, clock)
    outcome = repeat.run()
    return Answer(outcome=outcome, environment=repeat.environment, warnings=tuple(repeat.warnings))


def traced(job: Job) -> TraceAnswer:
    """Train the traces of the job's cell; nothing is timed. Never raises."""
    software: Environment | None = None
    try:
        engine = engine_named(job.cell.framework)
        engine.load(job.workload, job.cell)
        software = environment.describe(engine)
        traces = conformance_trace.all_of(engine, job.workload, job.cell, job.nonce)
        return TraceAnswer(traces=traces, environment=environment.describe(engine))
    except Exception as error:
        traceback.print_exc()
        problem = f"{type(error).__name__}: {environment.without_folders(str(error))}"[:1000]
        return TraceAnswer(traces=(), environment=software, problem=problem)


def formed(job: Job, form: str, clock: Callable[[], int]) -> FormAnswer:
    """Measure a form of the job's step. Never raises."""
    try:
        return forms.measure(engine_named(job.cell.framework), job, form, clock)
    except Exception as error:
        traceback.print_exc()
        first_line = str(error).strip().partition("\n")[0]
        words = environment.without_folders(f"{type(error).__name__}: {first_line}")
        return FormAnswer(problem=words[:LONGEST_PROBLEM])


def tested(job: SelfTestJob, clock: Callable[[], int]) -> SelfTestAnswer:
    """Test the job's device. Never raises."""
    try:
        engine = engine_named(job.framework)
        return SelfTestAnswer(figures=self_test.measure(engine, job, timed_by(clock)))
    except Exception as error:
        traceback.print_exc()
        failed = Failed(
            kind=failures.kind_of(error, "start"),
            phase="start",
            exception_class=failures.class_of(error),
        )
        return SelfTestAnswer(figures=None, failed=failed)


def timed_by(clock: Callable[[], int]) -> Timed:
    """A function that runs another one and returns its nanoseconds."""

    def timed(action: Callable[[], object]) -> int:
        began = clock()
        action()
        return clock() - began

    return timed


def probe(framework: str) -> Probe:
    """The devices that a framework sees on this machine. ``problem``: why it sees none."""
    software: Environment | None = None
    try:
        engine = engine_named(framework)
        devices = tuple(engine.devices())
        software = environment.describe(engine)
    except Exception as error:
        traceback.print_exc()
        problem = f"{type(error).__name__}: {environment.without_folders(str(error))}"
        return Probe(devices=(), environment=None, problem=problem)
    return Probe(devices=devices, environment=software)
