"""Processor seconds of an audit and a reindex in this process alone, and of this process beside two
workers: ``python -m benchmarks.server.offline``.

What this process still pays beside workers bounds what any number of them can gain.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.fakes import results

from bench_protocol.payload import acts
from bench_protocol.payload.result import Challenge
from bench_protocol.signing import keys
from bench_server.answers import log_entries
from bench_server.audit.verify import audit
from bench_server.cluster import in_process, workers_at
from bench_server.db import migrate
from bench_server.db.store import Store
from bench_server.ingest import challenges, key_events
from bench_server.ingest.accept import Accepted
from bench_server.ingest.inbox import Inbox
from bench_server.log import writer
from bench_server.log.server_keys import Authority, new_authority
from bench_server.projection import reindex
from bench_server.projection.projector import Projector

from . import world
from .lines import state

MACHINES = 64
CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local:
        print(local.scheduler_address, flush=True)
        sys.stdin.read()
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.server.offline")
    parser.add_argument("--runs", type=int, default=40, help="runs of 48 results")
    options = parser.parse_args()
    began = state()
    with tempfile.TemporaryDirectory(prefix="trainmark-benchmark-") as folder:
        url = f"sqlite:///{Path(folder) / 'server.db'}"
        os.environ["BENCH_SERVER_DATABASE_URL"] = url
        store, authority = Store(url), new_authority(world.ORIGIN)
        try:
            _fill(store, authority, options.runs)
            print(f"{options.runs * world.RUN:,} results")
            _compare(store, authority)
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
        asked = acts.ChallengeRequest(key_id=keys.key_id(key.public_key()))
        given = challenges.give(acts.payload(asked), store, authority, issued, 48)
        challenge = Challenge(id=given.id, nonce=given.nonce, server_origin=given.server_origin)
        run = world.Run(world.Sender(machine, key), number + 1, challenge)
        for waiting in inbox.accept(list(run.envelopes()), now):
            assert isinstance(waiting.result(60), Accepted)
    Projector(store).catch_up()


def _compare(store: Store, authority: Authority) -> None:
    def audited(mapped):  # type: ignore[no-untyped-def]
        with store.reading() as session:
            report = audit(log_entries.fetch_from(session, authority, "none"), mapped=mapped)
        assert not report.faults, report.faults[:3]

    alone = {
        "audit": _seconds(lambda: audited(in_process)),
        "reindex": _seconds(lambda: reindex.reindex(store)),
    }
    with _scheduler() as address, workers_at(address) as workers:
        list(workers.map(abs, range(8)))
        beside = {
            "audit": _seconds(lambda: audited(workers.map)),
            "reindex": _seconds(lambda: reindex.reindex(store, mapped=workers.map)),
        }
    for name, seconds in alone.items():
        bound = seconds / beside[name]
        print(f"{name}: alone {seconds:.2f} s, beside workers {beside[name]:.2f} s, {bound:.2f}")


@contextmanager
def _scheduler() -> Iterator[str]:
    """The address of a scheduler with two workers, all in processes of their own."""
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate("")


def _seconds(work: Callable[[], object]) -> float:
    """Processor seconds of this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
