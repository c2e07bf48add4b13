"""Deliver messages of webhooks in tests."""

from datetime import datetime
from typing import Any

import pytest
from tests.fakes.client import Poster
from tests.fakes.receiver import Receiver

from bench_server.db.store import Store
from bench_server.webhooks import registry
from bench_server.webhooks.delivery import Deliverer

AT = datetime.fromisoformat("2026-11-21T05:00:00+00:00")
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Clock:
    def __init__(self) -> None:
        self.now = AT

    def __call__(self) -> datetime:
        return self.now


def delivered(deliverer: Deliverer) -> None:
    """Deliver until nothing is left."""
    while deliverer.step():
        pass


def add(
    store: Store, receiver: Receiver, machine: str | None = None, hardware: str | None = None
) -> str:
    return registry.add(store, receiver.url, machine, hardware, AT)


def row(store: Store, webhook_id: str) -> Any:
    with store.reading() as session:
        return registry.with_id(session, webhook_id)


def machine_of(post: Poster, result_id: str) -> str:
    machine: str = post.http.get(f"/api/v1/results/{result_id}").json()["machine_id"]
    return machine
