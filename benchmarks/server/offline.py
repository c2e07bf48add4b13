"""Processor seconds of an audit and of a reindex: ``python -m benchmarks.server.offline``."""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.fakes import results
from tests.fakes.authority import AUTHORITY

from bench_protocol.payload.result import Challenge
from bench_server.answers import log_entries
from bench_server.audit.verify import audit
from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.ingest import challenges, key_events
from bench_server.ingest.accept import Accepted
from bench_server.ingest.inbox import Inbox
from bench_server.log import writer
from bench_server.log.server_keys import Authority
from bench_server.projection import reindex
from bench_server.projection.projector import Projector

from . import world
from .lines import state

MACHINES = 64


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.server.offline")
    parser.add_argument("--runs", type=int, default=40, help="runs of 48 results")
    options = parser.parse_args()
    began = state()
    with tempfile.TemporaryDirectory(prefix="trainmark-benchmark-") as folder:
        url = f"sqlite:///{Path(folder) / 'server.db'}"
        os.environ["BENCH_SERVER_DATABASE_URL"] = url
        store, authority = Store(url), replace(AUTHORITY, origin=world.ORIGIN)
        try:
            _fill(store, authority, options.runs)
            print(f"{options.runs * world.RUN:,} results")
            _measure(store, authority)
        finally:
            store.close()
    print(f"Began {began}; ended {state()}.")


def _fill(store: Store, authority: Authority, runs: int) -> None:
    """Accept and project real signed results."""
    migrate.migrate(store.engine)
    with store.writing() as session:
        writer.begin(session, authority)
    inbox, now = Inbox(store, authority), datetime.now(UTC)
    issued = now - timedelta(seconds=world.RUN_SECONDS)
    for number in range(runs):
        machine = number % MACHINES
        key = results.private_key(machine + 1)
        if number == machine:
            key_events.accept(results.enrollment(key), store, authority, "open", now)
        asked = results.challenge_request(key, authority.origin)
        given = challenges.give(asked, store, authority, issued, 48)
        challenge = Challenge(id=given.id, nonce=given.nonce, server_origin=given.server_origin)
        run = world.Run(world.Sender(machine, key), number + 1, challenge)
        for waiting in inbox.accept(list(run.envelopes()), now):
            assert isinstance(waiting.result(60), Accepted)
    Projector(store).catch_up()


def _measure(store: Store, authority: Authority) -> None:
    def audited() -> None:
        with store.reading() as session:
            report = audit(log_entries.fetch_from(session, authority, "none"))
        assert not report.faults, report.faults[:3]

    print(f"audit: {_seconds(audited):.2f} s")
    print(f"reindex: {_seconds(lambda: reindex.reindex(store)):.2f} s")


def _seconds(work: Callable[[], object]) -> float:
    """Processor seconds of this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
