"""Recomputation: jobs from the log, leases, budgets, the log, and what results become."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlmodel import col, delete, select
from tests.fakes import results, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.integrity import audited
from tests.fakes.projected import project, rows, settle
from tests.fakes.said import rotated
from tests.fakes.seeding import invented

from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.acts import first_owner
from bench_protocol.payload.result import Failed
from bench_protocol.signing import envelope
from bench_protocol.training import recomputation
from bench_protocol.training.recomputed import Figures
from bench_server.checks import table as result_checks
from bench_server.checks import verdicts
from bench_server.checks.case import PENDING
from bench_server.db.store import Store
from bench_server.db.tables import LogEntry, Measurement, Owner, RecomputeJob, Submission
from bench_server.ingest.columns import stored_result
from bench_server.projection.projector import Projector
from bench_server.projection.reindex import clear
from bench_server.recompute import jobs
from bench_server.recompute.worker import Recomputer

NOW = datetime(2026, 11, 21, 5, tzinfo=UTC)


@pytest.fixture
def sent(post: object, store: Store) -> list[str]:
    ids = trusted.send(store, results.private_key(), [1_000_000, 1_010_000], projected=False)
    project(store)
    return ids


def worker(store: Store, budget_seconds: float = 1e9, seconds: float = 0.0) -> Recomputer:
    ticks = iter(range(1_000_000))
    return Recomputer(
        store,
        AUTHORITY,
        budget_seconds,
        clock=lambda: NOW,
        compute=invented,
        processor_seconds=lambda: next(ticks) * seconds,
    )


def levels(store: Store) -> list[int]:
    with store.reading() as session:
        return list(session.exec(select(Measurement.trust_level)).all())


def found(store: Store, check: str) -> set[str]:
    with store.reading() as session:
        texts = session.exec(select(Measurement.verdicts)).all()
    return {
        str(verdict.figures.get("verdict"))
        for text in texts
        for verdict in verdicts.from_text(text)
        if verdict.check == check
    }


def recomputations(store: Store) -> list[recomputation.Recomputation]:
    with store.reading() as session:
        raws = session.exec(
            select(LogEntry.envelope)
            .where(LogEntry.kind == "recomputation")
            .order_by(LogEntry.log_index)  # type: ignore[arg-type]
        ).all()
    return [recomputation.parse(envelope.read(raw or b"").payload) for raw in raws]


def test_a_result_is_pending_at_level_2_until_it_is_recomputed(
    store: Store, sent: list[str]
) -> None:
    assert levels(store) == [2, 2]
    assert found(store, "witness") == {"pending"}
    assert "level" not in PENDING  # on CUDA it stays at level 2 after the recomputation
    assert worker(store).drain() == 1  # both repeats have the same job
    assert levels(store) == [2, 2]
    project(store)
    assert levels(store) == [3, 3]
    assert found(store, "witness") == {"conformant"}
    assert worker(store).drain() == 0
    (said,) = recomputations(store)
    assert said.verdict == "computed"
    assert None not in (said.figures, said.data_digest)


def test_what_is_not_recomputed_is_not_pending(sent: list[str], store: Store) -> None:
    """A failed repeat, and one whose session has another seed than its challenge's."""
    with store.reading() as session:
        result = stored_result(session.get_one(Submission, sent[0]).payload)
    failed = Failed(kind="crashed", phase="evaluate", measurement=result.measurement)
    for changes in ({"outcome": failed}, {"seed": "1" * 32}):
        changed = result.model_copy(update=changes)
        assert jobs.needed(changed, "1" * 32, 7) == []
        said = {one.check: one for one in result_checks.of_result(changed)}
        assert not said["witness"].passed
        assert said["witness"].figures["verdict"] != "pending"


def test_a_wrong_reading_is_unranked_once_it_is_recomputed(store: Store, sent: list[str]) -> None:
    def other(workload: Workload, nonce: str, batch_size: int) -> Figures:
        right = invented(workload, nonce, batch_size)
        return right.model_copy(update={"start_loss": 1.001 * right.start_loss})

    replace(worker(store), compute=other).drain()
    project(store)
    with store.reading() as session:
        rows = session.exec(select(Measurement).order_by(col(Measurement.submission_id))).all()
    assert [(row.rankable, row.trust_level) for row in rows] == [(False, 2)] * 2
    assert all("deviates by" in str(row.unranked_reason) for row in rows)


def test_replays_in_batches_of_any_size_give_the_same_rows(store: Store, sent: list[str]) -> None:
    """Cut anywhere; although, as in an audit, the queue is lost, nothing is computed again."""
    settle(store)
    trusted.send(store, results.private_key(), [1_020_000, 990_000])
    before = rows(store)
    with store.writing() as session:
        session.execute(delete(RecomputeJob))
    for batch in (1, 2, 5, 128):
        clear(store)
        Projector(store, batch).catch_up()
        assert rows(store) == before
    with store.reading() as session:
        assert not jobs.are_due(session, NOW + timedelta(days=1))


