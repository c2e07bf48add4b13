"""The worker: one task in its own process.

``python -m bench_agent.worker --parent PID --answer-fd N`` reads a ``Task`` as JSON on standard
input and writes the messages of :mod:`..base.messages` to file descriptor N, one a line. All other
output is log.
"""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence

from bench_protocol.payload.machine import Environment

from ..base.messages import (
    TASK,
    Answer,
    FormAnswer,
    FormTask,
    Job,
    LastMessage,
    PhaseBegan,
    Probe,
    ProbeTask,
    ReadAnswer,
    ReadTask,
    SelfTestAnswer,
    SelfTestTask,
    Task,
    WorkerEvent,
)
from ..engines import engine_named
from . import environment, failures, forms, parent_watch, repeat, self_test
from .lockstep import LockstepClock

LONGEST_FORM_PROBLEM = 150
LONGEST_READ_PROBLEM = 1000
Clock = Callable[[], int]
Tell = Callable[[WorkerEvent | LastMessage], None]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench_agent.worker")
    parser.add_argument("--parent", type=int, required=True, metavar="PID")
    parser.add_argument("--answer-fd", type=int, required=True, metavar="N")
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

        tell(answer(TASK.validate_json(sys.stdin.buffer.read()), tell, in_turn or clock))
    return 0


def answer(task: Task, tell: Tell, clock: Clock) -> LastMessage:
    """Do a task. Never raises for what the task does. ``tell``: receives phases and blocks as they
    happen. ``clock``: monotonic, in nanoseconds."""
    match task:
        case Job():
            return work(task, tell, clock)
        case ProbeTask():
            return probe(task.framework)
        case ReadTask():
            return read(task)
        case FormTask():
            return formed(task, clock)
        case SelfTestTask():
            return tested(task, clock)


def work(job: Job, tell: Tell, clock: Clock) -> Answer:
    """Measure a repeat. See :func:`answer` for the arguments."""
    try:
        engine = engine_named(job.cell.framework)
    except (LookupError, ImportError) as error:
        return job.lost(failures.failed(error, "start"))
    return repeat.run(job, engine, tell, clock)


def probe(framework: str) -> Probe:
    """The devices that a framework sees on this machine, or why it sees none."""
    try:
        engine = engine_named(framework)
        return Probe(devices=tuple(engine.devices()), environment=environment.describe(engine))
    except Exception as error:
        return Probe(devices=(), environment=None, problem=_words(error, str(error)))


def read(task: ReadTask) -> ReadAnswer:
    """Make the readings of a cell's session; nothing is timed."""
    software: Environment | None = None
    try:
        engine = engine_named(task.cell.framework)
        engine.load(task.workload, task.cell)
        software = environment.describe(engine)
        witness, settings = forms.read(engine, task)
        return ReadAnswer(witness=witness, recipe_settings=settings, environment=software)
    except Exception as error:
        problem = _words(error, str(error))[:LONGEST_READ_PROBLEM]
        return ReadAnswer(witness=None, environment=software, problem=problem)


def formed(task: FormTask, clock: Clock) -> FormAnswer:
    try:
        return forms.measure(engine_named(task.cell.framework), task, clock)
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0]
        return FormAnswer(problem=_words(error, first_line)[:LONGEST_FORM_PROBLEM])


def tested(task: SelfTestTask, clock: Clock) -> SelfTestAnswer:

    def timed(action: Callable[[], object]) -> int:
        began = clock()
        action()
        return clock() - began

    try:
        engine = engine_named(task.framework)
        return SelfTestAnswer(figures=self_test.measure(engine, task, timed))
    except Exception as error:
        return task.lost(failures.failed(error, "start"))


def _words(error: Exception, text: str) -> str:
    """An exception's class and text, which is also printed to the log."""
    traceback.print_exception(error)
    return environment.without_folders(f"{type(error).__name__}: {text}")
