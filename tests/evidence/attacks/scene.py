"""A real server on a loopback port, in a thread of this process, with a clock that is set."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.types import ASGIApp
from tests.fakes import results, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import NO_LIMITS, Poster, get
from tests.fakes.projected import Projected, project, settle
from tests.fakes.waiting import wait_for

from bench_protocol.payload import acts
from bench_protocol.payload.result import Challenge
from bench_server.app import create_app
from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.ingest import moderation
from bench_server.log import writer

START_SECONDS = 20


@dataclass
class Scene:
    """A running server and its database. ``now``: the server's clock, which stands still."""

    post: Poster
    store: Store
    now: datetime = trusted.BEGAN

    @property
    def http(self) -> httpx.Client:
        return self.post.http

    def enroll(self, *keys: Ed25519PrivateKey) -> None:
        for key in keys:
            self.post.enroll(key)

    def confirm(self, *keys: Ed25519PrivateKey) -> None:
        """The operator vouches for the keys' owners."""
        for key in keys:
            owner = acts.first_owner(results.key_id(key))
            moderation.decide(self.store, AUTHORITY, self.now, "confirm", owner=owner)
        project(self.store)

    def measure(self, key: Ed25519PrivateKey, step_ns: int, **how: Any) -> str:
        """Send a result that has all that level 3 needs, and recompute it; its id.

        Args:
            how: as in :func:`tests.fakes.trusted.made`.
        """
        given = self.post.ask(key).raise_for_status().json()
        challenge = Challenge(**{name: given[name] for name in Challenge.model_fields})
        (result,) = trusted.made(key, [step_ns], challenge, began=self.now, **how)
        self.now += trusted.TOOK
        identity = self.post(result, key)
        settle(self.store)
        return identity

    def shown(self, identity: str) -> Any:
        """The server's answer about a result."""
        return get(self.http, f"/results/{identity}")

    def board(self) -> Any:
        return get(self.http, "/leaderboard?workload=mnist-cnn")["rows"]


@contextmanager
def scene(database_url: str) -> Iterator[Scene]:
    """A server with a new database and the keys of tests. Its log is projected before and after
    each request."""
    store = Store(database_url)
    migrate.migrate(store.engine)
    with store.writing() as session:
        writer.begin(session, AUTHORITY)
    app = create_app(NO_LIMITS, store, lambda: made.now, AUTHORITY, stale_seconds=0)
    with (
        _listening(Projected(app)) as address,
        httpx.Client(base_url=address, timeout=60) as http,
    ):
        made = Scene(Poster(http, store), store)
        yield made
    store.close()


@contextmanager
def _listening(app: ASGIApp) -> Iterator[str]:
    """Serve in a thread; gives the address."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{bound.getsockname()[1]}"
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    assert wait_for(lambda: server.started, START_SECONDS)
    yield address
    server.should_exit = server.force_exit = True
    thread.join(START_SECONDS)
