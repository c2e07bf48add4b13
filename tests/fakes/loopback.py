"""A real server on a loopback port, in a thread of this process, with a clock that is set."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.types import ASGIApp

from bench_protocol.payload import acts
from bench_protocol.payload.result import Challenge, Result
from bench_server.app import create_app
from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.ingest import moderation
from bench_server.log import writer
from bench_server.settings import Settings

from . import results, trusted
from .authority import AUTHORITY
from .projected import Projected, project, settle

JSON = {"Content-Type": "application/json"}
START_SECONDS = 20
NO_LIMITS = Settings(address_rate="off", key_rate="off", enroll_rate="off", challenge_rate="off")


class Listening:
    """uvicorn in a thread. Its port stays the same when it starts again."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._port = 0
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        config = uvicorn.Config(self._app, port=self._port, log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self._port))
        self._port = listening.getsockname()[1]
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listening]}, daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(START_SECONDS)


@dataclass
class Scene:
    """A running server and its database. ``now``: the server's clock, which stands still."""

    http: httpx.Client
    store: Store
    now: datetime = trusted.BEGAN

    def enroll(self, *keys: Ed25519PrivateKey) -> None:
        for key in keys:
            body = results.enrollment(key)
            self.http.post("/api/v1/keys", content=body, headers=JSON).raise_for_status()

    def confirm(self, *keys: Ed25519PrivateKey) -> None:
        """The operator vouches for the keys' owners."""
        for key in keys:
            owner = acts.first_owner(results.key_id(key))
            moderation.decide(self.store, AUTHORITY, self.now, "confirm", owner=owner)
        project(self.store)

    def challenge(self, key: Ed25519PrivateKey) -> Challenge:
        body = results.challenge_request(key)
        asked = self.http.post("/api/v1/challenges", content=body, headers=JSON)
        given = asked.raise_for_status().json()
        return Challenge(**{name: given[name] for name in Challenge.model_fields})

    def post(self, result: Result, key: Ed25519PrivateKey) -> httpx.Response:
        body = results.sealed(result, key)
        return self.http.post("/api/v1/results", content=body, headers=JSON)

    def measure(self, key: Ed25519PrivateKey, step_ns: int, **how: Any) -> str:
        """Send a result that has all that level 3 needs, and recompute it; its id.

        Args:
            how: as in :func:`tests.fakes.trusted.made`.
        """
        challenge = self.challenge(key)
        (result,) = trusted.made(key, [step_ns], challenge, began=self.now, **how)
        self.now += trusted.TOOK
        answer = self.post(result, key).raise_for_status().json()
        settle(self.store)
        return str(answer["id"])

    def shown(self, identity: str) -> dict[str, Any]:
        """The server's answer about a result."""
        answer: dict[str, Any] = self.http.get(f"/api/v1/results/{identity}").json()
        return answer

    def board(self, workload: str = "mnist-cnn") -> list[dict[str, Any]]:
        answer = self.http.get("/api/v1/leaderboard", params={"workload": workload})
        rows: list[dict[str, Any]] = answer.raise_for_status().json()["rows"]
        return rows


@contextmanager
def scene(database_url: str, settings: Settings = NO_LIMITS) -> Iterator[Scene]:
    """A server with a new database and the keys of tests. Its log is projected before and after
    each request."""
    store = Store(database_url)
    migrate.migrate(store.engine)
    with store.writing() as session:
        writer.begin(session, AUTHORITY)
    app = create_app(settings, store, lambda: made.now, AUTHORITY, stale_seconds=0)
    listening = Listening(Projected(app))
    with httpx.Client(base_url=listening.address, timeout=60) as http:
        made = Scene(http, store)
        yield made
    listening.stop()
    store.close()
