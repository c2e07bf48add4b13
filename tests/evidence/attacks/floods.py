"""Strangers without a key take what they can of a server, while an honest client posts."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import quantiles

import httpx
from tests.evidence import pgbouncer
from tests.fakes import postgres, results
from tests.fakes.live import Program

from bench_server.db import migrate
from bench_server.db.store import open_engine

from . import Line

SECONDS = 20
MOST_POST_SECONDS = 1.0
MOST_MIB = 300
# Those that attack, each with rates of its own.
STRANGERS = [f"127.0.0.{number}" for number in range(2, 10)]
JSON, NDJSON = {"Content-Type": "application/json"}, {"Content-Type": "application/x-ndjson"}
SLOW_BODIES, WAITING = 60, 200
KEY = results.private_key(1)


def floods(folder: Path) -> Iterator[Line]:
    """The four attacks at once, on each database that there is. Linux only: memory is read from
    ``/proc``, and others have one loopback address."""
    yield _line("SQLite", f"sqlite:///{folder / 'floods.db'}", folder)
    with suppress(FileNotFoundError):
        cluster = postgres.start()
        try:
            cluster.create("floods")
            yield _line("PostgreSQL", cluster.url("floods"), folder)
            cluster.create("pooled")
            with pgbouncer.running(cluster) as pooler:
                yield _line("PgBouncer", pooler.url("pooled"), folder)
        finally:
            cluster.stop()


def _line(name: str, url: str, folder: Path) -> Line:
    migrate.migrate(open_engine(url))
    # Nothing is projected, so that each result that is asked for is pending.
    server = Program(url, folder, "serve", "--port", "0", BENCH_SERVER_PROJECT="no")
    try:
        address = server.address()
        posted, most_mib = _under_attack(address, server.pid)
    finally:
        server.stop()
    p99 = quantiles(posted, n=100, method="inclusive")[98]
    return Line(
        f"junk, unknown keys, slow bodies, {WAITING} waiting: {name}",
        f"{len(posted)} honest posts, p99 {p99:.2f} s; {most_mib:.0f} MiB at most",
        p99 < MOST_POST_SECONDS and most_mib < MOST_MIB,
    )


def _under_attack(address: str, pid: int) -> tuple[list[float], float]:
    """Seconds of each honest post, and the most memory, in MiB."""
    ended = threading.Event()
    with httpx.Client(base_url=address, timeout=60, headers=JSON) as honest:
        honest.post("/api/v1/keys", content=results.enrollment(KEY)).raise_for_status()
        pending = _post(honest)["id"]
        unknown, junk = b"\n".join(_unknown_keys(512)), b"{}\n" * 512
        attacks: list[Callable[[], None]] = [
            *(lambda who=who: _batches(address, who, junk, ended) for who in STRANGERS[:4]),
            *(lambda who=who: _batches(address, who, unknown, ended) for who in STRANGERS[4:]),
            lambda: _slow_bodies(address, ended),
            lambda: _waiting(address, f"/api/v1/results/{pending}?wait=30", ended),
        ]
        threads = [threading.Thread(target=attack) for attack in attacks]
        for thread in threads:
            thread.start()
        posted, most_mib = [], 0.0
        try:
            until = time.monotonic() + SECONDS
            while (began := time.monotonic()) < until:
                _post(honest)
                posted.append(time.monotonic() - began)
                most_mib = max(most_mib, _resident_mib(pid))
                time.sleep(0.1)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    return posted, most_mib


def _post(http: httpx.Client) -> dict[str, str]:
    """Post a result until it is acknowledged: as an agent does, again after the time asked for."""
    raw = results.sealed(results.make_result(key=KEY), KEY)
    while (answer := http.post("/api/v1/results", content=raw)).status_code == 503:
        time.sleep(float(answer.headers["Retry-After"]))
    found: dict[str, str] = answer.raise_for_status().json()
    return found


def _unknown_keys(count: int) -> list[bytes]:
    sealed, own = results.sealed(results.make_result(key=KEY), KEY), results.key_id(KEY).encode()
    return [sealed.replace(own, b"%064x" % number) for number in range(count)]


def _batches(address: str, who: str, body: bytes, ended: threading.Event) -> None:
    """Batches, one after another, three at a time."""

    def send() -> None:
        transport = httpx.HTTPTransport(local_address=who)
        with httpx.Client(base_url=address, transport=transport, timeout=60) as http:
            while not ended.is_set():
                with suppress(httpx.HTTPError):
                    http.post("/api/v1/results", content=body, headers=NDJSON)

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _slow_bodies(address: str, ended: threading.Event) -> None:
    """Bodies of nearly 8 MiB that come fast, then slowly."""
    size = 8 * 1024 * 1024 - 10
    head = (
        "POST /api/v1/results HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
        f"Content-Length: {size}\r\n\r\n"
    ).encode()
    clients = [_connected(address, who) for who in STRANGERS * (SLOW_BODIES // len(STRANGERS))]
    for client in clients:
        with suppress(OSError):
            client.sendall(head)
            client.sendall(b" " * (size - 400_000))
    while not ended.wait(1):
        for client in clients:
            with suppress(OSError):
                client.sendall(b" " * 2000)
    for client in clients:
        client.close()


def _waiting(address: str, path: str, ended: threading.Event) -> None:
    """Connections that each ask to wait for a pending result."""
    asked = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    clients = [_connected(address, STRANGERS[number % 2]) for number in range(WAITING)]
    for client in clients:
        with suppress(OSError):
            client.sendall(asked)
    ended.wait()
    for client in clients:
        client.close()


def _connected(address: str, who: str) -> socket.socket:
    url = httpx.URL(address)
    client = socket.create_connection((url.host, url.port or 0), 10, source_address=(who, 0))
    client.settimeout(1)
    return client


def _resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024
