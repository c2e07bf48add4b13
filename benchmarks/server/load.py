"""Load from wrk, which needs little of a core: how many answers a second, how soon."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
JSON = "application/json"
NDJSON = "application/x-ndjson"


@dataclass(frozen=True)
class Load:
    """What came back: answers with status below 400, and their latency."""

    answers: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.answers / self.seconds


class LoadFailed(RuntimeError):
    """Answers were refused, or connections broke: the figures would mean nothing."""


def posting(
    address: str, bodies: Path, *, clients: int, seconds: float, lines: int = 1, kind: str = JSON
) -> Load:
    """Post each line of a file once, ``lines`` of them in a request."""
    arguments = ["--", str(bodies), str(lines), kind]
    return _wrk(SCRIPTS / "post.lua", address, clients, seconds, arguments)


def getting(address: str, *, clients: int, seconds: float) -> Load:
    """GET one address over and over."""
    return _wrk(SCRIPTS / "get.lua", address, clients, seconds, [])


def _wrk(script: Path, address: str, clients: int, seconds: float, arguments: list[str]) -> Load:
    # One thread: the file is read once, and every line goes out once.
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds:g}s", "--timeout", "30s", "-s"]
    done = subprocess.run(
        [*command, str(script), address, *arguments],
        check=True, capture_output=True, text=True, timeout=seconds + 120,
    )  # fmt: skip
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if found["refused"] or found["broken"] or not found["requests"]:
        raise LoadFailed(f"{address}: {found}\n{done.stderr}")
    return Load(found["requests"], found["seconds"], found["p50_ms"], found["p99_ms"])
