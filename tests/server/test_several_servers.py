"""Four server processes on one PostgreSQL: one gapless log, and one projector at a time."""

import itertools
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, text
from sqlmodel import Session
from tests.fakes import results, said
from tests.fakes.authority import ORIGIN
from tests.fakes.client import JSON, Poster
from tests.fakes.integrity import contradictions, doubled, lost
from tests.fakes.live import NO_LIMITS, Program
from tests.fakes.projected import is_projected
from tests.fakes.waiting import wait_for

from bench_protocol.base import strict_json
from bench_server.db.store import Store
from bench_server.db.tables import LogEntry
from bench_server.log.server_keys import load_authority
from bench_server.projection import position, projector

SERVERS = 4
CLIENTS = 16
LINES = 4
RESULTS, NDJSON = "/api/v1/results", {"Content-Type": "application/x-ndjson"}
LONG_KILLS = int(os.environ.get("KILLS", "20"))
PATIENCE_SECONDS = 120
SETTINGS = NO_LIMITS | {"BENCH_SERVER_ORIGIN": ORIGIN}
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
HOLDERS = text(
    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND granted AND datname = current_database() "
    "AND (classid::bigint << 32) | objid::bigint = :number"
).bindparams(number=int.from_bytes(projector.LOCK.encode()[:7]))


class Servers:
    def __init__(self, database_url: str, home: Path) -> None:
        self._database_url, self._home = database_url, home
        self._numbers = itertools.count()
        self._running: dict[str, Program] = {}
        self.addresses: dict[str, str] = {}

    def start(self, count: int) -> None:
        started = {}
        for _ in range(count):
            name = f"server-{next(self._numbers)}"
            url = f"{self._database_url}&application_name={name}"
            started[name] = Program(url, self._home, "serve", "--port", "0", **SETTINGS)
        self._running |= started
        self.addresses |= {name: program.address() for name, program in started.items()}

    def kill(self, name: str) -> None:
        del self.addresses[name]
        self._running.pop(name).kill()

    def stop(self) -> None:
        for program in self._running.values():
            program.stop()


class Client(threading.Thread):
    """Sends each request to one server after the other until it is acknowledged."""

    def __init__(self, number: int, servers: Servers, batches: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.seeds = (2 * number + 1, 2 * number + 2)
        self.turn = number
        self.servers, self.batches, self.stop_event = servers, batches, stop
        self.acknowledged: list[tuple[bytes, dict[str, Any]]] = []

    def run(self) -> None:
        first, second = map(results.private_key, self.seeds)
        machine = results.make_machine(seed=self.seeds[0])
        self._until_acknowledged(
            lambda http: http.post("/api/v1/keys", content=results.enrollment(first), headers=JSON)
        )
        for number in range(self.batches):
            if self.stop_event.is_set():
                return
            key = second if number else first
            made = [results.make_result(key=key, machine=machine) for _ in range(LINES)]
            bodies = [results.sealed(result, key) for result in made]
            batch = {"content": b"\n".join(bodies), "headers": NDJSON}
            answer = self._until_acknowledged(partial(httpx.Client.post, url=RESULTS, **batch))
            lines = [strict_json.loads(line) for line in answer.content.splitlines()]
            assert all(line["status"] in (200, 201) for line in lines), lines
            self.acknowledged += zip(bodies, (line["result"] for line in lines), strict=True)
            if number == 0:
                self._until_acknowledged(lambda http: said.rotated(Poster(http), *self.seeds))

    def _until_acknowledged(self, send: Callable[[httpx.Client], httpx.Response]) -> httpx.Response:
        while True:
            addresses = list(self.servers.addresses.values())
            self.turn += 1
            try:
                with httpx.Client(
                    base_url=addresses[self.turn % len(addresses)], timeout=PATIENCE_SECONDS
                ) as http:
                    answer = send(http)
            except httpx.TransportError:
                time.sleep(0.02)
                continue
            if answer.status_code in (200, 201, 207):
                return answer
            assert answer.status_code == 503, answer.text


def wait_until(store: Store, holds: Callable[[Session], Any]) -> Any:
    def look() -> Any:
        with store.reading() as session:
            return holds(session)

    found = wait_for(look, PATIENCE_SECONDS)
    assert found
    return found


def holder(session: Session) -> str | None:
    holders = session.connection().scalars(HOLDERS).all()
    assert len(holders) <= 1
    return holders[0] if holders else None


@ON_POSTGRESQL
@pytest.mark.parametrize(
    ("kills", "batches"),
    [(1, 3), pytest.param(LONG_KILLS, 1000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])],
)
def test_four_servers_make_one_log_with_one_projector(
    store: Store, database_url: str, tmp_path: Path, kills: int, batches: int
) -> None:
    servers, stop = Servers(database_url, tmp_path), threading.Event()
    clients = [Client(number, servers, batches, stop) for number in range(CLIENTS)]
    projected_by: list[str] = []
    try:
        servers.start(SERVERS)
        for client in clients:
            client.start()
        for _ in range(kills):
            projected_by.append(wait_until(store, holder))
            reached = wait_until(store, position.lag).position
            assert wait_until(
                store, lambda session, at=reached: position.lag(session).position > at
            )
            servers.kill(projected_by[-1])
            if kills > 1:
                servers.start(1)
        projected_by.append(wait_until(store, holder))
        if kills > 1:
            stop.set()
        for client in clients:
            client.join(PATIENCE_SECONDS)
            assert not client.is_alive()
        assert wait_for(lambda: is_projected(store), PATIENCE_SECONDS)
    finally:
        stop.set()
        servers.stop()
    acknowledged = [pair for client in clients for pair in client.acknowledged]
    print(f"{kills} kills, {len(acknowledged)} results acknowledged")
    assert len(set(projected_by)) == len(projected_by)
    with store.reading() as session:
        first, last, entries = session.exec(
            select(
                func.min(LogEntry.log_index), func.max(LogEntry.log_index), func.count()
            ).select_from(LogEntry)
        ).one()
    # Each client's enrollment, its owner's area and its rotation are entries too.
    assert (first, last + 1, entries) == (0, entries, len(acknowledged) + 3 * CLIENTS)
    authority = load_authority(ORIGIN, tmp_path / "server-keys")
    assert lost(store, authority, acknowledged) == doubled(store) == 0
    # An entry that two projectors applied would be counted twice.
    assert list(contradictions(store, authority)) == []
