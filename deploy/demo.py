"""``make demo``: measure this machine, post to a server on loopback, and look at its leaderboard.

At a terminal the server stays up until Ctrl-C. With ``--once``, or without a terminal, leaderboard
and API are checked for every measured cell, the server is stopped, and the exit code says whether
all was there. A run with a fault ends with a page of what worked and what did not. Other arguments
are options of ``bench-agent run``. Everything is kept in ``.demo/`` (``TRAINMARK_DEMO`` moves it);
running again adds to the same database.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import demo_page
import httpx

from bench_protocol.base.format import plural

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("TRAINMARK_DEMO") or ROOT / ".demo")
BIN = Path(sys.executable).parent
# `make install` makes one where the frameworks do not fit into one environment.
SECOND = (ROOT / ".venv-cu13", ROOT / ".venv-tensorflow")
# Exit codes of bench-agent (docs/agent.md).
SERVER_UNREACHABLE, INTERRUPTED = 3, 130
# A quiet server takes less than a minute; a busy machine takes its time.
RECOMPUTED_SECONDS = 300
RECOMPUTED_LEVEL = 3
AGAIN = 'To run again with an option of bench-agent: make demo ARGS="--budget-seconds 30"'
LISTENING = re.compile(r"listening on (http://\S+)")


class DemoProblem(Exception):
    """The demo did not show what it should; the message says what is missing."""


def environment() -> dict[str, str]:
    """The caller's environment with key, outbox and database in the demo's folder."""
    database = FOLDER / "trainmark.db"
    return {
        **os.environ,
        "BENCH_HOME": str(FOLDER / "agent"),
        "BENCH_SERVER_DATABASE_URL": f"sqlite:///{database}",
    }


@contextmanager
def server(environ: dict[str, str]) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A migrated server on a free loopback port; yields its address and its process."""
    subprocess.run([BIN / "bench-server", "migrate"], env=environ, check=True)
    log = FOLDER / "server.log"
    with log.open("ab") as log_file:
        process = subprocess.Popen(
            [BIN / "bench-server", "serve", "--port", "0"],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=log_file,
            text=True,
        )
        try:
            yield _address(process, log), process
        finally:
            process.terminate()
            process.wait(timeout=20)


def _address(process: "subprocess.Popen[str]", log: Path) -> str:
    for line in process.stdout or ():
        found = LISTENING.search(line)
        if found:
            return found.group(1)
    raise DemoProblem(f"the server did not start; see {log}")


def measure(address: str, environ: dict[str, str], options: Sequence[str] = ()) -> int:
    """Run the smoke preset; its exit code.

    Args:
        options: more options of ``bench-agent run``.
    """
    for folder in filter(Path.is_dir, SECOND):
        subprocess.run([BIN / "bench-agent", "environments", "add", folder], env=environ)
    command = [BIN / "bench-agent", "run", "--preset", "smoke", "--server", address, "--yes"]
    return subprocess.run([*command, *options], env=environ).returncode


def stored_results(environ: dict[str, str]) -> dict[str, dict[str, Any]]:
    """All results in the outbox by file name; those without ``answer`` are not sent."""
    done = subprocess.run(
        [BIN / "bench-agent", "status", "--json"], env=environ, check=True, capture_output=True
    )
    status = json.loads(done.stdout)
    return {
        each["file"]: each for state in ("pending", "sent", "refused") for each in status[state]
    }


def findings(environ: dict[str, str]) -> list[dict[str, Any]]:
    """What doctor says of the frameworks and their devices; empty if it says nothing readable."""
    only = [word for name in demo_page.CHECKS for word in ("--only", name)]
    done = subprocess.run(
        [BIN / "bench-agent", "doctor", "--json", *only], env=environ, capture_output=True
    )
    try:
        return list(json.loads(done.stdout)["findings"])
    except ValueError:
        sys.stderr.write(done.stderr.decode(errors="replace"))
        return []


def check(address: str, measured: Sequence[dict[str, Any]]) -> list[str]:
    """Compare leaderboard page and API with what was measured.

    Returns:
        Lines that say how many results have trust level 3 or above, and what others lack.

    Raises:
        DemoProblem: a result or a cell is missing.
    """
    levels: list[tuple[int, str | None]] = []
    with httpx.Client(base_url=address, timeout=30) as http:
        for result in measured:
            if "id" not in (result["answer"] or {}):
                raise DemoProblem(f"the server did not accept result {result['file']}")
            identifier = result["answer"]["id"]
            _recomputed(http, identifier)
            answer = http.get(f"/api/v1/results/{identifier}", params={"wait": 10})
            if answer.status_code != 200:
                raise DemoProblem(f"the API does not know result {identifier}")
            if answer.json()["cell"] != result["cell"]:
                raise DemoProblem(f"the API shows another cell for result {identifier}")
            levels.append((answer.json()["trust_level"], answer.json()["level_needs"]))
            page = http.get(f"/results/{identifier}")
            if page.status_code != 200 or result["cell"]["workload"] not in unescape(page.text):
                raise DemoProblem(f"there is no page of result {identifier}")
        cells = [result["cell"] for result in measured]
        for row in sorted({(c["workload"], c["framework"], c["device"]["kind"]) for c in cells}):
            _on_leaderboard(http, *row)
    return level_lines(levels)


