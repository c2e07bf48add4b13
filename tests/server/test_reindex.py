"""What is derived can be computed again, and comes out the same."""

from typing import Any

import pytest
from sqlalchemy import delete, update
from tests.fakes import results, said
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.integrity import audited
from tests.fakes.projected import PROJECTED, project, rows
from typer.testing import CliRunner

from bench_protocol.payload import acts
from bench_server.answers import log_entries
from bench_server.audit import verify as audit
from bench_server.cli.main import main as cli
from bench_server.db.store import Store
from bench_server.db.tables import (
    Aggregate,
    EnvironmentRow,
    Measurement,
    Owner,
    PublishedFigure,
    SigningKey,
    Submission,
)
from bench_server.ingest import moderation
from bench_server.projection import reindex
from bench_server.ranking import published
from bench_server.settings import Settings


def derived(store: Store) -> list[list[dict[str, Any]]]:
    project(store)
    return rows(store)


def test_an_entry_that_cannot_be_projected_is_one_line(
    post: Poster, store: Store, database_url: str
) -> None:
    post.made()
    with store.writing() as session:
        session.execute(update(Submission).values(payload=b"{}"))
    for command in (["reindex"], ["project", "--once"]):
        done = CliRunner().invoke(cli, [*command, "--database-url", database_url])
        assert (done.exit_code, done.stderr.count("bench-server: ")) == (2, 1), done.output
        assert "the projection stopped at entry 1: " in done.stderr


def test_reindex_makes_the_same_rows(post: Poster, store: Store) -> None:
    other = results.private_key(2)
    post.enroll(other)
    for step_ns in (1_000_000, 1_300_000, 900_000):
        post.made(step_ns=step_ns)
        post.made(step_ns=step_ns * 2, key=other)
        post.made(cell=results.make_cell("fashion-mlp"), step_ns=step_ns)
    post(results.make_failure())
    with store.writing() as session:
        published.import_published(session)
    before = derived(store)
    with store.writing() as session:
        session.execute(delete(Aggregate))
        session.execute(update(PublishedFigure).values(ns_per_sample=1))
        session.execute(update(Measurement).values(ns_per_sample=1, hardware="wrong"))
    assert reindex.reindex(store) == 12
    assert derived(store) == before


def test_environments_of_withdrawn_results_stay(post: Poster, store: Store) -> None:
    """The log has no more what an erased result ran on, and the incremental rows have it."""
    post.made()
    mac = post.made(machine=results.make_machine("Apple M2"))
    assert said.act(post, "withdraw", result=mac).status_code == 200
    before = derived(store)
    assert len(before[PROJECTED.index(EnvironmentRow)]) == 2
    reindex.reindex(store)
    assert derived(store) == before


def test_reindex_replays_keys_and_owners(post: Poster, store: Store) -> None:
    """What was found of a result depends on whose keys were whose when it came in."""
    ids = [results.key_id(results.private_key(seed)) for seed in range(1, 5)]
    for seed in (2, 3):
        post.enroll(results.private_key(seed))
        post.made(key=results.private_key(seed), step_ns=1_000_000 + seed)
    hidden = post.made()

    def decide(kind: acts.OperatorAct, **about: str) -> None:
        moderation.decide(store, AUTHORITY, said.NOW, kind, **about)

    decide("assign", key=ids[0], owner="lab")
    decide("assign", key=ids[1], owner="lab")
    decide("confirm", owner="lab")
    decide("confirm", owner=f"key-{ids[2][:12]}")
    decide("doubt", owner=f"key-{ids[2][:12]}")
    assert said.act(post, "hide", result=hidden).status_code == 200
    assert said.rotated(post, 1, 4).status_code == 201
    post.made(key=results.private_key(4))
    assert said.revoked(post, 3, 3, since=2).status_code == 201
    post.http.app.state.settings = Settings(enrollment="approval")  # type: ignore[attr-defined]
    for seed in (5, 6):
        post.enroll(results.private_key(seed))
    decide("approve", key=results.key_id(results.private_key(5)))
    before = derived(store)
    with store.writing() as session:
        session.execute(update(Owner).values(confirmed=True))
        wrong = {"owner": "lab", "compromised_since": 0, "first_key_id": ids[0]}
        session.execute(update(SigningKey).values(wrong))
    reindex.reindex(store)
    assert derived(store) == before
    found = {row["key_id"]: row for row in before[PROJECTED.index(SigningKey)]}
    assert [found[i]["status"] for i in ids] == ["rotated", "active", "revoked", "active"]
    assert audited(store).faults == ()


def test_an_honest_log_passes_although_a_hide_follows_a_page_later(
    post: Poster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry that hides a result is withheld with it, on whichever page each of them is."""
    hidden = post.made()
    for _ in range(4):
        post.made()
    assert said.act(post, "hide", result=hidden).status_code == 200
    in_one = log_entries.page
    monkeypatch.setattr(log_entries, "page", lambda *where: in_one(*where[:3], limit=2))
    with store.reading() as session:
        fetch = log_entries.fetch_from(session, AUTHORITY, Settings().license)
        assert audit.audit(fetch).faults == ()
        (withheld,) = in_one(session, AUTHORITY, 6, 2).records
    assert (withheld.kind, withheld.hidden, withheld.envelope) == ("act", True, None)
