"""Witnessed runs: clocks, roots, draws, uploads, judgement, statements, what pages show."""

import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import col, select
from tests.fakes import results
from tests.fakes.authority import AUTHORITY
from tests.fakes.client import Poster
from tests.fakes.integrity import audited
from tests.fakes.projected import project
from tests.fakes.said import rotated
from tests.fakes.speed_runs import JSON, PATH, SEGMENTS, Run

from bench_agent.remote import verify, witnessed
from bench_protocol.base.errors import BadSignature, ProtocolError
from bench_protocol.signing import envelope, keys
from bench_protocol.training import speed_run
from bench_protocol.training.speed_run import OpenedState
from bench_server.db.store import Store
from bench_server.db.tables import LogEntry, OpenedSegment, SpeedRunRow, WitnessedSpeed
from bench_server.errors import TooManyRequests
from bench_server.ingest import speed_runs as ingest
from bench_server.projection.reindex import reindex
from bench_server.recompute.speed_runs import Judge
from bench_server.settings import Settings

NOW = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
KEY = results.private_key()
KEY_ID = keys.key_id(KEY.public_key())


@pytest.fixture
def run(post: Poster, http: TestClient) -> Run:
    return Run(http)


def judge(store: Store, distance: float = 1e-5) -> bool:
    def invented(seed: str, opened: Mapping[int, OpenedState]) -> dict[int, float]:
        return dict.fromkeys(opened, distance)

    return Judge(store, AUTHORITY, lambda: NOW, invented).step()


def refused(answer: object, status: int, field: str) -> None:
    document = answer.json()  # type: ignore[attr-defined]
    assert (answer.status_code, document["field"]) == (status, field), document  # type: ignore[attr-defined]
    assert document["hint"]
    assert answer.headers["content-type"] == "application/problem+json"  # type: ignore[attr-defined]


def test_from_the_beacon_to_the_statement(
    store: Store, run: Run, post: Poster, http: TestClient
) -> None:
    result_id = post.made(cell=results.make_cell(framework="torch", device={"kind": "cpu"}))
    run.whole()
    assert run.state() == "waiting"
    assert judge(store)
    assert run.state() == "witnessed"
    with store.reading() as session:
        assert session.exec(select(OpenedSegment)).all() == []
        entry = session.exec(select(LogEntry).where(LogEntry.kind == "speed_run")).one()
    said = speed_run.parse(
        envelope.open_envelope(
            envelope.read(entry.envelope or b""),
            speed_run.STATEMENT_PAYLOAD_TYPE,
            lambda _: AUTHORITY.challenge.public_key(),
        )
    )
    begun, committed = map(datetime.fromisoformat, (said.begun_at, said.committed_at))
    seconds = (committed - begun).total_seconds()
    assert said.samples_per_second == int(SEGMENTS * speed_run.SAMPLES_PER_SEGMENT / seconds)
    assert said.samples_per_second == run.committed["samples_per_second"]
    project(store)
    with store.reading() as session:
        shown = session.exec(select(WitnessedSpeed)).one()
    page = http.get(f"{PATH}?machine={shown.machine_id}").json()
    assert page["speeds"][0]["samples_per_second"] == said.samples_per_second
    assert page["receipts"][0]["log_index"] == entry.log_index == shown.log_index
    assert "Witnessed: at least" in http.get(f"/results/{result_id}").text


def test_the_agent_verifies_the_statements_of_a_results_machine(
    store: Store, run: Run, post: Poster, http: TestClient
) -> None:
    result_id = post.made()
    run.whole()
    judge(store)
    project(store)

    def read(path: str) -> dict[str, object]:
        document: dict[str, object] = http.get(path).json()
        return document

    log = read("/api/v1/log")
    (sentence,) = witnessed.sentences(result_id, {KEY_ID}, read, log)
    assert f"{run.committed['samples_per_second']:,} samples/s" in sentence
    with pytest.raises(BadSignature):
        witnessed.sentences(result_id, {"0" * 64}, read, log)
    log_of_another = log | {"challenge_key": log["operator_key"]}
    with pytest.raises(ProtocolError):
        witnessed.sentences(result_id, {KEY_ID}, read, log_of_another)


def test_statements_about_every_key_of_the_rotations_are_accepted(
    store: Store, post: Poster, http: TestClient
) -> None:
    """The machine is witnessed under each of three keys in turn; results are of the first and the
    last."""
    ids = [post.made()]
    for seed in (1, 2, 3):
        Run(http, results.private_key(seed)).whole()
        assert judge(store)
        if seed < 3:
            assert rotated(post, seed, seed + 1).status_code == 201
    ids.append(post.made(key=results.private_key(3)))
    project(store)

    def read(path: str) -> dict[str, object]:
        document: dict[str, object] = http.get(path).json()
        return document

    for result_id in ids:
        bundle = verify.fetch_bundle(result_id, read)
        verified = verify.verify(bundle)
        sentences = witnessed.sentences(result_id, verified.key_ids, read, bundle["log"])
        named = [results.key_id(results.private_key(seed)) for seed in (3, 2, 1)]
        assert [re.search(r"key (\w+)", sentence)[1] for sentence in sentences] == named


