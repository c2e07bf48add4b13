"""The outlier verdict dates from acceptance: no replay changes it, even after withdrawals."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.fakes import results, said
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster

from bench_server.answers import log_entries
from bench_server.audit import dump
from bench_server.audit import verify as audit
from bench_server.db.store import Store
from bench_server.db.tables import Measurement
from bench_server.projection import reindex

OTHERS = 5


@pytest.fixture
def outlier(post: Poster) -> str:
    """A result ten times as slow as those of five other owners, of whom two withdrew since."""
    ids = {}
    for seed in range(2, 2 + OTHERS):
        key = results.private_key(seed)
        post.enroll(key)
        ids[seed] = post.made(key=key, step_ns=1_000_000 + 1_000 * seed)
    identity = post.made(step_ns=10_000_000)
    for seed in (2, 3):
        assert said.act(post, "withdraw", seed=seed, result=ids[seed]).status_code == 200
    return identity


def finding(verdicts: str) -> dict[str, Any]:
    (outlier,) = (verdict for verdict in json.loads(verdicts) if verdict["check"] == "outlier")
    return dict(outlier)


def stored(store: Store, identity: str) -> tuple[dict[str, Any], int]:
    with store.reading() as session:
        row = session.get_one(Measurement, identity)
        return finding(row.verdicts), row.trust_level


def test_a_replay_keeps_a_finding_and_makes_one_that_was_never_stored(
    store: Store, post: Poster, outlier: str
) -> None:
    """A repair erased the stored findings. A failure has none."""
    post(results.make_failure())
    before = stored(store, outlier)
    assert (before[0]["passed"], before[0]["figures"]["owners"]) == (False, OTHERS)
    reindex.reindex(store)
    assert stored(store, outlier) == before
    with store.writing() as session:
        session.execute(text("UPDATE submission SET outlier = NULL"))
    reindex.reindex(store)
    verdict, _ = stored(store, outlier)
    assert verdict["figures"] == {"owners": OTHERS - 2}
    with store.reading() as session:
        assert session.scalar(text("SELECT count(*) FROM submission WHERE outlier IS NULL")) == 1


def test_a_dump_of_the_log_carries_it_and_its_audit_uses_it(
    store: Store, outlier: str, tmp_path: Path
) -> None:
    def forgotten(path: str) -> bytes:
        answer = fetch(path)
        if not path.startswith("/api/v1/log/entries"):
            return answer
        page = json.loads(answer)
        page["records"] = [record | {"outlier": None} for record in page["records"]]
        return json.dumps(page).encode()

    with store.reading() as session:
        fetch = log_entries.fetch_from(session, AUTHORITY, "CC-BY-4.0")
        with dump.keeping(fetch, tmp_path / "dump.zip") as fetch_and_store:
            assert audit.audit(fetch_and_store).faults == ()
    with dump.reading(tmp_path / "dump.zip") as fetch:
        assert audit.audit(fetch).faults == ()
        (fault, *_) = audit.audit(forgotten).faults
    assert "follows from the log" in fault.detail


def test_it_is_not_shown_of_hidden_results(post: Poster, outlier: str) -> None:
    def shown() -> Any:
        page = post.http.get("/api/v1/log/entries").json()
        (record,) = (
            r for r in page["records"] if r["kind"] == "result" and r["result_id"] == outlier
        )
        return record["outlier"]

    assert shown()["passed"] is False
    assert said.act(post, "hide", result=outlier).status_code == 200
    assert shown() is None
