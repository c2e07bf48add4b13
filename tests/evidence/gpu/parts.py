"""Run the parts of a step one after the other, each with a time limit; a part that fails prints one
line, and the others go on."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

POLL_SECONDS, PROGRESS_SECONDS = 0.2, 15.0
# A part with less time than this is left out; the last seconds are for the table.
LEAST_SECONDS, TABLE_SECONDS = 20.0, 10.0
# How long a part may take to end after a signal.
GRACE_SECONDS = 8.0


@dataclass(frozen=True)
class Part:
    """Commands that run at the same time, for at most ``seconds`` of wall time; 0 for what is left.
    ``output``: the file in ``OUT`` that gets the standard output of the first. ``may_fail``: its
    exit code is an answer, not a failure."""

    name: str
    commands: Sequence[Sequence[str]]
    seconds: float = 0.0
    output: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    may_fail: bool = False


def run(step: str, parts: Sequence[Part], out: Path, limit: float) -> list[str]:
    """Run the parts of a step within ``limit`` seconds; a line of each goes to ``parts.jsonl``.
    Returns the names of those that failed or were left out."""
    failed = []
    out.mkdir(parents=True, exist_ok=True)
    ends = time.monotonic() + limit
    for number, part in enumerate(parts):
        left = ends - time.monotonic() - TABLE_SECONDS
        room = min(part.seconds or left, left)
        if room < LEAST_SECONDS:
            result = {"exit": None, "seconds": 0.0, "line": "left out: no time is left"}
        else:
            title = f"{step} {number + 1}/{len(parts)}, {part.name}"
            print(f"== {title}: at most {room:.0f} s; {left:.0f} s are left", flush=True)
            result = _run(part, out, f"{step}-{number + 1}", room, ends)
        print(f"   {_said(result)}", flush=True)
        with (out / "parts.jsonl").open("a") as file:
            file.write(json.dumps({"step": step, "part": part.name, **result}) + "\n")
        if result["exit"] != 0:
            failed.append(part.name)
    return failed


def _said(result: Mapping[str, object]) -> str:
    verdict = {0: "ok", None: "not run"}.get(result["exit"], f"FAILED ({result['exit']})")  # type: ignore[call-overload]
    return f"{verdict}, {result['seconds']:.0f} s: {result['line']}"


def _run(part: Part, out: Path, name: str, room: float, ends: float) -> dict[str, object]:
    began = time.monotonic()
    environment = {**os.environ, **part.environment}
    logs = [out / f"{name}{chr(97 + index)}.log" for index in range(len(part.commands))]
    processes = []
    for index, (command, log) in enumerate(zip(part.commands, logs, strict=True)):
        target = out / part.output if part.output and index == 0 else None
        with log.open("wb") as errors:
            output = target.open("wb") if target else errors
            # Through env, a missing program is a line in the log and exit code 127.
            command = ["env", *command]
            processes.append(
                subprocess.Popen(
                    command, stdout=output, stderr=errors, env=environment, start_new_session=True
                )
            )
            output.close()
    try:
        too_long = _wait(processes, room, ends)
        # A process that is ended below may print more, which is not its result.
        last_lines = [_last_line(log) for log in logs]
    finally:
        for process in processes:
            _end(process)
    codes = [124 if process in too_long else process.returncode for process in processes]
    worst = next((code for code in codes if code), 0)
    line = last_lines[codes.index(worst)] if worst or not part.output else f"see {part.output}"
    if worst == 124:
        line = f"timed out; {line}"
    if worst and worst != 124 and part.may_fail:
        worst, line = 0, f"exit {worst}: {line}"
    return {"exit": worst, "seconds": time.monotonic() - began, "line": line}


def _wait(
    processes: Sequence["subprocess.Popen[bytes]"], room: float, ends: float
) -> list["subprocess.Popen[bytes]"]:
    """Those that still ran when the time ended."""
    stop, shown = time.monotonic() + room, time.monotonic()
    while running := [process for process in processes if process.poll() is None]:
        now = time.monotonic()
        if now > stop:
            return running
        if now > shown + PROGRESS_SECONDS:
            shown = now
            print(f"   ... {stop - now:.0f} s for it, {ends - now:.0f} s in all", flush=True)
        time.sleep(POLL_SECONDS)
    return []


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Interrupt a part's whole group, then kill what is left of it."""
    for number, seconds in ((signal.SIGINT, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "no output"
