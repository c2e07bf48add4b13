"""Heavy work on the workers of a real scheduler gives what it gives in this process."""

import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from sqlalchemy import select, update
from tests.fakes import postgres, results, said, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.projected import project, settle
from typer.testing import CliRunner

from bench_protocol.base.scheduler import SchedulerProblem
from bench_protocol.signing import envelope
from bench_protocol.training import recomputation
from bench_server.answers import log_entries
from bench_server.app import utc_now
from bench_server.audit.verify import Report, audit
from bench_server.cli.main import main as cli
from bench_server.cluster import Map, Workers, in_process, workers_at
from bench_server.db.store import Store
from bench_server.db.tables import Aggregate, LogEntry, Measurement, Submission
from bench_server.ingest.inbox import Inbox
from bench_server.projection import reindex
from bench_server.projection.projector import ProjectionStopped, Projector
from bench_server.recompute import on_workers
from bench_server.recompute.worker import Recomputer, compute

distributed = pytest.importorskip("distributed", reason="distributed is not installed")
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture(scope="module")
def address(cluster: postgres.Cluster) -> Iterator[str]:
    """A scheduler with two worker processes of one thread, which know the tests' PostgreSQL."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=":0",
        worker_dashboard_address=None,
        env={"BENCH_SERVER_DATABASE_URL": cluster.url("trainmark")},
    ) as local:
        yield local.scheduler_address


@pytest.fixture
def workers(address: str) -> Iterator[Workers]:
    with workers_at(address) as found:
        yield found


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is sent to workers."""
    sent: list[bytes] = []
    submit = Workers._submit

    def submitted(self: Workers, *task: Any) -> Any:
        sent.append(pickle.dumps(task))
        return submit(self, *task)

    monkeypatch.setattr(Workers, "_submit", submitted)
    return sent