def test_a_replay_needs_no_recomputation(store: Store, run: Run) -> None:
    run.whole()
    judge(store)
    project(store)
    with store.reading() as session:
        before = session.exec(select(WitnessedSpeed)).one().model_dump()
    reindex(store)
    with store.reading() as session:
        assert session.exec(select(WitnessedSpeed)).one().model_dump() == before
    assert audited(store).faults == ()


@pytest.mark.parametrize(
    ("distance", "reason"),
    [
        (speed_run.LIMIT * 1.01, "not what this job gives"),
        (speed_run.MEDIAN_LIMIT * 1.01, "not computed in float32"),
    ],
)
def test_a_wrong_segment_is_refuted_and_nothing_is_logged(
    store: Store, run: Run, distance: float, reason: str
) -> None:
    run.whole()
    assert judge(store, distance)
    answer = run.http.get(f"{PATH}/{run.id}").json()
    assert answer["state"] == "refuted"
    assert reason in answer["reason"]
    with store.reading() as session:
        assert session.exec(select(LogEntry).where(LogEntry.kind == "speed_run")).all() == []
        assert session.exec(select(OpenedSegment)).all() == []
    assert not judge(store)


def test_an_interrupted_judge_gives_its_run_back(store: Store, run: Run) -> None:
    def interrupted(seed: str, opened: Mapping[int, OpenedState]) -> dict[int, float]:
        raise KeyboardInterrupt

    run.whole()
    with pytest.raises(KeyboardInterrupt):
        Judge(store, AUTHORITY, lambda: NOW, interrupted).step()
    assert judge(store)
    assert run.state() == "witnessed"


def test_a_lease_from_before_the_clock_was_set_back_has_ended(store: Store, run: Run) -> None:
    def fails(seed: str, opened: Mapping[int, OpenedState]) -> dict[int, float]:
        raise FloatingPointError("planted")

    run.whole()
    assert Judge(store, AUTHORITY, lambda: NOW + timedelta(days=1), fails).step()
    assert judge(store)
    assert run.state() == "witnessed"


def test_a_challenge_has_one_beacon_and_one_root(run: Run) -> None:
    assert run.begin() == run.begin()
    assert run.commit() == run.commit()
    other = run.root(root="ab" * 32)
    refused(run.http.post(f"{PATH}/root", content=other, headers=JSON), 409, "root")


def test_the_draw_is_hidden_until_the_root_is_here(store: Store, run: Run) -> None:
    begun = run.begin()
    with store.reading() as session:
        draw = session.get_one(SpeedRunRow, run.id).draw
    assert draw not in str(begun) + run.http.get(f"{PATH}/{run.id}").text
    assert begun["draw_sha256"] == speed_run.commitment_of(draw)
    assert run.commit()["draw"] == draw


def test_the_clock_is_read_after_the_body(
    run: Run, application: FastAPI, clock: Callable[[], datetime]
) -> None:
    """A root that arrives slowly is late."""
    run.begin()
    body, late = run.root(), []

    def slowly() -> object:
        yield body[:100]
        late.append(clock())  # the server's clock goes on a second
        yield body[100:]

    answer = run.http.post(f"{PATH}/root", content=slowly(), headers=JSON)  # type: ignore[arg-type]
    assert answer.status_code == 200
    assert datetime.fromisoformat(answer.json()["committed_at"]) > late[0]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"server_origin": "elsewhere"}, "server_origin"),
        ({"nonce": "00" * 32}, "challenge"),
        ({"challenge": "00" * 16}, "challenge"),
        ({"key_id": "00" * 32}, "key_id"),
    ],
)
def test_a_start_for_something_else(run: Run, changes: dict[str, object], field: str) -> None:
    status = 403 if field == "key_id" else 422
    refused(run.http.post(PATH, content=run.start(**changes), headers=JSON), status, field)


def test_a_root_under_another_beacon(run: Run) -> None:
    run.begin()
    content = run.root(beacon="00" * 32)
    refused(run.http.post(f"{PATH}/root", content=content, headers=JSON), 422, "beacon")


def test_eight_segments_are_opened_by_default(run: Run) -> None:
    run.begin()
    run.commit()
    assert len(run.opened) == max(speed_run.OPENINGS) == 8