def test_no_job_is_taken_twice(post: object, store: Store) -> None:
    send_runs(store, 4)
    taken = [jobs.take(store, NOW) for _ in range(5)]
    assert taken[4] is None
    assert len({job.id for job in taken if job}) == 4
    assert jobs.take(store, NOW + jobs.LEASE) is None
    assert jobs.take(store, NOW + jobs.LEASE + timedelta(seconds=1)) is not None


@pytest.mark.parametrize("sites", [1, 5])
def test_owners_take_turns_and_those_of_one_area_together(
    post: Poster, store: Store, sites: int
) -> None:
    """A crowd of keys of one site or several fills no day: each has a turn, as an honest owner."""
    keys = [results.private_key(number) for number in range(2, 8)]
    for key in keys:
        post.enroll(key)
        for _ in range(2):
            trusted.send(store, key, [1_000_000], projected=False)
    project(store)
    *crowd, honest = map(results.key_id, keys)
    with store.writing() as session:
        for number, key_id in enumerate(crowd):
            session.get_one(Owner, first_owner(key_id)).area = 10 + number % sites
        session.get_one(Owner, first_owner(honest)).area = 8
    taken = []
    for _ in range(2 * (sites + 1)):
        job = jobs.take(store, NOW)
        assert job is not None
        taken.append(job.key_id == honest)
        with store.writing() as session:
            row = session.get_one(RecomputeJob, job.id)
            row.processor_seconds, row.settled_at, row.logged_index = 20.0, NOW, 10**6
    assert [sum(taken[: sites + 1]), sum(taken[sites + 1 :])] == [1, 1]


def test_a_lease_from_before_the_clock_was_set_back_has_ended(
    store: Store, sent: list[str]
) -> None:
    assert jobs.take(store, NOW + timedelta(days=1)) is not None
    assert jobs.take(store, NOW) is not None


def test_a_job_that_another_worker_finished_is_logged_once(store: Store, sent: list[str]) -> None:
    def slow(*job: Any) -> Figures:
        """While it computes, its lease ends and another worker does the job."""
        replace(worker(store), clock=lambda: NOW + 2 * jobs.LEASE).drain()
        return invented(*job)

    assert replace(worker(store), compute=slow).step()
    assert len(recomputations(store)) == 1


def test_an_interrupted_worker_gives_its_job_back(store: Store, sent: list[str]) -> None:
    def interrupted(*_: object) -> Figures:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(worker(store), compute=interrupted).step()
    assert worker(store).drain() == 1


def test_a_job_that_fails_does_not_stop_the_others(post: object, store: Store) -> None:
    send_runs(store, 4)
    failed = []

    def fails(workload: Workload, nonce: str, batch_size: int) -> Figures:
        if not failed:
            failed.append(nonce)
            raise FloatingPointError("planted")
        return invented(workload, nonce, batch_size)

    assert replace(worker(store), compute=fails).drain() == 4
    assert len({said.nonce for said in recomputations(store)} - {*failed}) == 3
    with store.reading() as session:
        assert jobs.pending(session) == 1


def send_runs(store: Store, count: int) -> Sequence[list[str]]:
    key = results.private_key()
    sent = [trusted.send(store, key, [1_000_000], projected=False) for _ in range(count)]
    project(store)
    return sent


def test_beyond_its_budget_a_keys_jobs_are_drawn(post: object, store: Store) -> None:
    send_runs(store, 24)
    assert worker(store, budget_seconds=3, seconds=1.0).drain() == 24
    said = recomputations(store)
    computed = [one for one in said if one.verdict == "computed"]
    left_out = [one for one in said if one.verdict == "not_drawn"]
    assert len(computed) >= 3
    assert left_out
    for one in left_out:
        assert one.draw is not None
        assert not recomputation.is_drawn(one.draw)
        assert one.figures is None
    project(store)
    assert 2 in levels(store)
    assert "not_drawn" in found(store, "witness")
    assert audited(store).faults == ()


def test_the_budget_is_of_a_day_and_a_key(post: Poster, store: Store) -> None:
    """A rotated key has no other budget."""
    send_runs(store, 1)
    worker(store, budget_seconds=4, seconds=1.0).drain()
    assert rotated(post, 1, 2).status_code == 201
    old, *others = (results.key_id(results.private_key(seed)) for seed in (1, 2, 3))
    midnight = NOW.replace(hour=0)
    with store.reading() as session:
        assert [jobs.spent_seconds(session, key, midnight) for key in (old, *others)] == [1, 1, 0]
        assert jobs.spent_seconds(session, old, midnight + timedelta(days=1)) == 0


def test_a_tenth_is_drawn() -> None:
    draws = [
        recomputation.Draw(size=1, root=f"{n:064x}", seed=f"{n:032x}", share=0.1)
        for n in range(2_000)
    ]
    assert 150 < sum(map(recomputation.is_drawn, draws)) < 250
