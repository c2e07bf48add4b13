"""Servers that keep benchmarks' figures too, each served as its documentation says.

Each is installed from the package index into an environment of its own, which is kept for the next
time. One submission is one machine's run with twenty metrics; none of them verifies a signature.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import httpx
from tests.fakes.ports import free_port

from . import load
from .lines import Found, Line
from .running import START_SECONDS, Running
from .taking import CLIENTS

ENVIRONMENTS = Path(__file__).resolve().parents[2] / ".benchmark"
INSTALL_SECONDS = 900
METRICS = 20
# More than LNT takes in.
LNT_RUNS_PER_SECOND = 200


@dataclass(frozen=True)
class Peer:
    """A program with its version. ``prepare`` and ``serve`` are commands of its environment, the
    latter on a port with so many workers; ``submit`` posts to its address from so many clients."""

    name: str
    packages: tuple[str, ...]
    prepare: tuple[str, ...]
    serve: Callable[[int, int], tuple[str, ...]]
    submit: Callable[[str, int, float], load.Load]


class NoPeer(RuntimeError):
    """It cannot be installed or does not start; the message says why."""


def measured(peer: Peer, workers: int, seconds: float) -> Found:
    """Runs a second from one client and from many; where it cannot be had, why."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="trainmark-peer-") as folder,
            _served(peer, Path(folder), workers) as running,
        ):
            for clients in CLIENTS:
                yield _submitted(peer, running, workers, clients, seconds)
    except (NoPeer, load.LoadFailed) as problem:
        yield f"{peer.name} is not measured: {problem}"


def _submitted(peer: Peer, running: Running, workers: int, clients: int, seconds: float) -> Line:
    use = running.while_under(lambda: peer.submit(running.address, clients, seconds))
    what, cpu_ms = f"{peer.name}: runs", use.cpu_seconds / use.load.answers * 1e3
    if use.load.refused:
        what += f" ({use.load.refused:,} more refused)"
    return Line(what, 0, workers, clients, use.load, cpu_ms, use.resident_mib)


@contextmanager
def _served(peer: Peer, place: Path, workers: int) -> Iterator[Running]:
    programs = _installed(peer)
    _run([programs / peer.prepare[0], *peer.prepare[1:]], place)
    port = free_port()
    program, *arguments = peer.serve(port, workers)
    with (place / "output").open("w") as output:
        process = subprocess.Popen(
            [programs / program, *arguments],
            cwd=place, stdout=output, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
    try:
        running = Running(f"http://127.0.0.1:{port}", process)
        _wait_for(running, place / "output")
        yield running
    finally:
        process.terminate()
        process.wait(timeout=30)


def _installed(peer: Peer) -> Path:
    """The folder of its programs."""
    environment = ENVIRONMENTS / "-".join(peer.packages).replace("==", "-")
    done = environment / "installed"
    if not done.exists():
        _run([sys.executable, "-m", "venv", "--clear", environment], Path.cwd())
        pip = [environment / "bin" / "python", "-m", "pip", "install", "-q"]
        _run([*pip, *peer.packages], Path.cwd())
        done.touch()
    return environment / "bin"


def _run(command: list[str | Path], place: Path) -> None:
    try:
        subprocess.run(
            command, cwd=place, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
    except subprocess.CalledProcessError as failed:
        raise NoPeer((failed.stderr.strip() or str(failed)).splitlines()[-1]) from failed
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise NoPeer(str(failed)) from failed


def _wait_for(running: Running, output: Path) -> None:
    for _ in range(START_SECONDS * 2):
        try:
            httpx.get(running.address, timeout=5)
        except httpx.HTTPError:
            if running.process.poll() is not None:
                break
            time.sleep(0.5)
        else:
            return
    raise NoPeer(f"it did not start: {output.read_text().strip()[-300:]}")


def _lnt_reports(address: str, clients: int, seconds: float) -> load.Load:
    """Reports in LNT's own format as a form, as its client sends, each of another revision."""
    path = f"{address}/db_default/v4/nts/submitRun"
    with tempfile.NamedTemporaryFile("w") as file:
        for number in range(int(LNT_RUNS_PER_SECOND * (seconds + 1))):
            report = {
                "format_version": "2",
                "machine": {"name": f"machine-{number % 64}", "hardware": "x86_64", "os": "Linux"},
                "run": {
                    "start_time": "2026-01-01T00:00:00",
                    "end_time": "2026-01-01T00:01:00",
                    "llvm_project_revision": f"{clients}{number:06d}",
                },
                "tests": [
                    {"name": f"suite/test-{metric}", "execution_time": [metric + 0.25]}
                    for metric in range(METRICS)
                ],
            }
            file.write(urlencode({"input_data": json.dumps(report), "commit": "1"}) + "\n")
        file.flush()
        kind = "application/x-www-form-urlencoded"
        bodies = Path(file.name)
        return load.posting(path, bodies, clients=clients, seconds=seconds, kind=kind)


LNT = Peer(
    "LLVM LNT 0.4.20",
    ("llvm-lnt==0.4.20", "gunicorn==26.2.0"),
    ("lnt", "create", "--wsgi", "lnt_wsgi.py", "instance"),
    lambda port, workers: (
        *("gunicorn", "--chdir", "instance", "-w", str(workers), "-b", f"127.0.0.1:{port}"),
        *("--timeout", "120", "lnt_wsgi:application"),
    ),
    _lnt_reports,
)
MLFLOW = Peer(
    "MLflow 3.17.2",
    ("mlflow==3.17.2",),
    ("mlflow", "--version"),
    lambda port, workers: (
        *("mlflow", "server", "--port", str(port), "--workers", str(workers)),
        *("--backend-store-uri", "sqlite:///mlflow.db"),
    ),
    lambda address, clients, seconds: load.making_runs(
        address, METRICS, clients=clients, seconds=seconds
    ),
)
PEERS = (LNT, MLFLOW)
