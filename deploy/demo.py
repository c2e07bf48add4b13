"""``make demo``: measure this machine, post to a server on loopback, and look at its leaderboard.

At a terminal the server stays up until Ctrl-C. With ``--once``, or without a terminal, leaderboard
and API are checked for every measured cell, the server is stopped, and the exit code says whether
all was there. Everything is kept in ``.demo/``; running again adds to the same database.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".demo"
BIN = Path(sys.executable).parent
CUDA_13 = ROOT / ".venv-cu13"  # `make frameworks` makes it on a machine with an NVIDIA GPU
# A quiet server takes less than a minute; a busy machine takes its time.
RECOMPUTED_SECONDS = 300
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
def server(environ: dict[str, str]) -> Iterator[str]:
    """A migrated server on a free loopback port; yields its address."""
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
            yield _address(process, log)
        finally:
            process.terminate()
            process.wait(timeout=20)


def _address(process: "subprocess.Popen[str]", log: Path) -> str:
    for line in process.stdout or ():
        found = LISTENING.search(line)
        if found:
            return found.group(1)
    raise DemoProblem(f"the server did not start; see {log}")


def measure(address: str, environ: dict[str, str]) -> int:
    """Run the smoke preset; its exit code."""
    if CUDA_13.is_dir():
        subprocess.run([BIN / "bench-agent", "environments", "add", CUDA_13], env=environ)
    command = [BIN / "bench-agent", "run", "--preset", "smoke", "--server", address, "--yes"]
    return subprocess.run(command, env=environ).returncode


def sent_results(environ: dict[str, str]) -> list[dict[str, Any]]:
    """All results that the agent has the server's answer for."""
    done = subprocess.run(
        [BIN / "bench-agent", "status", "--json"], env=environ, check=True, capture_output=True
    )
    return list(json.loads(done.stdout)["sent"])


def check(address: str, results: list[dict[str, Any]]) -> int:
    """Hold leaderboard page and API against what was measured.

    Returns:
        Number of measured results found on both.

    Raises:
        DemoProblem: a result or a cell is missing.
    """
    measured = [result for result in results if result["status"] == "measured"]
    if not measured:
        raise DemoProblem("nothing was measured")
    with httpx.Client(base_url=address, timeout=30) as http:
        for result in measured:
            identifier = result["answer"]["id"]
            _recomputed(http, identifier)
            answer = http.get(f"/api/v1/results/{identifier}", params={"wait": 10})
            if answer.status_code != 200:
                raise DemoProblem(f"the API does not know result {identifier}")
            if answer.json()["cell"] != result["cell"]:
                raise DemoProblem(f"the API shows another cell for result {identifier}")
            page = http.get(f"/results/{identifier}")
            if page.status_code != 200 or result["cell"]["workload"] not in unescape(page.text):
                raise DemoProblem(f"there is no page of result {identifier}")
        cells = [result["cell"] for result in measured]
        for row in sorted({(c["workload"], c["framework"], c["device"]["kind"]) for c in cells}):
            _on_leaderboard(http, *row)
    return len(measured)


def _recomputed(http: httpx.Client, identifier: str) -> None:
    """Wait until the server has recomputed a result's traces."""
    deadline = time.monotonic() + RECOMPUTED_SECONDS
    while time.monotonic() < deadline:
        answer = http.get(f"/api/v1/results/{identifier}", params={"wait": 10}).json()
        verdicts = answer.get("verdicts") or ()
        if verdicts and all(v["figures"].get("verdict") != "pending" for v in verdicts):
            return
        time.sleep(1)
    raise DemoProblem(f"the server has not recomputed result {identifier}")


def _on_leaderboard(http: httpx.Client, workload: str, framework: str, device: str) -> None:
    asked = {"workload": workload, "framework": framework, "device": device}
    rows = http.get("/api/v1/leaderboard", params=asked).json()["rows"]
    page = unescape(http.get("/", params=asked).text)
    if not rows or not all(row["hardware"] in page for row in rows):
        raise DemoProblem(f"{workload} with {framework} on {device} is not on the leaderboard")


def main(once: bool) -> int:
    """The whole demo; the process's exit code."""
    FOLDER.mkdir(exist_ok=True)
    environ = environment()
    with server(environ) as address:
        before = len(sent_results(environ))
        code = measure(address, environ)
        if code not in (0, 1):
            print(f"bench-agent run ended with {code}", file=sys.stderr)
            return code
        found = check(address, sent_results(environ))
        print(f"\n{found - before} new results, {found} in all, on the leaderboard: {address}/")
        print("Their traces were recomputed: bench-agent verify --recompute ADDRESS does the same.")
        if code:
            print("some cells failed; they are shown at the leaderboard's foot", file=sys.stderr)
        if once or not sys.stdout.isatty():
            print("The server is stopped, and its addresses with it; make demo keeps it up.")
            return code
        print("Ctrl-C stops the server.")
        try:
            signal.pause()
        except KeyboardInterrupt:
            print()
    return code


if __name__ == "__main__":
    try:
        sys.exit(main("--once" in sys.argv[1:]))
    except DemoProblem as problem:
        sys.exit(f"demo failed: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
