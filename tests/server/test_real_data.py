"""Sessions on real data: recomputed where the server has the files, else by a wide range."""

import html
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.fakes import datasets, results, trusted
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.projected import project, rows
from tests.fakes.seeding import invented, train_on

from bench_protocol.base.errors import DataProblem
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.result import Result
from bench_protocol.real_data.manifest import Manifest
from bench_protocol.real_data.parse import Split
from bench_protocol.recompute import figures
from bench_protocol.training import reading, recomputation
from bench_protocol.training.recomputed import Figures
from bench_protocol.trust import shows
from bench_server.checks.witness import WIDE
from bench_server.db.store import Store
from bench_server.projection.reindex import reindex
from bench_server.recompute import jobs
from bench_server.recompute.real_data import RealData
from bench_server.recompute.worker import Recomputer

NOW = datetime(2026, 11, 21, 5, tzinfo=UTC)
CELL = results.make_cell("mnist-dense", data="real")
# Losses that the wide range cannot tell from honest ones.
FORGED = 1.01
# test_recompute.py has the queue on PostgreSQL.
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
BAND_WORDS = "level 3 of 4, with the losses of its session checked by a wide range, not recomputed"


@pytest.fixture(autouse=True)
def short_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SECONDS", 0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def made(folder: Path) -> tuple[Manifest, tuple[Split, Split]]:
    return datasets.full_mnist(folder)


@pytest.fixture
def here(folder: Path, made: tuple[Manifest, tuple[Split, Split]]) -> RealData:
    return RealData(folder, made[0])


def trained(splits: tuple[Split, Split], times: float = 1.0) -> Callable[[Result], Result]:
    return partial(train_on, splits=splits, times=times)


def compute(workload: Workload, nonce: str, batch_size: int, *real: Split) -> Figures:
    """Figures of generated data are invented; those of real data are really recomputed."""
    return (figures if real else invented)(workload, nonce, batch_size, *real)


def worker(store: Store, here: RealData | None, budget_seconds: float = 1e9) -> Recomputer:
    return Recomputer(
        store, AUTHORITY, budget_seconds, clock=lambda: NOW, compute=compute, real=here
    )


def settle(store: Store, here: RealData | None, budget_seconds: float = 1e9) -> int:
    project(store)
    count = worker(store, here, budget_seconds).drain()
    project(store)
    return count


def send(store: Store, changed: Callable[[Result], Result] = lambda made: made) -> str:
    key = results.private_key()
    (sent,) = trusted.send(store, key, [1_000_000], cell=CELL, projected=False, changed=changed)
    return sent


def witness(http: Any, sent: str) -> dict[str, Any]:
    answer = http.get(f"/api/v1/results/{sent}").json()
    (found,) = (one for one in answer["verdicts"] if one["check"] == "witness")
    return {**answer, "witness": found}


@pytest.fixture
def splits(made: tuple[Manifest, tuple[Split, Split]], post: Poster) -> Iterator[Any]:
    return made[1]


def test_without_the_files_a_band_applies_and_with_them_a_forged_loss_is_caught(
    http: TestClient, store: Store, splits: Any, here: RealData
) -> None:
    sent = send(store, trained(splits, FORGED))
    assert settle(store, None) == 0
    answer = witness(http, sent)
    assert answer["witness"]["passed"]
    assert answer["witness"]["figures"]["verdict"] == shows.WIDE_RANGE
    assert answer["trust_level"] == 3
    assert answer["level_words"].startswith(BAND_WORDS)
    assert {one["what"]: one["status"] for one in answer["shows"]}["session"] == "not_checked"
    page = html.unescape(http.get(f"/results/{sent}").text)
    assert BAND_WORDS[1:] in page
    # Its list of checks says the same: no tick for losses that were not recomputed.
    words = f'<li class="unchecked"><span class="quiet">Not checked:</span> {WIDE}</li>'
    assert words in page
    assert "The server has not recomputed them" in page
    assert "What is missing for level 4" in page
    with store.reading() as session:
        assert not jobs.are_due(session, NOW)
        assert (jobs.pending(session), jobs.pending_on_real_data(session)) == (0, 1)
    # What came before the files is recomputed when they are there.
    assert settle(store, here) == 1
    answer = witness(http, sent)
    assert (answer["trust_level"], answer["ranked"]) == (2, False)
    wrong = "the loss before the first step, without dropout, deviates by"
    assert wrong in answer["witness"]["sentence"]


def test_with_the_files_the_witness_is_recomputed(
    http: TestClient, store: Store, splits: Any, here: RealData
) -> None:
    sent = send(store, trained(splits))
    assert settle(store, here) == 1
    answer = witness(http, sent)
    assert answer["witness"]["figures"]["verdict"] == "conformant"
    assert "match the recomputation" in answer["witness"]["sentence"]
    assert (answer["trust_level"], answer["level_words"]) == (3, "level 3 of 4")
    assert {one["what"]: one["status"] for one in answer["shows"]}["session"] == "holds"
    page = http.get(f"/results/{sent}").text
    assert "wide range" not in page
    assert "The server has not recomputed them" not in page
    before = rows(store)
    reindex(store)
    assert rows(store) == before
    assert settle(store, None) == settle(store, here) == 0
    assert rows(store) == before


def test_samples_that_are_not_the_published_ones_are_caught(
    http: TestClient, store: Store, splits: Any, here: RealData
) -> None:
    (pictures, labels), test = splits
    sent = send(store, trained(((pictures[::-1], labels[::-1]), test)))
    settle(store, here)
    answer = witness(http, sent)
    assert not answer["ranked"]
    assert not next(v for v in answer["verdicts"] if v["check"] == "data_digest")["passed"]


def test_what_is_left_out_of_the_draw_has_no_band(
    post: Poster, store: Store, here: RealData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recomputation, "is_drawn", lambda _: False)
    sent = send(store)
    assert settle(store, here, budget_seconds=0) == 1
    answer = witness(post.http, sent)
    assert (answer["trust_level"], answer["witness"]["figures"]["verdict"]) == (2, "not_drawn")
    assert "The server has not recomputed them" in post.http.get(f"/results/{sent}").text


def test_the_oldest_job_comes_first_whatever_its_data(
    store: Store, post: Poster, here: RealData
) -> None:
    """Results on real data that keep coming let the others come to their turn."""
    key = results.private_key()
    generated = results.make_cell("mnist-dense")
    for cell in (generated, CELL, CELL, generated):
        trusted.send(store, key, [1_000_000], cell=cell, projected=False)
    project(store)
    taken = [jobs.take(store, NOW, here.workloads) for _ in range(5)]
    data = [jobs.data_of(job) for job in taken if job is not None]
    assert data == ["generated", "real", "real", "generated"]


def test_a_job_on_real_data_is_never_computed_without_it(
    store: Store, post: Poster, here: RealData
) -> None:
    send(store)
    project(store)
    job = jobs.take(store, NOW, here.workloads)
    assert job is not None
    # A session of the same seed and batch size on generated data is another job.
    assert job.id == recomputation.JobKey(job.seed, job.batch_size, "real").text
    with pytest.raises(DataProblem, match="no data of mnist-dense"):
        worker(store, None)._work(job)
