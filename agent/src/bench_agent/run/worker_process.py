"""Do one task in a fresh worker process. There is always an answer.

The worker may crash, be killed, hang, print garbage or answer nonsense: each is an outcome here,
never an exception, so that one bad cell cannot end the matrix. This process imports no framework.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from pydantic import ValidationError

from bench_protocol.payload.result import Failed, Phase

from ..base.errors import HomeProblem
from ..base.home import FREE_SPACE, private_folder
from ..base.messages import MESSAGE, BlockDone, LastMessage, PhaseBegan, WorkerEvent
from ..worker.environment import worker_environment
from . import exit_cause

LONGEST_LINE_BYTES = 8 * 1024 * 1024
KILL_WAIT_SECONDS = 10.0


@dataclass(frozen=True)
class Limits:
    """Time limits of a worker.

    ``silence_seconds`` is the longest wait without a message outside the timing (imports,
    compilations and the evaluation are silent), ``stall_factor`` times the longest block, but at
    least ``stall_seconds``, the longest wait between blocks, ``total_seconds`` the whole repeat.
    """

    silence_seconds: float = 300.0
    stall_seconds: float = 60.0
    stall_factor: float = 20.0
    total_seconds: float = 3600.0


# A worker is stopped before its first counted block until the others have warmed up, and between
# two of its blocks while another worker does untimed work.
IN_TURNS = Limits(silence_seconds=900.0, stall_seconds=300.0)


Listener = Callable[[WorkerEvent], None]
Given = TypeVar("Given", covariant=True)


class Lost(Protocol[Given]):
    """A task, and its answer where the worker gave none."""

    def model_dump_json(self) -> str: ...

    def lost(self, failed: Failed) -> Given: ...


def worker_command(python: str | None = None) -> list[str]:
    """The command line that starts a worker, without the parent's id and the answer descriptor."""
    return [python or sys.executable, "-m", "bench_agent.worker"]


def run_task(
    task: Lost[Given],
    log: Path,
    limits: Limits = Limits(),
    command: Sequence[str] | None = None,
    listener: Listener = lambda message: None,
) -> Given:
    """Do a task in a fresh process; returns its answer, or the task's own that says how it ended.

    Raises:
        HomeProblem: the log cannot be written.
    """
    kills = exit_cause.memory_kills()
    last = _last_message(task, log, limits, command or worker_command(), listener)
    if isinstance(last, Failed):
        kills = exit_cause.memory_kills() - kills
        if exit_cause.ran_out_of_memory(last.exit_code, log, kills):
            last = last.model_copy(update={"kind": "out_of_memory"})
        return task.lost(last)
    lost = task.lost(Failed(kind="crashed", phase="start", exception_class="WrongAnswer"))
    return last if isinstance(last, type(lost)) else lost


def _last_message(
    task: Lost[Given], log: Path, limits: Limits, command: Sequence[str], listener: Listener
) -> LastMessage | Failed:
    """Start a worker, send its task, and listen until its last message, its end, or a limit."""
    private_folder(log.parent)
    try:
        log_file = log.open("wb")
    except OSError as error:
        raise HomeProblem(f"cannot write {log}: {error.strerror}; {FREE_SPACE}") from error
    with log_file, ExitStack() as resources:
        try:
            selector = resources.enter_context(selectors.DefaultSelector())
            worker, answers = _start(command, log_file, resources)
            selector.register(answers, selectors.EVENT_READ)
        except OSError as error:  # too many processes, files or too little memory
            with suppress(OSError):
                log_file.write(f"the worker did not start: {error}\n".encode())
            name = type(error).__name__
            return Failed(kind="crashed", phase="start", exception_class=name)
        if worker.stdin:
            with suppress(OSError):  # it died before reading; the listener finds out how
                worker.stdin.write(task.model_dump_json().encode())
                worker.stdin.close()
        return _listen(worker, answers.fileno(), selector, limits, listener)


def _start(
    command: Sequence[str], log_file: BinaryIO, resources: ExitStack
) -> tuple[subprocess.Popen[bytes], BinaryIO]:
    """Start a worker, which ends with ``resources``; returns it and the pipe that it answers on."""
    reading, writing = os.pipe()
    answers = resources.enter_context(os.fdopen(reading, "rb", buffering=0))
    try:
        worker = subprocess.Popen(
            [*command, "--parent", str(os.getpid()), "--answer-fd", str(writing)],
            stdin=subprocess.PIPE,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            pass_fds=(writing,),
            env=worker_environment(),
            start_new_session=True,
        )
    finally:
        os.close(writing)
    resources.callback(_end, worker)
    return worker, answers


def _listen(
    worker: subprocess.Popen[bytes],
    answers: int,
    selector: selectors.BaseSelector,
    limits: Limits,
    listener: Listener,
) -> LastMessage | Failed:
    phase: Phase = "start"
    longest_seconds = timed_seconds = 0.0  # of the blocks so far
    heard = time.monotonic()
    deadline = heard + limits.total_seconds
    buffer = b""
    while True:
        if phase == "timing" and timed_seconds:
            patience = max(limits.stall_seconds, limits.stall_factor * longest_seconds)
        else:
            # An evaluation uses fewer samples than the whole epochs that were timed before it.
            patience = max(limits.silence_seconds, timed_seconds)
        until = min(deadline, heard + patience)
        left_seconds = until - time.monotonic()
        if left_seconds <= 0:
            return Failed(kind="timeout" if until == deadline else "stalled", phase=phase)
        if not selector.select(timeout=left_seconds):
            continue
        chunk = os.read(answers, 1 << 16)
        if not chunk:
            return Failed(kind="crashed", phase=phase, exit_code=_exit_code(worker))
        heard = time.monotonic()
        *lines, buffer = (buffer + chunk).split(b"\n")
        if len(buffer) > LONGEST_LINE_BYTES:
            return Failed(kind="crashed", phase=phase, exception_class="GarbledAnswer")
        for line in lines:
            try:
                message = MESSAGE.validate_json(line)
            except ValidationError:
                return Failed(kind="crashed", phase=phase, exception_class="GarbledAnswer")
            if isinstance(message, LastMessage):
                return message
            if isinstance(message, PhaseBegan):
                phase = message.phase
            elif isinstance(message, BlockDone):
                longest_seconds = max(longest_seconds, message.duration_ns / 1e9)
                timed_seconds += message.duration_ns / 1e9
            listener(message)


def _exit_code(worker: subprocess.Popen[bytes]) -> int | None:
    """Exit status; negative for a signal; None if the worker closed its answer but still runs."""
    try:
        return worker.wait(timeout=KILL_WAIT_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _end(worker: subprocess.Popen[bytes]) -> None:
    """End the worker and all processes that it started, which share its session."""
    try:
        os.killpg(worker.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        worker.kill()
    worker.wait()
