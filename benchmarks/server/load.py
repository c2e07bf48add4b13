"""Load from wrk, which needs little of a core: how many answers a second, how soon."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
JSON = "application/json"
NDJSON = "application/x-ndjson"


@dataclass(frozen=True)
class Load:
    """What came back: answers with status below 400, and the latency of all answers."""

    answers: int
    refused: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.answers / self.seconds


class LoadFailed(RuntimeError):
    """Answers were refused, or connections broke: the figures would mean nothing."""


def require() -> None:
    """Raises:
    SystemExit: wrk is not installed.
    """
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing; run: apt-get install wrk (macOS: brew install wrk)")


def posting(
    address: str, bodies: Path, *, clients: int, seconds: float, lines: int = 1, kind: str = JSON
) -> Load:
    """Post each line of a file once, ``lines`` of them in a request."""
    # One thread: the file is read once, and every line goes out once.
    return _wrk("post.lua", address, clients, 1, seconds, [str(bodies), str(lines), kind])


def getting(address: str, paths: Sequence[str], *, clients: int, seconds: float) -> Load:
    """GET paths of a server in turn, over and over."""
    with tempfile.NamedTemporaryFile("w", suffix=".paths") as file:
        file.write("".join(f"{path}\n" for path in paths))
        file.flush()
        return _wrk("get.lua", address, clients, 1, seconds, [file.name])


def making_runs(address: str, metrics: int, *, clients: int, seconds: float) -> Load:
    """Make runs with so many metrics in MLflow."""
    return _wrk("mlflow.lua", address, clients, clients, seconds, [str(metrics)])


def _wrk(
    script: str, address: str, clients: int, threads: int, seconds: float, arguments: list[str]
) -> Load:
    command = [
        "wrk",
        f"-t{threads}",
        f"-c{clients}",
        f"-d{max(1, round(seconds))}s",
        "--timeout",
        "30s",
    ]
    done = subprocess.run(
        [*command, "-s", str(SCRIPTS / script), address, "--", *arguments],
        check=False, capture_output=True, text=True, timeout=seconds + 120,
    )  # fmt: skip
    if done.returncode:
        raise LoadFailed(f"{address}: {done.stdout}{done.stderr}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if found["broken"] or found["answers"] == found["refused"]:
        raise LoadFailed(f"{address}: {found}\n{done.stderr}")
    accepted, refused = found["answers"] - found["refused"], found["refused"]
    return Load(accepted, refused, found["seconds"], found["p50_ms"], found["p99_ms"])
