"""A fleet with a real scheduler: four worker processes, each with its own key, and one server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.fakes.waiting import wait_for
from tests.system.conftest import BIN, Server

from bench_agent.base.home import Home
from bench_agent.remote.outbox import Outbox
from bench_agent.run import journal

pytest.importorskip("distributed", reason="distributed is not installed")
ROOT = Path(__file__).parents[2]
PRELOAD = ROOT / "tests" / "fakes" / "fleet_agent.py"
# For the fakes, which no environment has installed.
PATHS = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
DEADLINE_SECONDS = 120
Start = Callable[..., subprocess.Popen[str]]


@contextmanager
def programs() -> Iterator[list[subprocess.Popen[str]]]:
    """A list of programs, which end with the block, also at Ctrl-C."""
    processes: list[subprocess.Popen[str]] = []
    try:
        yield processes
    finally:
        for process in processes:  # all, before one is waited for: another Ctrl-C ends the wait
            process.kill()
        for process in processes:
            process.wait()


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    with programs() as every:
        yield every


@pytest.fixture
def start(tmp_path: Path, processes: list[subprocess.Popen[str]]) -> Start:
    """Starts programs, which end with the test."""
    logs = count()

    def started(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        with (tmp_path / f"{next(logs)}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                env={**os.environ, "PYTHONPATH": PATHS, **environment},
                stdout=log,
                stderr=log,
                text=True,
            )
        processes.append(process)
        return process

    return started


def start_scheduler(start: Start, folder: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """A scheduler and its address."""
    file = folder / "scheduler.json"
    process = start(
        "distributed.cli.dask_scheduler",
        *("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)),
        *options,
    )
    assert wait_for(
        lambda: file.exists() and file.read_text().rstrip().endswith("}"), DEADLINE_SECONDS
    )
    return process, str(json.loads(file.read_text())["address"])


def start_worker(start: Start, address: str, home: Path, *options: str) -> subprocess.Popen[str]:
    return start(
        "distributed.cli.dask_worker",
        *(address, "--name", home.name, "--nthreads", "1", "--no-nanny", "--no-dashboard"),
        *("--resources", "trainmark=1", "--preload", str(PRELOAD)),
        *("--local-directory", str(home.parent / "dask")),
        *options,
        BENCH_HOME=str(home),
    )


@dataclass(frozen=True)
class Cluster:
    """A server, a scheduler and workers, each worker with a folder of its own."""

    server: str
    scheduler: str
    homes: tuple[Path, ...]
    workers: tuple[subprocess.Popen[str], ...]
    processes: list[subprocess.Popen[str]]

    def fleet(self, repeats: int, *options: str, **environment: str) -> subprocess.Popen[str]:
        """``bench-agent fleet`` for one small cell; it ends with the test."""
        process = subprocess.Popen(
            [
                *(BIN / "bench-agent", "fleet", "--json", "--server", self.server),
                *("--scheduler", self.scheduler, "--machines", str(len(self.homes))),
                *("--preset", "smoke", "--workload", "fashion-mlp", "--framework", "mlx"),
                *("--recipe", "naive", "--repeats", str(repeats)),
                *options,
            ],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def check(self, fleet: subprocess.Popen[str], repeats: int) -> None:
        """Each machine measured and posted each repeat once, and never beside another one."""
        output, errors = fleet.communicate(timeout=DEADLINE_SECONDS)
        # The fake engine trains nothing: each repeat fails its conformance, and is sent.
        assert fleet.returncode == 1, errors + output
        rows = {row["name"]: row for row in json.loads(output)["machines"]}
        counts = {(row["state"], row["finished"], row["failed"]) for row in rows.values()}
        assert counts == {("failed", repeats, repeats)}, errors + output
        assert len({row["key_id"] for row in rows.values()}) == len(self.homes)
        spans = []
        for home in map(Home, self.homes):
            outbox = Outbox(home.outbox)
            results = [entry.result() for entry in outbox.sent()]
            assert not list(outbox.pending())
            assert sorted(result.repeat for result in results) == list(range(1, repeats + 1))
            assert len({result.run_id for result in results}) == 1
            assert journal.unfinished(home) is None
            for clocks in (result.clocks for result in results):
                took = timedelta(microseconds=(clocks.finished_ns - clocks.started_ns) / 1000)
                began = datetime.fromisoformat(clocks.started)
                spans.append((began, began + took))
        # All are on one host.
        assert all(before[1] < after[0] for before, after in pairwise(sorted(spans)))
        with httpx.Client(base_url=self.server) as http:
            stored = http.get("/api/v1/results").json()["results"]
        assert len(stored) == repeats * len(self.homes)


@pytest.fixture
def make_cluster(
    tmp_path: Path,
    processes: list[subprocess.Popen[str]],
    start: Start,
    make_server: Callable[[], Server],
) -> Callable[[int], Cluster]:
    def make(count: int) -> Cluster:
        server, (_, scheduler) = make_server().start(), start_scheduler(start, tmp_path)
        homes = tuple(tmp_path / f"desk-{number}" for number in range(count))
        workers = tuple(start_worker(start, scheduler, home) for home in homes)
        return Cluster(server, scheduler, homes, workers, processes)

    return make


def test_ctrl_c_ends_every_program_of_a_test(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), programs() as processes:
        Cluster("http://127.0.0.1:9", "tcp://127.0.0.1:9", (tmp_path,), (), processes).fleet(1)
        signal.raise_signal(signal.SIGINT)
    assert [process.returncode for process in processes] == [-signal.SIGKILL]


def test_two_workers_post_to_one_server(make_cluster: Callable[[int], Cluster]) -> None:
    cluster = make_cluster(2)
    cluster.check(cluster.fleet(repeats=1), repeats=1)


@pytest.mark.long
def test_of_four_workers_a_lost_one_resumes_on_its_machine(
    make_cluster: Callable[[int], Cluster], start: Start
) -> None:
    cluster = make_cluster(4)
    fleet = cluster.fleet(repeats=2)

    def begun() -> list[int]:
        """Machines that have one of their two results."""
        assert fleet.poll() is None, fleet.communicate()
        return [
            number
            for number, home in enumerate(cluster.homes)
            if len(list(home.glob("outbox/*/*.json"))) == 1 and (home / "run.json").exists()
        ]

    (lost,) = wait_for(begun, DEADLINE_SECONDS)
    cluster.workers[lost].kill()
    cluster.workers[lost].wait()
    start_worker(start, cluster.scheduler, cluster.homes[lost])
    cluster.check(fleet, repeats=2)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of its own authority, and its key."""
    paths = folder / "host.pem", folder / "host.key"
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fleet")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths[0].write_bytes(made.public_bytes(Encoding.PEM))
    form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    paths[1].write_bytes(key.private_bytes(*form))
    return paths


