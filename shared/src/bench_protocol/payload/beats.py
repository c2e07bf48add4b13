"""Beats: hashes that the agent posts when timing begins and ends, and the server's signed times.

The server keeps nothing: a result carries the signed times, and anyone with the server's challenge
key can check them. A head is opened by the result itself. What beats show: block times were fixed
when the last head was posted, and the clock behind them ran as fast as the server's. What they
cannot show: that an invented agent trained anything.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field

from ..base import format as people
from ..base import strict_json
from ..base.errors import BadSignature
from ..base.units import Sha256, Text, UtcTime, Wire
from ..signing.envelope import pae
from .evidence import Beat
from .result import Challenge, Result, RunId

BEAT_PAYLOAD_TYPE = "application/vnd.trainmark.beat.v1+json"
# The agent uses no later answer, so no round trip adds more to the interval.
LATEST_NS = 500_000_000
# A beat may be posted this long after what it reports: the one before may have had no answer.
MOST_DELAY_NS = 1_000_000_000
# Two right clocks differ by 0.01 %, one that is being corrected by 0.05 %; and the clock's grain.
CLOCK_SHARE, CLOCK_NS = 0.01, 5_000_000
# All blocks over the window of the parent process: 0.9960 to 0.9996 in eight honest cells. Blocks
# longer than the server's time contradict nothing: a parent process that posts its first beat late
# makes nobody faster.
LEAST_SHARE = 0.97
# How late a message to the parent process may be. It was 60 ms in windows of 0.2 to 0.5 s
# (bench_server.checks.timing). With less slack, honest blocks that fill their window would
# contradict the server's clock.
SLACK_NS, LEAST_SLACK_NS, SLACK_OF_TIME = 100_000_000, 50_000_000, 0.05
# Beyond it the server's clock says too little about the timed part.
BOUNDED_SHARE = 0.1
NO_BEACON = bytes(32)

Kind = Literal["bounded", "unbounded", "outside", "edited"]


class BeatRequest(Wire):
    """Body of ``POST /api/v1/beats``. The server looks nothing up: a signed time for a challenge
    that was not issued to the key is worth nothing."""

    challenge: RunId = Field(description="id of the run's challenge")
    nonce: Sha256 = Field(description="the challenge's nonce")
    key_id: Sha256 = Field(description="the key that will sign the result")
    head: Sha256 = Field(description="what is posted")


class SignedTime(BeatRequest):
    """What the server signs: it had this head at this time."""

    server_origin: Text
    at: UtcTime


def signature(statement: SignedTime, key: Ed25519PrivateKey) -> str:
    """The server's signature in base64, over the PAE of the statement's canonical form."""
    return base64.b64encode(key.sign(_message(statement))).decode()


def is_signed(beat: Beat, challenge: Challenge, key_id: str, key: Ed25519PublicKey) -> bool:
    """Whether the server signed the time of an answered beat for this key and challenge."""
    if beat.at is None or beat.signature is None:
        return False
    statement = SignedTime(
        challenge=challenge.id,
        nonce=challenge.nonce,
        key_id=key_id,
        head=beat.head,
        server_origin=challenge.server_origin,
        at=beat.at,
    )
    try:
        key.verify(base64.b64decode(beat.signature), _message(statement))
    except InvalidSignature:
        return False
    return True


def require_signed(result: Result, key: Ed25519PublicKey) -> None:
    """Check the signed times in a result.

    Args:
        key: the challenge key of the server that the result's challenge names.

    Raises:
        BadSignature: the server did not sign one for this key, challenge and head.
    """
    for number, beat in enumerate(result.beats):
        if beat.signature is None:
            continue
        challenge, key_id = result.challenge, result.agent.key_id
        if challenge is None or not is_signed(beat, challenge, key_id, key):
            raise BadSignature(
                f"beat {number + 1} is not signed by the server for this key, challenge and head",
                field=f"predicate.beats.{number}.signature",
                hint="leave out a beat whose answer does not verify, and say its problem",
            )


def first_head(run_id: str, repeat: int, cell_digest: str) -> str:
    """The head when timing begins: SHA-256("trainmark/beat/v1/" run "/" repeat "/" cell)."""
    text = f"trainmark/beat/v1/{run_id}/{repeat}/{cell_digest}"
    return hashlib.sha256(text.encode()).hexdigest()


class Ending(NamedTuple):
    """Losses that the last head fixes beside the block times: the last batch's, and the witness's
    of the warm-up; None for one that is not finite."""

    last_loss: float | None
    losses: tuple[float | None, ...]


def next_head(before: Beat, durations_ns: Sequence[int], ending: Ending | None = None) -> str:
    """The head after a beat: SHA-256(its head || its beacon || canonical JSON of what followed).

    Where there is no beacon it is 32 zero bytes.

    Args:
        durations_ns: of the blocks since that beat.
        ending: where timing has ended.
    """
    followed: dict[str, Any] = {"durations_ns": list(durations_ns)}
    if ending is not None:
        followed |= {"last_loss": ending.last_loss, "losses": list(ending.losses)}
    beacon = NO_BEACON if before.beacon is None else bytes.fromhex(before.beacon)
    raw = bytes.fromhex(before.head) + beacon + strict_json.dumps(followed)
    return hashlib.sha256(raw).hexdigest()


@dataclass(frozen=True)
class BeatsVerdict:
    """What the beats of a result say of its timing; ``figures`` are the numbers of the sentence."""

    kind: Kind
    sentence: str
    figures: dict[str, Any] = field(default_factory=dict)


def verdict(result: Result) -> BeatsVerdict:
    """Compare block times with the server's signed times. Signatures are not checked here
    (:func:`require_signed`).

    ``edited``: the heads are not those of its blocks and losses. ``outside``: its clock contradicts
    the server's clock, or its blocks take less time than passed. ``unbounded``: an answer is
    missing or late, or the first beat was posted late.
    """
    if not result.beats:
        return BeatsVerdict("unbounded", _without(result))
    if not _opened(result):
        sentence = "its blocks or losses are not those of the hashes that it posted while it timed"
        return BeatsVerdict("edited", sentence)
    usable = [moment for beat in result.beats if (moment := _moment(result, beat))]
    # Neighbours show a short contradiction, the ends a clock that runs slow.
    stretches = [Stretch(*pair) for pair in pairwise(usable)]
    stretches += [Stretch(usable[0], usable[-1])] if len(usable) > 2 else []
    for stretch in stretches:
        if contradiction := stretch.contradiction(result):
            return BeatsVerdict("outside", contradiction, stretch.figures(result))
    if missing := _missing(result, usable):
        return BeatsVerdict("unbounded", f"the server's clock does not bound its timing: {missing}")
    whole = stretches[-1]
    figures, blocks_ns = whole.figures(result), whole.blocks_ns(result)
    took = (
        f"its blocks take {blocks_ns / 1e9:,.3f} s, and {whole.server_ns / 1e9:,.3f} s passed "
        "between two signed times; the allowance is "
        f"{people.percent(BOUNDED_SHARE, 0)} of the time of the blocks"
    )
    within = figures["within_share"]
    if within > BOUNDED_SHARE:
        sentence = (
            "the server's clock does not bound its timing: the two may differ by "
            f"{people.percent(within)}; {took}"
        )
        return BeatsVerdict("unbounded", sentence, figures)
    bounded = f"its timing was bounded by the server's clock, to {people.percent(within)}: {took}"
    return BeatsVerdict("bounded", bounded, figures)


class SignedMoment(NamedTuple):
    """A beat with an answer in time. ``at``: the server's; ``delay_ns``: from what it reports to
    its sending; ``round_trip_ns``: from sending to answer."""

    beat: Beat
    at: datetime
    delay_ns: int
    round_trip_ns: int

    @property
    def reach_ns(self) -> int:
        """How much later than what it reports its signed time may be."""
        return self.delay_ns + self.round_trip_ns


class Stretch(NamedTuple):
    """The time between two answered beats.

    The server read its clock between sending and answer of each. So by a right clock of the agent
    its interval is at least ``end.sent - start.answered``, at most ``end.answered - start.sent``.
    """

    start: SignedMoment
    end: SignedMoment

    @property
    def server_ns(self) -> int:
        return (self.end.at - self.start.at) // timedelta(microseconds=1) * 1000

    def blocks_ns(self, result: Result) -> int:
        """The blocks that were reported in between."""
        blocks = result.measurement.blocks.all_durations_ns if result.measurement else ()
        return sum(blocks[self.start.beat.blocks : self.end.beat.blocks])

    def figures(self, result: Result) -> dict[str, Any]:
        blocks_ns = self.blocks_ns(result)
        least_ns = self.server_ns - self.end.reach_ns
        most_ns = self.server_ns + self.start.reach_ns
        off_ns = max(abs(blocks_ns - least_ns), abs(most_ns - blocks_ns))
        return {
            "blocks_ns": blocks_ns,
            "server_ns": self.server_ns,
            "least_ns": least_ns,
            "most_ns": most_ns,
            "within_share": round(off_ns / max(1, blocks_ns), 6),
        }

    def contradiction(self, result: Result) -> str | None:
        """Why agent and server cannot both be right; None if they can."""
        sent_ns = self.end.beat.sent_ns - self.start.beat.sent_ns
        least_ns = sent_ns - self.start.round_trip_ns
        most_ns = sent_ns + self.end.round_trip_ns
        server_ns, blocks_ns = self.server_ns, self.blocks_ns(result)
        if not (
            (1 - CLOCK_SHARE) * least_ns - CLOCK_NS
            <= server_ns
            <= (1 + CLOCK_SHARE) * most_ns + CLOCK_NS
        ):
            return (
                f"by its own clock {least_ns / 1e9:,.3f} to {most_ns / 1e9:,.3f} s passed between "
                f"two beats, by the server's {server_ns / 1e9:,.3f} s"
            )
        passed_ns = server_ns - self.end.reach_ns
        slack_ns = min(SLACK_NS, LEAST_SLACK_NS + SLACK_OF_TIME * max(0, passed_ns))
        if blocks_ns < LEAST_SHARE * passed_ns - slack_ns:
            return (
                f"its blocks take {blocks_ns / 1e9:,.3f} s, and {server_ns / 1e9:,.3f} s passed "
                "between two beats by the server's clock"
            )
        return None


def _message(statement: SignedTime) -> bytes:
    return pae(BEAT_PAYLOAD_TYPE, strict_json.dumps(statement.model_dump(mode="json")))


def _without(result: Result) -> str:
    if result.challenge is None:
        return "measured without a challenge, so it posted no beats"
    return "it posted no beats, so the server's clock does not bound its timing"


def _opened(result: Result) -> bool:
    """Whether the heads are those of the result."""
    measured, (begin, *later) = result.measurement, result.beats
    first = first_head(result.run_id, result.repeat, result.cell.digest)
    if (begin.head, begin.moment, begin.blocks) != (first, "begin", 0):
        return False
    blocks = measured.blocks.all_durations_ns if measured else ()
    losses = measured.witness.losses if measured and measured.witness else ()
    ending = Ending(measured.last_loss if measured else None, losses)
    for before, beat in pairwise((begin, *later)):
        ends = beat.moment == "end"
        if not before.blocks <= beat.blocks <= len(blocks) or before.moment == "end":
            return False
        if beat.moment == "begin" or (ends and beat.blocks != len(blocks)):
            return False
        followed = blocks[before.blocks : beat.blocks]
        if beat.head != next_head(before, followed, ending if ends else None):
            return False
    return True


def _moment(result: Result, beat: Beat) -> SignedMoment | None:
    """A beat as the ends of stretches need it; None if it has no answer in time."""
    window = result.measurement.window if result.measurement else None
    if beat.signature is None or beat.at is None or beat.answered_ns is None or window is None:
        return None
    reported_ns = {"begin": window.started_ns, "end": window.finished_ns}
    delay_ns = beat.sent_ns - reported_ns.get(beat.moment, beat.sent_ns)
    round_trip_ns = beat.answered_ns - beat.sent_ns
    if not 0 <= delay_ns <= MOST_DELAY_NS or round_trip_ns > LATEST_NS:
        return None
    return SignedMoment(beat, datetime.fromisoformat(beat.at), delay_ns, round_trip_ns)


def _missing(result: Result, usable: Sequence[SignedMoment]) -> str | None:
    """Which of the two ends has no usable answer, and why."""
    answered = {moment.beat.moment for moment in usable}
    for moment, words in (("begin", "when timing began"), ("end", "when timing ended")):
        if moment in answered:
            continue
        posted = [beat for beat in result.beats if beat.moment == moment]
        why = (posted[0].problem or "late") if posted else "not posted"
        return f"no signed time of {words} ({why.replace('_', ' ')})"
    return None