def level_lines(levels: Sequence[tuple[int, str | None]]) -> list[str]:
    """What a person reads of trust levels, each with what its next one needs."""
    recomputed = sum(level >= RECOMPUTED_LEVEL for level, _ in levels)
    lines = [
        f"At trust level {RECOMPUTED_LEVEL}: {recomputed} of {plural(len(levels), 'result')}. "
        "There the server recomputed the session's readings."
    ]
    lower = Counter(
        (level, (needs or "no reason").removeprefix(f"level {level + 1}: "))
        for level, needs in levels
        if level < RECOMPUTED_LEVEL
    )
    return lines + [
        f"  {count} at level {level}: {reason}" for (level, reason), count in lower.items()
    ]


def _recomputed(http: httpx.Client, identifier: str) -> None:
    """Wait until the server has recomputed a result's readings."""
    deadline = time.monotonic() + RECOMPUTED_SECONDS
    while time.monotonic() < deadline:
        require_projection(http)
        answer = http.get(f"/api/v1/results/{identifier}", params={"wait": 10}).json()
        verdicts = answer.get("verdicts") or ()
        if verdicts and all(v["figures"].get("verdict") != "pending" for v in verdicts):
            return
        time.sleep(1)
    raise DemoProblem(f"the server has not recomputed result {identifier}")


def require_projection(http: httpx.Client) -> None:
    """Check that the server's boards follow its log.

    Raises:
        DemoProblem: they stopped, so that waiting for a result does not help.
    """
    if why := http.get("/readyz").json().get("projection_stopped"):
        log = FOLDER / "server.log"
        raise DemoProblem(
            f"the server stopped applying its log, so it ranks nothing new: {why}; see {log}"
        )


def _on_leaderboard(http: httpx.Client, workload: str, framework: str, device: str) -> None:
    asked = {"workload": workload, "framework": framework, "device": device}
    rows = http.get("/api/v1/leaderboard", params=asked).json()["rows"]
    page = unescape(http.get("/", params=asked).text)
    if not rows or not all(row["hardware"] in page for row in rows):
        raise DemoProblem(f"{workload} with {framework} on {device} is not on the leaderboard")


def stay(process: "subprocess.Popen[str]") -> None:
    """Wait for Ctrl-C, or for a signal that ends the server.

    Raises:
        DemoProblem: the server ended with an error.
    """
    try:
        code = process.wait()
    except KeyboardInterrupt:
        print("\nstopping the server")
    else:
        if code:
            log = FOLDER / "server.log"
            raise DemoProblem(f"the server ended with exit code {code}; see {log}")
        print("\nthe server was stopped")


def main(once: bool, options: Sequence[str] = ()) -> int:
    """The whole demo.

    Args:
        options: more options of ``bench-agent run``.

    Returns:
        0 if a repeat was measured and the server shows all that were. A framework or device that
        fails does not change it: the demo asks whether results come from this machine onto a
        board. ``bench-agent run`` itself ends with 1 where a cell fails.

    Raises:
        DemoProblem: nothing was measured, or the server failed.
    """
    FOLDER.mkdir(exist_ok=True)
    environ = environment()
    with server(environ) as (address, process):
        stays = not once and sys.stdout.isatty()
        if not stays:
            print("The server stops at the end; make demo at a terminal keeps it up.", flush=True)
        before = stored_results(environ)
        code = measure(address, environ, options)
        if code == INTERRUPTED:
            return code
        every = stored_results(environ)
        new = [result for file, result in every.items() if file not in before]
        measured = [result for result in new if result["status"] == "measured"]
        agent = f"BENCH_HOME={shlex.quote(environ['BENCH_HOME'])} {BIN / 'bench-agent'}"
        if text := demo_page.page(new, findings(environ), agent, code):
            print(text, flush=True)
        if not measured:
            raise DemoProblem("nothing was measured")
        if code == SERVER_UNREACHABLE:
            raise DemoProblem(f"the server did not take the results; see {FOLDER / 'server.log'}")
        lines = [*check(address, measured), AGAIN]
        counts = f"{plural(len(new), 'new result')}, {len(every)} in all"
        if not stays:
            gone = "The server stops now: the addresses above no longer answer."
            print(f"\n{counts}; the server showed each.", *lines, gone, sep="\n")
            return 0
        print(f"\n{counts}; the leaderboard: {address}/", *lines, sep="\n")
        print(f"To recompute a result of the leaderboard: {agent} verify --recompute ADDRESS")
        print("Ctrl-C stops the server.", flush=True)
        stay(process)
    return 0


if __name__ == "__main__":
    try:
        parser = argparse.ArgumentParser(prog="make demo", description=__doc__, allow_abbrev=False)
        parser.add_argument("--once", action="store_true", help="check, then stop the server")
        asked, others = parser.parse_known_args()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
        sys.exit(main(asked.once, others))
    except (DemoProblem, OSError, httpx.HTTPError) as problem:
        sys.exit(f"demo failed: {problem}")
    except subprocess.CalledProcessError as problem:
        command = shlex.join(map(str, problem.cmd))
        sys.exit(f"demo failed: {command} ended with exit code {problem.returncode}")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
