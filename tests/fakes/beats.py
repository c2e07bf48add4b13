"""Beats of made results: honest ones, and agents whose clock runs slow."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from bench_protocol.payload import beats
from bench_protocol.payload.beats import Ending, SignedTime
from bench_protocol.payload.evidence import Beat, beacon_of
from bench_protocol.payload.result import Blocks, Measurement, Result

from .authority import AUTHORITY

# Ten seconds in blocks of 0.2 s.
BLOCKS = Blocks(
    steps_per_block=100,
    durations_ns=(200_000_000,) * 50,
    stop_reason="settled",
    warm_up_steps=20,
    warm_up_ns=10**9,
)
ROUND_TRIP_NS = 20_000_000
# Signs the time of a beat: what was signed, and the signature.
Sign = Callable[[SignedTime], tuple[SignedTime, str]]


def signed_here(said: SignedTime) -> tuple[SignedTime, str]:
    return said, beats.signature(said, AUTHORITY.challenge)


def with_beats(
    result: Result,
    *,
    speed: float = 1.0,
    round_trip_ns: int = ROUND_TRIP_NS,
    delay_ns: int = 200_000,
    during: tuple[int, ...] = (),
    unanswered: tuple[str, ...] = (),
    sign: Sign = signed_here,
    **signed: Any,
) -> Result:
    """The result with the beats that its agent posted.

    Args:
        speed: of the agent's clock; 0.95 is 5 % slow. The server's clock is right.
        round_trip_ns: of each beat, right time; the server reads its clock half-way.
        delay_ns: from what a beat reports to its sending.
        during: after how many blocks there was another beat.
        unanswered: moments without an answer.
        sign: the server.
        signed: other members of what the server signed.
    """
    measured = result.measurement
    assert measured is not None
    assert measured.window is not None
    assert result.challenge is not None
    began_ns, durations = measured.window.started_ns, measured.blocks.all_durations_ns
    moments = [("begin", 0, began_ns)]
    moments += [("during", n, began_ns + sum(durations[:n])) for n in during]
    moments += [("end", len(durations), measured.window.finished_ns)]
    made: list[Beat] = []
    for moment, blocks, reported_ns in moments:
        if made:
            since = durations[made[-1].blocks : blocks]
            ending = ending_of(measured) if moment == "end" else None
            head = beats.next_head(made[-1], since, ending)
        else:
            head = beats.first_head(result.run_id, result.repeat, result.cell.digest)
        sent_ns = reported_ns + delay_ns
        posted = {"head": head, "moment": moment, "blocks": blocks, "sent_ns": sent_ns}
        if moment in unanswered:
            made.append(Beat.model_validate({**posted, "problem": "late"}))
            continue
        at = datetime.fromisoformat(result.clocks.run_started) + timedelta(
            microseconds=(sent_ns / speed + round_trip_ns / 2) / 1e3
        )
        statement = SignedTime(
            **{
                "challenge": result.challenge.id,
                "nonce": result.challenge.nonce,
                "key_id": result.agent.key_id,
                "head": head,
                "server_origin": result.challenge.server_origin,
                "at": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            }
            | signed
        )
        statement, signature = sign(statement)
        made.append(
            Beat.model_validate(
                {
                    **posted,
                    "answered_ns": sent_ns + round(round_trip_ns * speed),
                    "at": statement.at,
                    "signature": signature,
                    "beacon": beacon_of(signature),
                }
            )
        )
    return result.model_copy(update={"beats": tuple(made)})


def ending_of(measured: Measurement) -> Ending:
    """What the last beat fixes beside the blocks."""
    return Ending(measured.last_loss, measured.witness.losses if measured.witness else ())
