"""The tasks that a Dask worker runs for a fleet: describe its machine, run ``bench-agent run``.

The agent runs as a process of its own, with the worker's folder and key. ``fleet.json`` in that
folder names the fleet's run, so that a task that starts again continues it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bench_protocol.base.units import Wire
from bench_protocol.payload.result import Measured
from bench_protocol.signing.keys import key_id

from ..base.errors import UsageProblem
from ..base.home import Home, find_home, private_folder, write_durably
from ..base.keys import load_or_create_key
from ..machine import read_facts
from ..remote.outbox import Outbox
from ..run import journal
from ..run.run_lock import alone

TOPIC = "trainmark-fleet"
# Events of a run that the table shows; the others are too many to send.
SHOWN = ("planned", "started", "finished", "delivered", "unreachable", "note")
# The run of a worker that was killed ends with it; another one may be somebody's own.
OTHER_RUN_SECONDS = 120.0
PROCESS = "trainmark_run"  # attribute of the worker that holds the agent's process
# Followed by this process's id: the agent ends with its worker, and leaves the machine free.
MAIN = (
    "import sys; from bench_agent.worker.parent_watch import die_with; "
    "die_with(int(sys.argv.pop(1))); from bench_agent.cli.main import main; main()"
)
COMMAND = (sys.executable, "-c", MAIN)


@dataclass(frozen=True)
class Member:
    """A worker's machine: id of its key, and its processor and GPUs in words."""

    key_id: str
    hardware: str


@dataclass(frozen=True)
class Ended:
    """How a machine's run ended: exit status, counts of repeats, the last words on an error."""

    code: int
    measured: int
    failed: int
    words: str = ""


class _Note(Wire):
    """The content of ``fleet.json``; ``measurements``: of the whole run."""

    fleet: str
    run_id: str | None = None
    measurements: int = 0


def describe() -> Member:
    """This worker's machine. Makes its key if there is none.

    Raises:
        HomeProblem: the key cannot be stored.
    """
    facts, key = read_facts(), load_or_create_key(find_home())
    parts = dict.fromkeys([facts.cpu.brand, *(gpu.name for gpu in facts.gpus)])
    return Member(key_id(key.public_key()), " + ".join(parts))


def measure(fleet: str, arguments: Sequence[str]) -> Ended:
    """Run ``bench-agent run`` with these arguments, or continue the run of this fleet.

    Each event is logged under :data:`TOPIC` as ``{"key_id": ..., "event": ..., ...}``.

    Args:
        fleet: id of the fleet. If this machine began its run, the run is resumed; if the run is
            complete, nothing is measured again.

    Raises:
        UsageProblem: another run holds the folder, or has taken the place of the fleet's.
    """
    home = find_home()
    private_folder(home.root)
    _wait_for_other_run(home)
    note, open_run = _read(home), journal.unfinished(home)
    if note is None or note.fleet != fleet or note.run_id is None:  # nothing is measured yet
        _write(home, note := _Note(fleet=fleet))
        return _run(home, note, [*arguments, "--fresh"])
    if open_run is not None and open_run.run_id == note.run_id:
        return _run(home, note, [*arguments, "--resume"])
    return _complete(home, note.run_id, note.measurements)


def interrupt(dask_worker: Any) -> None:
    """Ask the run of this worker to stop after its present repeat."""
    process = getattr(dask_worker, PROCESS, None)
    if process is not None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)


def _run(home: Home, note: _Note, arguments: Sequence[str]) -> Ended:
    from distributed import get_worker  # here: the module is read without the extra too

    worker = get_worker()
    identity = key_id(load_or_create_key(home).public_key())
    results: list[dict[str, Any]] = []
    log = private_folder(home.logs) / "fleet.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [*COMMAND, str(os.getpid()), "run", "--events", "--yes", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        setattr(worker, PROCESS, process)
        for line in process.stdout or ():
            with suppress(json.JSONDecodeError):
                event = json.loads(line)
                if event["event"] == "summary":
                    results = event["results"]
                if (newer := _after(home, note, event)) != note:
                    _write(home, note := newer)
                if event["event"] in SHOWN:
                    worker.log_event(TOPIC, {"key_id": identity, **event})
    failed = sum(result["status"] == "failed" for result in results)
    words = "" if process.returncode == 0 else _last_line(log)
    return Ended(process.returncode, len(results) - failed, failed, words)


def _after(home: Home, note: _Note, event: dict[str, Any]) -> _Note:
    """The note after an event. Before its first repeat a run is known by its journal."""
    if event["event"] == "planned":
        begun = journal.unfinished(home)
        found = {"run_id": begun.run_id if begun else None, "measurements": event["measurements"]}
        return note.model_copy(update=found)
    if event["event"] == "finished":
        return note.model_copy(update={"run_id": event["run_id"]})
    return note


def _complete(home: Home, run_id: str, measurements: int) -> Ended:
    """The end of a run that the fleet did not hear of.

    Raises:
        UsageProblem: it is not complete, and has no journal to resume from.
    """
    outbox = Outbox(home.outbox)
    entries = [*outbox.pending(), *outbox.sent(), *outbox.refused()]
    results = [result for entry in entries if (result := entry.result()).run_id == run_id]
    if len(results) < measurements:
        raise UsageProblem(
            f"the fleet's run has {len(results)} of {measurements} measurements and cannot resume: "
            "another run has replaced its journal"
        )
    failed = sum(not isinstance(result.outcome, Measured) for result in results)
    return Ended(int(bool(failed)), len(results) - failed, failed)


def _wait_for_other_run(home: Home) -> None:
    """Wait until no run holds this folder, up to :data:`OTHER_RUN_SECONDS`."""
    deadline = time.monotonic() + OTHER_RUN_SECONDS
    while True:
        try:
            with alone(home):
                return
        except UsageProblem:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)


def _read(home: Home) -> _Note | None:
    try:
        return _Note.model_validate_json(_path(home).read_bytes())
    except (OSError, ValidationError):
        return None


def _write(home: Home, note: _Note) -> None:
    write_durably(_path(home), note.model_dump_json().encode())


def _path(home: Home) -> Path:
    return home.root / "fleet.json"


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
