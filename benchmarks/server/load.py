"""Load from wrk, which needs little of a core, or at a pace: how many answers, how soon."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

SCRIPTS = Path(__file__).resolve().parent
JSON = "application/json"
NDJSON = "application/x-ndjson"
HEADERS = {"Content-Type": JSON, "Accept-Encoding": "gzip"}


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


def paced(
    address: str,
    requests: Iterable[tuple[str, str, bytes | None]],
    per_second: float,
    ended: Callable[[], bool] = lambda: False,
) -> Load:
    """Send requests (method, path, body) one after another at even intervals. One that is late
    because the answer before it was late has its latency from the time it was due."""
    place = urlsplit(address)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=30)
    taken, refused, began = [], 0, time.perf_counter()
    for number, (method, path, body) in enumerate(requests):
        if ended():
            break
        due = began + number / per_second
        if (early := due - time.perf_counter()) > 0:
            time.sleep(early)
            due = time.perf_counter()
        connection.request(method, path, body, HEADERS)
        answer = connection.getresponse()
        answer.read()
        taken.append(time.perf_counter() - due)
        refused += answer.status >= 400
    seconds = time.perf_counter() - began
    connection.close()
    percentiles = [cut * 1e3 for cut in quantiles(taken, n=100, method="inclusive")]
    return Load(len(taken) - refused, refused, seconds, percentiles[49], percentiles[98])


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