def ending_once(marker: Path, function: Callable[[Any], Any], item: Any) -> Any:
    """Calls a function on a worker, which is killed in the first call."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return function(item)


def killing(workers: Workers, marker: Path) -> Map:
    """A map on workers of which one is killed."""

    def mapped(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return workers.map(partial(ending_once, marker, function), items)

    return mapped


def audited(store: Store, mapped: Map) -> Report:
    with store.reading() as session:
        fetch = log_entries.fetch_from(session, AUTHORITY, "none")
        return audit(fetch, mapped=mapped)


def no_secrets(sent: list[bytes], database_url: str) -> bool:
    form = (Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    keys = [key.private_bytes(*form) for key in (AUTHORITY.log, AUTHORITY.challenge)]
    assert sent
    return not any(secret in task for task in sent for secret in (*keys, database_url.encode()))


@on_sqlite
def test_an_audit_on_workers_finds_the_same_faults(
    post: Poster, store: Store, database_url: str, workers: Workers, tmp_path: Path,
    sent: list[bytes],
) -> None:  # fmt: skip
    """A log of two chunks, with each kind of entry that tests have at hand."""
    trusted.send(store, results.private_key(), [1_000_000, 1_010_000])
    hidden = post.made()
    assert said.act(post, "hide", result=hidden).status_code == 200
    assert said.rotated(post, 1, 2).status_code == 201
    key = results.private_key(2)
    sealed = [
        results.sealed(results.make_result(key=key, run_id=f"{number:032x}"), key)
        for number in range(1, 261)
    ]
    for waiting in Inbox(store, AUTHORITY).accept(sealed, utc_now()):
        waiting.result(30)
    project(store)
    with store.writing() as session:
        ids = session.scalars(select(Submission.id).order_by(Submission.id)).all()  # type: ignore[call-overload]
        for index, column in ((3, "payload"), (200, "signature")):
            of_result = Submission.id == ids[index]
            (value,) = session.execute(select(getattr(Submission, column)).where(of_result)).one()
            changed = value[:40] + bytes([value[40] ^ 1]) + value[41:]
            session.execute(update(Submission).where(of_result).values({column: changed}))  # type: ignore[arg-type]
    broken = audited(store, in_process)
    assert broken.size > 256
    assert sum("edited" in fault.detail for fault in broken.faults) == 2
    marker = tmp_path / "killed"
    assert audited(store, killing(workers, marker)) == broken
    assert marker.exists()
    assert no_secrets(sent, database_url)


@on_postgresql
def test_a_reindex_on_workers_makes_the_same_rows(
    post: Poster, store: Store, database_url: str, workers: Workers, tmp_path: Path,
    sent: list[bytes], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(reindex, "Projector", partial(Projector, batch=4))
    other = results.private_key(2)
    trusted.send(store, results.private_key(), [1_000_000, 1_010_000])
    settle(store)
    post.enroll(other)
    for step_ns in (1_000_000, 1_300_000):
        post.made(step_ns=step_ns)
        post.made(step_ns=step_ns * 2, key=other)
    assert said.act(post, "hide", result=post.made()).status_code == 200
    project(store)

    def rows() -> list[list[dict[str, Any]]]:
        with store.reading() as session:
            return [
                sorted((row.model_dump() for row in session.scalars(select(table))), key=str)
                for table in (Measurement, Aggregate)
            ]

    before = rows()
    count = reindex.reindex(store)
    assert reindex.reindex(store, mapped=killing(workers, tmp_path / "killed")) == count
    assert (tmp_path / "killed").exists()
    assert rows() == before
    assert no_secrets(sent, database_url)
    with store.writing() as session:
        session.execute(update(Submission).values(payload=b"{}"))
    reasons = set()
    for mapped in (None, workers.map):
        with pytest.raises(ProjectionStopped) as stopped:
            reindex.reindex(store, mapped=mapped)
        reasons.add(str(stopped.value))
    assert len(reasons) == 1


@on_sqlite
def test_workers_recompute_what_this_process_would(
    post: Poster, store: Store, database_url: str, workers: Workers, sent: list[bytes]
) -> None:
    cell = results.make_cell("mnist-dense")
    trusted.send(store, results.private_key(), [1_000_000], projected=False, cell=cell)
    project(store)
    assert on_workers.recompute(Recomputer(store, AUTHORITY, 1e9), workers, once=True) == 3
    with store.reading() as session:
        raws = session.scalars(
            select(LogEntry.envelope).where(LogEntry.kind == "recomputation")  # type: ignore[call-overload]
        ).all()
    statements = [recomputation.parse(envelope.read(raw).payload) for raw in raws]
    assert len(statements) == 3
    for statement in statements:
        job = recomputation.job_of(statement)
        assert job is not None
        here = compute(job.workload, job.purpose, job.nonce, job.batch_size)
        assert statement.figures == here
    assert no_secrets(sent, database_url)


def test_commands_take_a_scheduler(
    post: Poster, database_url: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers know the PostgreSQL database alone."""

    def command(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, [*arguments, "--database-url", database_url])
        return done.exit_code, done.output

    post.made()
    status, output = command("reindex", "--scheduler", address)
    if database_url.startswith("sqlite"):
        assert (status, "BENCH_SERVER_DATABASE_URL of a worker" in output) == (2, True), output
    else:
        assert (status, output) == (0, "projected 2 log entries again\n")
    for name in ("reindex", "recompute", "verify-log"):
        status, output = command(name, "--scheduler", "tcp://10.0.0.7:8786")
        assert (status, "has no TLS" in output) == (2, True), output
    monkeypatch.setattr("bench_server.cluster.__version__", "0.0.1")
    status, output = command("reindex", "--scheduler", address)
    assert (status, "has no bench-server 0.0.1" in output) == (2, True), output


def failing(error: Exception) -> None:
    """Fails on a worker."""
    raise error


@pytest.mark.parametrize(
    "error", [TimeoutError("slow"), OSError("a disk is away"), RuntimeError("a bug")]
)
def test_an_error_of_a_task_is_not_the_schedulers(workers: Workers, error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        workers.call(failing, error)


def test_a_scheduler_without_workers_is_an_error() -> None:
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        distributed.Client(empty, set_as_default=False) as client,
    ):
        with pytest.raises(SchedulerProblem, match="has had no worker for 1 s"):
            list(Workers(client, patience_seconds=1).map(str, [1]))
        waiting = Workers(client)
        with ThreadPoolExecutor(1) as pool:
            outcome = pool.submit(waiting.call, str, 1)
            waiting.close()
            with pytest.raises(SchedulerProblem):
                outcome.result(30)
        with pytest.raises(SchedulerProblem, match="closed"):
            waiting.call(str, 1)


def test_a_connection_that_closes_while_a_task_is_sent_is_an_error() -> None:
    """Another thread closes it between the look at its state and the task."""

    class Closing:
        status = "running"

        def submit(self, *_: object, **__: object) -> None:
            raise distributed.client.ClosedClientError("Client is closed.")

    with pytest.raises(SchedulerProblem, match="closed"):
        Workers(Closing()).call(str, 1)
