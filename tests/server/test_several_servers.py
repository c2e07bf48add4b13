"""Four server processes on one PostgreSQL: one gapless log, and one projector at a time."""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
LONG_KILLS = int(os.environ.get("KILLS", "20"))
PATIENCE_SECONDS = 120
SETTINGS = NO_LIMITS | {"BENCH_SERVER_ORIGIN": ORIGIN}
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
# The servers that wrote the projector's position, in order.
NOTE_WRITERS = """
CREATE TABLE position_written (id bigserial PRIMARY KEY, name text, position bigint);
CREATE FUNCTION note_writer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO position_written (name, position)
  VALUES (current_setting('application_name'), NEW.position);
  RETURN NULL;
END $$;
CREATE TRIGGER note_writer AFTER INSERT OR UPDATE ON projection
  FOR EACH ROW EXECUTE FUNCTION note_writer();
"""
FORGET_WRITERS = """
DROP TRIGGER note_writer ON projection;
DROP FUNCTION note_writer;
DROP TABLE position_written;
"""
WRITERS = text("SELECT name, position FROM position_written ORDER BY id")
HOLDERS = text(
    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND granted AND datname = current_database() "
    "AND (classid::bigint << 32) | objid::bigint = :number"
).bindparams(number=int.from_bytes(projector.LOCK.encode()[:7]))


class Servers:
    """Server processes, each with a name that its connections to the database have too."""

    def __init__(self, database_url: str, home: Path) -> None:
        self._database_url, self._home = database_url, home
        self._numbers = itertools.count()
        self._running: dict[str, Program] = {}
        self.addresses: dict[str, str] = {}

    def start(self, count: int) -> None:
        """Start some at the same time."""
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
    """Enrolls, posts batches, and rotates its key after the first one. It sends each request until
    a server acknowledges it, and goes from one server to the next.

    ``acknowledged`` has the envelope and the answer of each result.
    """

    def __init__(self, number: int, servers: Servers, batches: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.seeds = (2 * number + 1, 2 * number + 2)
        self.turn = number
        self.servers, self.batches, self.stop_event = servers, batches, stop
        self.acknowledged: list[tuple[bytes, dict[str, Any]]] = []
        self.refused: list[str] = []

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
            self._post([results.sealed(result, key) for result in made])
            if number == 0:
                self._until_acknowledged(lambda http: said.rotated(Poster(http), *self.seeds))

    def _post(self, bodies: Sequence[bytes]) -> None:
        answer = self._until_acknowledged(
            lambda http: http.post(
                "/api/v1/results",
                content=b"\n".join(bodies),
                headers={"Content-Type": "application/x-ndjson"},
            )
        )
        lines = [strict_json.loads(line) for line in answer.content.splitlines()]
        self.refused += [str(line) for line in lines if line["status"] not in (200, 201)]
        self.acknowledged += zip(bodies, (line.get("result", {}) for line in lines), strict=True)

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
            if answer.status_code != 503:
                self.refused.append(answer.text)
                raise AssertionError(answer.text)


@contextmanager
def writers_noted(store: Store) -> Iterator[None]:
    with store.writing() as session:
        session.connection().exec_driver_sql(NOTE_WRITERS)
    try:
        yield
    finally:
        with store.writing() as session:
            session.connection().exec_driver_sql(FORGET_WRITERS)


def wait_until(store: Store, holds: Callable[[Session], Any]) -> Any:
    def look() -> Any:
        with store.reading() as session:
            return holds(session)

    found = wait_for(look, PATIENCE_SECONDS)
    assert found
    return found


def wait_for_progress(store: Store) -> None:
    """Wait until a projector has applied something."""
    reached = wait_until(store, position.lag).position
    wait_until(store, lambda session: position.lag(session).position > reached)


def holder(session: Session) -> str | None:
    """The server that holds the projector's lock."""
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
    with writers_noted(store):
        try:
            servers.start(SERVERS)
            for client in clients:
                client.start()
            for _ in range(kills):
                projected_by.append(wait_until(store, holder))
                wait_for_progress(store)
                servers.kill(projected_by[-1])
                if kills > 1:
                    servers.start(1)
            projected_by.append(wait_until(store, holder))
            if kills > 1:
                stop.set()
            for client in clients:
                client.join(PATIENCE_SECONDS)
                assert not client.is_alive()
                assert client.refused == []
            assert wait_for(lambda: is_projected(store), PATIENCE_SECONDS)
        finally:
            stop.set()
            servers.stop()
        with store.reading() as session:
            written = session.connection().execute(WRITERS).all()
    acknowledged = [pair for client in clients for pair in client.acknowledged]
    print(f"{kills} kills, {len(acknowledged)} results acknowledged")
    assert [name for name, _ in itertools.groupby(row.name for row in written)] == projected_by
    assert len(set(projected_by)) == len(projected_by)
    positions = [row.position for row in written]
    assert positions == sorted(set(positions))
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
    assert list(contradictions(store, authority)) == []
