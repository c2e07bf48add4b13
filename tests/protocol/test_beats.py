"""Beats: heads that the result opens, signed times, and what they bound."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.authority import AUTHORITY, ORIGIN
from tests.fakes.beats import with_beats

from bench_protocol.base import format as people
from bench_protocol.base.errors import BadSignature
from bench_protocol.payload import beats, statement
from bench_protocol.payload.evidence import Beat
from bench_protocol.payload.result import Blocks, Challenge, Result
from bench_protocol.payload.witness import Window

KEY = AUTHORITY.challenge.public_key()
CHALLENGE = Challenge(id="c4" * 16, nonce="9e" * 32, server_origin=ORIGIN)
BLOCK_NS = 200_000_000


def timed(seconds: float = 10, window_share: float = 1.001) -> Result:
    """A result with blocks of 0.2 s, and a window that they fill."""
    count = round(seconds * 1e9 / BLOCK_NS)
    durations = (BLOCK_NS,) * count
    blocks = Blocks(
        steps_per_block=10,
        durations_ns=durations,
        stop_reason="settled",
        warm_up_steps=20,
        warm_up_ns=10**9,
    )
    began_ns = 4_000_000_000
    window = Window(
        started_ns=began_ns,
        finished_ns=began_ns + round(window_share * count * BLOCK_NS),
        blocks_agree=True,
    )
    result = results.make_complete(measured={"blocks": blocks}, window=window)
    return result.model_copy(update={"challenge": CHALLENGE})


def kind(result: Result) -> str:
    return beats.verdict(result).kind


def test_an_honest_result_is_bounded_and_says_how_closely() -> None:
    result = with_beats(timed())
    beats.require_signed(result, KEY)
    said = beats.verdict(result)
    assert said.kind == "bounded"
    assert "was bounded by the server's clock, to 0." in said.sentence
    assert said.figures["within_share"] < 0.01
    # As it is sent and read.
    assert statement.parse_result(statement.result_payload(result)) == result


def test_beats_in_between_and_losses_are_opened_too() -> None:
    assert kind(with_beats(timed(90), during=(300, 350, 400))) == "bounded"
    assert kind(with_beats(timed(1), during=(1, 1))) == "bounded"


# -- an honest agent is never outside ------------------------------------------------------------


@pytest.mark.parametrize("round_trip_ms", [0, 1, 20, 100, 500])
@pytest.mark.parametrize("seconds", [0.2, 1, 10, 60])
@pytest.mark.parametrize("drift", [0.999, 1.001])
def test_no_network_makes_an_honest_clock_contradict(
    seconds: float, round_trip_ms: int, drift: float
) -> None:
    round_trip_ns = round_trip_ms * 999_000  # half a second is the agent's limit
    result = with_beats(timed(seconds), speed=drift, round_trip_ns=round_trip_ns)
    assert kind(result) == ("bounded" if round_trip_ms < 95 * seconds else "unbounded")


@pytest.mark.parametrize("delay_ms", [0, 20, 400])
def test_a_beat_that_is_posted_late_contradicts_nothing(delay_ms: int) -> None:
    assert kind(with_beats(timed(), delay_ns=delay_ms * 1_000_000)) == "bounded"


@pytest.mark.parametrize(
    ("seconds", "late_seconds", "found"),
    [(1, 0.05, "bounded"), (1, 0.3, "unbounded"), (10, 0.3, "bounded"), (10, 9, "unbounded")],
)
def test_a_parent_that_receives_the_first_message_late_contradicts_nothing(
    seconds: float, late_seconds: float, found: str
) -> None:
    """Less time passed between the beats than its blocks take: that makes nobody faster."""
    said = beats.verdict(with_beats(timed(seconds, window_share=1 - late_seconds / seconds)))
    assert said.kind == found, said.sentence
    assert people.percent(said.figures["within_share"]) in said.sentence
    assert "delays" not in said.sentence  # the first beat may have been late
    assert "; the allowance is 10 % of the time of the blocks" in said.sentence


def test_a_beat_in_between_that_is_posted_late_contradicts_nothing() -> None:
    result = with_beats(timed(90), during=(300, 350))
    begin, during, *later = result.beats
    assert during.answered_ns is not None
    late_ns = 600_000_000
    times = {"sent_ns": during.sent_ns + late_ns, "answered_ns": during.answered_ns + late_ns}
    late = resigned(during.model_copy(update=times), late_ns / 1e9)
    assert kind(result.model_copy(update={"beats": (begin, late, *later)})) == "bounded"


# -- a clock that runs slow -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("speed", "seconds", "round_trip_ms", "found"),
    [
        (0.95, 10, 20, "outside"),
        (0.95, 2, 20, "outside"),
        (0.95, 25, 450, "outside"),
        (0.95, 0.4, 20, "unbounded"),  # 4 % of 0.4 s are less than a round trip
        (0.98, 10, 20, "outside"),
        (0.98, 60, 200, "outside"),
        (0.992, 60, 20, "bounded"),  # below one per cent no clock is doubted
        (1.05, 10, 20, "outside"),
    ],
)
def test_a_slow_clock_is_outside_where_the_stretch_is_long_enough(
    speed: float, seconds: float, round_trip_ms: int, found: str
) -> None:
    result = with_beats(timed(seconds), speed=speed, round_trip_ns=round_trip_ms * 1_000_000)
    assert kind(result) == found


@pytest.mark.parametrize(("seconds", "found"), [(4, "bounded"), (10, "outside"), (60, "outside")])
def test_a_slow_clock_of_the_worker_alone(seconds: float, found: str) -> None:
    assert kind(with_beats(timed(seconds, window_share=1 / 0.95))) == found


@pytest.mark.parametrize(
    ("took_seconds", "found"), [(0.44, "unbounded"), (0.48, "unbounded"), (0.505, "outside")]
)
def test_a_short_stretch_has_little_slack(took_seconds: float, found: str) -> None:
    """0.4 s of blocks: 0.1 s of slack would let them have taken 0.515 s."""
    assert kind(with_beats(timed(0.4, took_seconds / 0.4), round_trip_ns=1_000_000)) == found


def test_a_short_sleep_in_a_long_part_shows_between_neighbours() -> None:
    """Two seconds of 400 are within the tolerance of a clock, two of ten are not."""
    result = with_beats(timed(400), during=(300, 350, 400))
    *before, after, end = result.beats
    slept = (*before, resigned(after, 2), resigned(end, 2))
    assert kind(with_ends_alone(result, 2)) == "bounded"
    assert kind(result.model_copy(update={"beats": slept})) == "outside"


def with_ends_alone(result: Result, seconds: float) -> Result:
    """The same sleep with beats at both ends alone."""
    begin, end = with_beats(result).beats
    return result.model_copy(update={"beats": (begin, resigned(end, seconds))})


def resigned(beat: Beat, seconds: float) -> Beat:
    """The beat with a later time; its signature, which is not looked at here, stays."""
    assert beat.at is not None
    at = datetime.fromisoformat(beat.at) + timedelta(seconds=seconds)
    return beat.model_copy(update={"at": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")})


# -- edited ---------------------------------------------------------------------------------------


def edit(result: Result, **fields: Any) -> Result:
    measured = result.measurement
    assert measured is not None
    changed = measured.model_copy(update=fields)
    outcome = result.outcome.model_copy(update={"measurement": changed})
    return result.model_copy(update={"outcome": outcome})


def faster(result: Result) -> Result:
    assert result.measurement is not None
    blocks = result.measurement.blocks
    halved = tuple(duration // 2 for duration in blocks.durations_ns)
    return edit(result, blocks=blocks.model_copy(update={"durations_ns": halved}))


def one_nanosecond(result: Result) -> Result:
    assert result.measurement is not None
    blocks = result.measurement.blocks
    first, *others = blocks.durations_ns
    return edit(result, blocks=blocks.model_copy(update={"durations_ns": (first - 1, *others)}))


def another_witness(result: Result) -> Result:
    assert result.measurement is not None
    assert result.measurement.witness is not None
    told = result.measurement.witness
    losses = (0.5, *told.losses[1:])
    return edit(result, witness=told.model_copy(update={"losses": losses}))


def reordered(result: Result) -> Result:
    return result.model_copy(update={"beats": result.beats[::-1]})


EDITS = {
    "all blocks halved": faster,
    "one block by a nanosecond": one_nanosecond,
    "the last loss": lambda result: edit(result, last_loss=0.001),
    "a loss of the warm-up": another_witness,
    "the witness left out": lambda result: edit(result, witness=None),
    "another repeat": lambda result: result.model_copy(update={"repeat": 2}),
    "another run": lambda result: result.model_copy(update={"run_id": "ee" * 16}),
    "another cell": lambda result: result.model_copy(
        update={"cell": result.cell.model_copy(update={"recipe": "tuned"})}
    ),
    "the last beat twice": lambda result: result.model_copy(
        update={"beats": (*result.beats, result.beats[-1])}
    ),
    "the first beat left out": lambda result: result.model_copy(update={"beats": result.beats[1:]}),
    "beats in another order": reordered,
}


@pytest.mark.parametrize("name", EDITS)
def test_what_was_edited_after_the_last_beat_is_not_what_was_posted(name: str) -> None:
    assert kind(EDITS[name](with_beats(timed()))) == "edited"


# -- signatures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "signed",
    [
        {"challenge": "ab" * 16},
        {"nonce": "ab" * 32},
        {"key_id": "ab" * 32},
        {"head": "ab" * 32},
        {"server_origin": "other.example"},
    ],
    ids=lambda signed: next(iter(signed)),
)
def test_a_signed_time_of_something_else_is_refused(signed: dict[str, str]) -> None:
    with pytest.raises(BadSignature) as caught:
        beats.require_signed(with_beats(timed(), **signed), KEY)
    assert caught.value.field == "predicate.beats.0.signature"


def test_a_time_that_the_server_did_not_sign_is_refused() -> None:
    result = with_beats(timed())
    later = resigned(result.beats[1], 1)
    with pytest.raises(BadSignature):
        beats.require_signed(result.model_copy(update={"beats": (result.beats[0], later)}), KEY)


def test_signed_times_without_a_challenge_are_refused() -> None:
    result = with_beats(timed()).model_copy(update={"challenge": None})
    with pytest.raises(BadSignature):
        beats.require_signed(result, KEY)


# -- missing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["begin", "end"])
def test_a_missing_answer_bounds_nothing_and_says_which(moment: str) -> None:
    said = beats.verdict(with_beats(timed(), unanswered=(moment,)))
    assert said.kind == "unbounded"
    assert f"when timing {'began' if moment == 'begin' else 'ended'} (late)" in said.sentence


def test_an_answer_in_between_still_tells_a_slow_clock() -> None:
    slow = with_beats(timed(90), during=(300, 400), unanswered=("end",), speed=0.95)
    assert kind(slow) == "outside"


def test_without_beats_it_says_so() -> None:
    assert "posted no beats" in beats.verdict(timed()).sentence
    offline = timed().model_copy(update={"challenge": None})
    assert "without a challenge" in beats.verdict(offline).sentence


def test_an_answer_that_the_agent_should_not_have_used() -> None:
    assert kind(with_beats(timed(60), round_trip_ns=600_000_000)) == "unbounded"
    assert kind(with_beats(timed(60), delay_ns=1_100_000_000)) == "unbounded"
