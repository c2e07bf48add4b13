"""SIGKILLs of server and projector at random points: no acknowledged result is lost or doubled."""

import os
import random
import socket
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from tests.fakes import results
from tests.fakes.client import JSON
from tests.fakes.live import Program
from tests.fakes.projected import project
from tests.server.test_projection import rows

from bench_protocol import envelope, receipts
from bench_server.answers import log_entries
from bench_server.audit import verify as audit
from bench_server.db.store import Store
from bench_server.db.tables import Submission
from bench_server.log import writer
from bench_server.log.server_keys import load_authority
from bench_server.projection import reindex

CLIENTS = 12
KILLS = int(os.environ.get("KILLS", "200"))
LONGEST_LIFE_SECONDS = 0.6


class Client(threading.Thread):
    """Posts results one after the other, each until it is acknowledged; ``acknowledged`` has the
    first answer to each envelope."""

    def __init__(self, number: int, address: str, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.key = results.private_key(number + 1)
        self.machine = results.make_machine(seed=number + 1)
        self.address, self.stop_event = address, stop
        self.acknowledged: list[tuple[bytes, dict[str, Any]]] = []
        self.refused: list[str] = []
        self.random = random.Random(number)

    def run(self) -> None:
        with httpx.Client(base_url=self.address, timeout=10) as http:
            self._until_answered(http, "/api/v1/keys", results.enrollment(self.key))
            while not self.stop_event.is_set():
                result = results.make_result(
                    key=self.key,
                    machine=self.machine,
                    step_ns=self.random.randrange(900_000, 1_100_000),
                    run_id=f"{self.random.getrandbits(128):032x}",
                )
                body = results.sealed(result, self.key)
                answer = self._until_answered(http, "/api/v1/results", body)
                self.acknowledged.append((body, answer))

    def _until_answered(self, http: httpx.Client, path: str, body: bytes) -> dict[str, Any]:
        while True:
            try:
                answer = http.post(path, content=body, headers=JSON)
            except httpx.TransportError:
                time.sleep(0.02)
                continue
            if answer.status_code in (200, 201):
                document: dict[str, Any] = answer.json()
                return document
            if answer.status_code != 503:
                self.refused.append(answer.text)
                raise AssertionError(answer.text)


class Machines:
    """A server and its projector, each of which is killed and started again."""

    def __init__(self, database_url: str, home: Path, port: int) -> None:
        self.start_of = {
            "server": lambda: Program(
                database_url, home, "serve", "--port", str(port), **self.settings
            ),
            "projector": lambda: Program(database_url, home, "project"),
        }
        self.settings = {"BENCH_SERVER_ADDRESS_RATE": "off", "BENCH_SERVER_KEY_RATE": "off"}
        self.settings["BENCH_SERVER_ENROLL_RATE"] = "off"
        self.settings["BENCH_SERVER_PROJECT"] = "no"
        self.running = {name: start() for name, start in self.start_of.items()}
        self.killed: Counter[str] = Counter()

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.killed[name] += 1
        self.running[name] = self.start_of[name]()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture
def begun(store: Store, tmp_path: Path) -> Store:
    """A store whose log its authority has begun."""
    authority = load_authority("trainmark.localhost", tmp_path / "server-keys")
    with store.writing() as session:
        writer.begin(session, authority)
    return store


@pytest.mark.parametrize(
    "kills", [6, pytest.param(KILLS, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
def test_kills_lose_and_double_nothing(
    begun: Store, database_url: str, tmp_path: Path, kills: int
) -> None:
    port, stop = free_port(), threading.Event()
    machines = Machines(database_url, tmp_path, port)
    clients = [Client(n, f"http://127.0.0.1:{port}", stop) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    chance = random.Random(random.SystemRandom().randrange(2**32))
    try:
        while not any(client.acknowledged for client in clients):
            time.sleep(0.05)
        while machines.killed.total() < kills:
            time.sleep(chance.uniform(0.05, LONGEST_LIFE_SECONDS))
            machines.kill(chance.choice(["server", "projector"]))
        stop.set()
        for client in clients:
            client.join(60)
            assert not client.is_alive()
            assert not client.refused
    finally:
        for program in machines.running.values():
            program.stop()
    acknowledged = [pair for client in clients for pair in client.acknowledged]
    print(f"{dict(machines.killed)} kills, {len(acknowledged)} results acknowledged")
    assert acknowledged
    check(begun, tmp_path, acknowledged)


def check(
    store: Store,
    home: Path,
    acknowledged: list[tuple[bytes, dict[str, Any]]],
    origin: str = "trainmark.localhost",
) -> None:
    """Each once, every receipt verifies, rows equal a reindex, and the log passes its audit."""
    authority = load_authority(origin, home / "server-keys")
    with store.reading() as session:
        stored = {row.id: row.payload_sha256 for row in session.scalars(select(Submission))}
    assert len({answer["id"] for _, answer in acknowledged}) == len(acknowledged)
    for body, answer in acknowledged:
        opened = envelope.read(body)
        assert stored[answer["id"]] == opened.payload_sha256
        proof = answer["receipt"]
        receipt = receipts.parse_proof(bytes.fromhex(proof["salt"]), proof["proof"])
        receipts.verify_receipt(receipt, opened, authority.log_key)
    project(store)
    incremental = rows(store)
    reindex.reindex(store)
    assert rows(store) == incremental
    with store.reading() as session:
        report = audit.audit(log_entries.fetch_from(session, authority, "CC-BY-4.0"))
    assert report.faults == ()
    assert report.results == len(stored)