def test_bad_uploads(run: Run) -> None:
    run.begin()
    refused(run.put(0), 409, "segment")
    run.commit()
    closed = next(iter(set(range(SEGMENTS)) - set(run.opened)))
    refused(run.put(closed), 409, "segment")
    segment = run.opened[-1]
    body = run.states.opened(segment).body
    refused(run.put(segment, body[:-1]), 422, "body")
    refused(run.put(segment, body[:-1] + bytes([body[-1] ^ 1])), 422, "proof")
    refused(run.put(segment, bytes([body[0] ^ 1]) + body[1:]), 422, "proof")
    refused(run.put(segment, body + bytes(2048)), 413, "body")
    refused(run.http.put(f"{PATH}/{run.id}/segments/{segment}", json={}), 415, "Content-Type")
    assert run.state() == "opened"


def test_it_expires(store: Store, run: Run) -> None:
    run.begin()
    with store.writing() as session:
        row = session.get_one(SpeedRunRow, run.id)
        row.expires_at = row.begun_at - timedelta(seconds=1)
        session.add(row)
    refused(run.http.post(f"{PATH}/root", content=run.root(), headers=JSON), 410, "challenge")


def test_a_key_has_some_runs_a_day(app: FastAPI, post: Poster, http: TestClient) -> None:
    app.state.settings = Settings(witness_runs_a_day=1)
    Run(http).begin()
    answer = http.post(PATH, content=Run(http).start(), headers=JSON)
    assert answer.status_code == 429
    assert answer.headers["retry-after"]


def test_a_rotated_key_has_no_other_runs(app: FastAPI, post: Poster, http: TestClient) -> None:
    app.state.settings = Settings(witness_runs_a_day=1)
    Run(http).begin()
    assert rotated(post, 1, 2).status_code == 201
    answer = http.post(PATH, content=Run(http, results.private_key(2)).start(), headers=JSON)
    assert answer.status_code == 429
    assert answer.json()["detail"] == "a key may begin 1 witnessed runs a day"


def leave(store: Store, run: Run) -> None:
    """The prover dislikes the draw and sends no segment."""
    run.begin()
    run.commit()


def refute(store: Store, run: Run) -> None:
    run.whole()
    assert judge(store, 1.0)


@pytest.mark.parametrize("fail", [leave, refute])
def test_a_key_cannot_try_until_the_draw_spares_it(
    store: Store, post: Poster, http: TestClient, fail: Callable[[Store, Run], None]
) -> None:
    begun = Run(http)
    begun.begin()
    for _ in range(ingest.UNPROVEN):
        fail(store, Run(http))
    # Neither a further run, nor the draw of one that began before.
    for answer in (http.post(PATH, content=Run(http).start(), headers=JSON), begun.send_root()):
        assert answer.status_code == 429
        assert "not proven" in answer.json()["detail"]
    with store.reading() as session:
        assert session.get_one(SpeedRunRow, begun.id).root is None


def test_proven_runs_are_no_failures(store: Store, post: Poster, http: TestClient) -> None:
    for _ in range(ingest.UNPROVEN + 1):
        Run(http).whole()
        assert judge(store)
    leave(store, Run(http))
    Run(http).whole()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start takes long enough that others come meanwhile."""

    require_room = ingest._require_room

    def slowly(*arguments: Any) -> None:
        require_room(*arguments)
        time.sleep(0.1)

    monkeypatch.setattr(ingest, "_require_room", slowly)


@pytest.mark.usefixtures("slow")
def test_starts_at_once_have_one_beacon(store: Store, run: Run) -> None:
    with ThreadPoolExecutor(8) as pool:
        begun = pool.map(lambda _: started(store, run, 12), range(8))
        assert len({one.beacon for one in begun}) == 1


@pytest.mark.usefixtures("slow")
def test_starts_at_once_are_counted(store: Store, post: Poster, http: TestClient) -> None:
    def attempt(run: Run) -> bool:
        try:
            started(store, run, 1)
        except TooManyRequests:
            return False
        return True

    runs = [Run(http) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, runs)) == 1


def started(store: Store, run: Run, a_day: int) -> ingest.Begun:
    return ingest.begin(run.start(), store, run.origin, NOW, a_day)


def test_storage_is_bounded(
    post: Poster, http: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_server.ingest.speed_runs.MOST_AT_ONCE", 1)
    Run(http).begin()
    assert http.post(PATH, content=Run(http).start(), headers=JSON).status_code == 429


def test_an_expired_run_leaves_no_segments(store: Store, run: Run, http: TestClient) -> None:
    run.begin()
    run.commit()
    run.put(run.opened[0])
    with store.writing() as session:
        row = session.get_one(SpeedRunRow, run.id)
        row.expires_at = row.begun_at - timedelta(seconds=1)
        session.add(row)
    Run(http).begin()
    with store.reading() as session:
        query = select(OpenedSegment).where(col(OpenedSegment.challenge_id) == run.id)
        assert session.exec(query).all() == []
