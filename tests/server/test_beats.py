"""Beats through acceptance: what is refused, what is stale, what counts."""

import math
from datetime import datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.fakes import results
from tests.fakes.authority import AUTHORITY, ORIGIN
from tests.fakes.beats import BLOCKS, with_beats
from tests.fakes.client import JSON, Poster
from tests.fakes.projected import settle

from bench_protocol.payload import beats
from bench_protocol.payload.evidence import Beat, beacon_of
from bench_protocol.payload.result import Challenge, Result
from bench_protocol.payload.witness import Window
from bench_server.checks import timing as timing_checks
from bench_server.db.store import Store

KEY_ID = results.key_id(results.private_key())


def bound(post: Poster, **how: Any) -> Result:
    """A result of level 3 under a challenge, with beats."""
    made = results.make_complete(measured={"blocks": BLOCKS})
    return with_beats(results._seeded(post.bound(made)), **how)


def shown(http: TestClient, store: Store, identity: str) -> tuple[int, bool, dict[str, Any]]:
    """Trust level, whether it is ranked, and the verdict on its beats."""
    settle(store)
    answer = http.get(f"/api/v1/results/{identity}").json()
    (verdict,) = (one for one in answer["verdicts"] if one["check"] == "beats")
    return answer["trust_level"], answer["ranked"], verdict


def test_the_server_signs_when_it_had_a_head(http: TestClient) -> None:
    challenge = Challenge(id="c4" * 16, nonce="9e" * 32, server_origin=ORIGIN)
    body = {"challenge": challenge.id, "nonce": challenge.nonce, "key_id": KEY_ID}
    answer = http.post("/api/v1/beats", json=body | {"head": "ab" * 32}).json()
    beat = Beat(
        head="ab" * 32,
        sent_ns=0,
        answered_ns=1,
        beacon=beacon_of(answer["signature"]),
        **answer,
    )
    key = AUTHORITY.challenge.public_key()
    assert beats.is_signed(beat, challenge, KEY_ID, key)
    assert not beats.is_signed(beat, challenge, "ab" * 32, key)
    assert datetime.fromisoformat(answer["at"]).utcoffset() is not None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "malformed_json"),
        (b"{}", "invalid_field"),
        (b'{"challenge":"a","nonce":"b","key_id":"c","head":"d"}', "invalid_field"),
    ],
)
def test_a_bad_beat_is_refused(http: TestClient, body: bytes, code: str) -> None:
    answer = http.post("/api/v1/beats", content=body, headers=JSON)
    assert 400 <= answer.status_code < 500
    assert answer.json()["code"] == code


def test_beats_add_that_the_servers_clock_bounds_the_timing(
    post: Poster, http: TestClient, store: Store
) -> None:
    level, ranked, verdict = shown(http, store, post(bound(post)))
    assert (level, ranked) == (3, True)
    assert verdict["passed"]
    assert verdict["checked"]
    assert verdict["sentence"].startswith("its timing was bounded by the server's clock, to 0.")
    without = bound(post).model_copy(update={"beats": (), "run_id": "ab" * 16})
    level, ranked, verdict = shown(http, store, post(without))
    assert (level, ranked) == (3, True)
    assert not verdict["checked"]


def test_the_page_says_it(post: Poster, http: TestClient) -> None:
    identity = post(bound(post))
    assert "its timing was bounded by the server" in http.get(f"/results/{identity}").text


def test_a_slow_clock_is_stale_and_not_ranked(post: Poster, http: TestClient, store: Store) -> None:
    level, ranked, verdict = shown(http, store, post(bound(post, speed=0.95)))
    assert (level, ranked, verdict["effect"]) == (1, False, "stale")
    assert "by its own clock" in verdict["sentence"]


def halved(result: Result) -> Result:
    assert result.measurement is not None
    blocks = BLOCKS.model_copy(update={"durations_ns": (100_000_000,) * 50})
    measured = result.measurement.model_copy(update={"blocks": blocks})
    return result.model_copy(
        update={"outcome": result.outcome.model_copy(update={"measurement": measured})}
    )


def test_blocks_edited_after_the_last_beat_are_unranked(
    post: Poster, http: TestClient, store: Store
) -> None:
    _, ranked, verdict = shown(http, store, post(halved(bound(post))))
    assert (ranked, verdict["passed"], verdict["effect"]) == (False, False, "unranked")


def other_repeat(result: Result) -> Result:
    """The same beats in another repeat."""
    return result.model_copy(update={"repeat": 2})


def test_beats_are_of_one_repeat(post: Poster, http: TestClient, store: Store) -> None:
    first = bound(post)
    post(first)
    _, ranked, verdict = shown(http, store, post(other_repeat(first)))
    assert (ranked, verdict["figures"]["verdict"]) == (False, "edited")


@pytest.mark.parametrize("signed", [{"key_id": "ab" * 32}, {"nonce": "ab" * 32}])
def test_signed_times_of_another_key_or_challenge_are_refused(
    post: Poster, signed: dict[str, str]
) -> None:
    answer = post.raw(results.sealed(bound(post, **signed)))
    assert answer.status_code == 403
    assert answer.json()["code"] == "bad_signature"
    assert answer.json()["field"] == "predicate.beats.0.signature"


def test_beats_of_another_servers_challenge_are_not_compared(
    post: Poster, http: TestClient, store: Store
) -> None:
    """They may be right; this server cannot know."""
    made = results.make_complete(measured={"blocks": BLOCKS})
    foreign = Challenge(id="c4" * 16, nonce="9e" * 32, server_origin="other.example")
    result = with_beats(made.model_copy(update={"challenge": foreign}), speed=0.5)
    level, _, verdict = shown(http, store, post(result))
    assert (level, verdict["passed"], verdict["checked"]) == (1, True, False)


@pytest.mark.parametrize("moment", ["begin", "end"])
def test_a_missing_answer_costs_nothing(
    post: Poster, http: TestClient, store: Store, moment: str
) -> None:
    level, ranked, verdict = shown(http, store, post(bound(post, unanswered=(moment,))))
    assert (level, ranked) == (3, True)
    assert (verdict["passed"], verdict["checked"]) == (True, False)
    assert "(late)" in verdict["sentence"]


@pytest.mark.parametrize("window_ms", [60, 100, 200, 300, 500, 800, 1000, 1200, 1400])
def test_short_blocks_that_fill_their_window_agree_with_the_server(window_ms: int) -> None:
    """The latest message that the check of the window allows contradicts no signed time."""
    window_ns = window_ms * 1_000_000
    least_ns = timing_checks.least_of_window_ns(window_ns)
    block = BLOCKS.model_copy(update={"durations_ns": (math.ceil(least_ns),)})
    window = Window(started_ns=4 * 10**9, finished_ns=4 * 10**9 + window_ns, blocks_agree=True)
    made = results.make_complete(measured={"blocks": block}, window=window)
    challenge = Challenge(id="c4" * 16, nonce="9e" * 32, server_origin=ORIGIN)
    result = made.model_copy(update={"challenge": challenge})
    for round_trip_ns in (1, 20_000_000):
        honest = with_beats(result, delay_ns=0, round_trip_ns=round_trip_ns)
        assert beats.verdict(honest).kind != "outside"