def test_over_tls_what_is_wrong_with_workers_and_scheduler_is_named(
    start: Start,
    processes: list[subprocess.Popen[str]],
    tmp_path: Path,
    make_server: Callable[[], Server],
) -> None:
    pem, key = map(str, certificate(tmp_path))
    tls = ("--tls-ca-file", pem, "--tls-cert", pem, "--tls-key", key)
    process, scheduler = start_scheduler(start, tmp_path, "--protocol", "tls", *tls)
    assert scheduler.startswith("tls://")
    (tmp_path / "broken").write_text("a file")
    names = ("broken", "desk-0")
    workers = []
    for number, name in enumerate(names, 1):
        workers.append(start_worker(start, scheduler, tmp_path / name, *tls))
        log = tmp_path / f"{number}.log"
        assert wait_for(lambda log=log: "Registered to" in log.read_text(), DEADLINE_SECONDS)
    one = Cluster(
        make_server().start(), scheduler, (tmp_path / "desk-0",), tuple(workers), processes
    )
    client = "DASK_DISTRIBUTED__COMM__TLS__CLIENT__"
    trusted = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": pem}
    mine = {f"{client}CERT": pem, f"{client}KEY": key, **trusted}
    assert "no certificate for tls://" in one.fleet(1, **trusted).communicate()[1]

    output, errors = one.fleet(1, **mine).communicate(timeout=DEADLINE_SECONDS)
    rows = {row["name"]: row for row in json.loads(output)["machines"]}
    assert (rows["desk-0"]["finished"], rows["desk-0"]["sent"]) == (1, 1), errors
    assert rows["broken"]["state"] == "failed"
    assert rows["broken"]["words"].startswith("cannot be used: cannot read ")

    cut_off = one.fleet(1000, **mine, DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT="2s")
    assert wait_for(lambda: len(list(one.homes[0].glob("outbox/*/*.json"))) > 1, DEADLINE_SECONDS)
    start(
        "distributed.cli.dask_worker",
        *(scheduler, "--name", "plain", "--nthreads", "1", "--no-nanny", "--no-dashboard", *tls),
    )
    log = tmp_path / "3.log"
    assert wait_for(lambda: "Registered to" in log.read_text(), DEADLINE_SECONDS)
    second = one.fleet(1, "--patience-seconds", "2", **mine)
    _, errors = second.communicate(timeout=DEADLINE_SECONDS)
    assert second.returncode == 2, errors
    words = " ".join(errors.split())
    assert "0 of 1 machine came" in words
    assert "worker desk-0 measures for another fleet" in words
    assert "worker plain has no resource trainmark" in words
    assert cut_off.poll() is None
    process.kill()
    _, errors = cut_off.communicate(timeout=DEADLINE_SECONDS)
    assert cut_off.returncode == 2, errors
    assert "the scheduler is lost" in errors
