"""Beats: slow clocks, edited blocks, and signed times of something else."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.fakes import loopback, results
from tests.fakes.beats import BLOCKS, with_beats
from tests.fakes.loopback import Scene
from tests.fakes.projected import settle
from tests.fakes.seeding import with_measurement

from bench_protocol.payload.beats import SignedTime
from bench_protocol.payload.result import Result
from bench_protocol.payload.witness import Window

from . import Line

KEY, OTHER_KEY = results.private_key(1), results.private_key(2)
STARTED_NS = 4_000_000_000
HONEST_NS = BLOCKS.total_ns * 1_001 // 1_000
SECOND_NS = 1_000_000_000
# When a beat is posted: by the time at which an honest agent posts it, and its number.
When = Callable[[datetime, int], datetime]


def beats(folder: Path) -> Iterator[Line]:
    """Each on a timed part of 10 s, after the honest one."""
    with loopback.scene(f"sqlite:///{folder / 'beats.db'}") as scene:
        scene.enroll(KEY, OTHER_KEY)
        answer = scene.post(_posted(scene), KEY).raise_for_status().json()
        settle(scene.store)
        level, sentence, verdict = _shown(scene, answer["id"])
        honest = (level, verdict) == (3, "bounded")
        yield Line("none: an honest result with beats", f"level {level}: {sentence}", honest)
        for attack, (forge, wanted) in ATTACKS.items():
            yield _judged(scene, attack, forge(scene), wanted)
        yield _unbounded(scene)


def _judged(scene: Scene, attack: str, result: Result, wanted: str) -> Line:
    """Found if the result is refused, or off every ranking, for what its beats say."""
    scene.now = max(scene.now, datetime.fromisoformat(result.clocks.signed))
    answer = scene.post(result, KEY)
    said = answer.json()
    if answer.status_code != 201:
        refused = said["code"] == "bad_signature" and said["field"].startswith("predicate.beats")
        outcome = f"{answer.status_code} {said['code']}: {said['detail']}"
        return Line(attack, outcome, refused and wanted == REFUSED)
    settle(scene.store)
    level, sentence, verdict = _shown(scene, said["id"])
    ranked = scene.shown(said["id"])["ranked"]
    return Line(attack, f"level {level}: {sentence}", verdict == wanted and not ranked)


def _unbounded(scene: Scene) -> Line:
    """Ten seconds are invented in 50 ms, and window and beats say so: they bound nothing."""
    invented = _posted(scene, _timed(scene, 50_000_000))
    scene.now = max(scene.now, datetime.fromisoformat(invented.clocks.signed))
    answer = scene.post(invented, KEY).raise_for_status().json()
    settle(scene.store)
    level, sentence, verdict = _shown(scene, answer["id"])
    found = (level, verdict) == (2, "unbounded")
    return Line("ten seconds invented between two beats", f"level {level}: {sentence}", found)


def _shown(scene: Scene, identity: str) -> tuple[int, str, str]:
    """Trust level, and the sentence and verdict of its beats."""
    shown = scene.shown(identity)
    (verdict,) = (one for one in shown["verdicts"] if one["check"] == "beats")
    return shown["trust_level"], verdict["sentence"], verdict["figures"]["verdict"]


def _timed(scene: Scene, window_ns: int = HONEST_NS) -> Result:
    """A run that begins now, with all that level 3 needs, whose beats are still to be posted."""
    window = Window(started_ns=STARTED_NS, finished_ns=STARTED_NS + window_ns, blocks_agree=True)
    made = results.make_complete(measured={"blocks": BLOCKS}, window=window)
    ended = scene.now + timedelta(microseconds=made.clocks.signed_ns / 1e3)
    began, signed = (at.strftime("%Y-%m-%dT%H:%M:%S.%fZ") for at in (scene.now, ended))
    texts = {"run_started": began, "started": began, "finished": signed, "signed": signed}
    challenge = scene.challenge(KEY)
    return results._seeded(
        made.model_copy(
            update={
                "run_id": challenge.id,
                "challenge": challenge,
                "clocks": made.clocks.model_copy(update=texts),
            }
        )
    )


def _posted(
    scene: Scene,
    result: Result | None = None,
    when: When = lambda at, _: at,
    **how: Any,
) -> Result:
    """A result with beats that the server signed; ``how`` as in ``with_beats``."""
    posted = 0

    def sign(said: SignedTime) -> tuple[SignedTime, str]:
        nonlocal posted
        scene.now = when(datetime.fromisoformat(said.at), posted)
        posted += 1
        names = ("challenge", "nonce", "key_id", "head")
        body = {name: getattr(said, name) for name in names}
        answer = scene.http.post("/api/v1/beats", json=body).raise_for_status().json()
        return said.model_copy(update={"at": answer["at"]}), answer["signature"]

    return with_beats(result or _timed(scene), sign=sign, **how)


# -- attacks --------------------------------------------------------------------------------------


def slow_clock(scene: Scene) -> Result:
    return _posted(scene, speed=0.95)


def edited_blocks(scene: Scene) -> Result:
    """Half of each time, after the last beat."""
    result = _posted(scene)
    halved = tuple(one // 2 for one in BLOCKS.durations_ns)
    blocks = BLOCKS.model_copy(update={"durations_ns": halved})
    measured = result.measurement and result.measurement.model_copy(update={"blocks": blocks})
    return with_measurement(result, measured)


def beats_of_another_run(scene: Scene) -> Result:
    """Those of an honest run of the same key, under a fresh challenge."""
    earlier = _posted(scene)
    return _timed(scene).model_copy(update={"beats": earlier.beats})


def beats_of_another_repeat(scene: Scene) -> Result:
    return _posted(scene).model_copy(update={"repeat": 2})


def beats_of_another_key(scene: Scene) -> Result:
    return _posted(scene, key_id=results.key_id(OTHER_KEY))


def suspended_process(scene: Scene) -> Result:
    """A second between two blocks is in no block."""
    return _posted(scene, _timed(scene, HONEST_NS + SECOND_NS))


def sleeping_machine(scene: Scene) -> Result:
    """The agent's clock stood still for a second."""
    return _posted(scene, when=lambda at, number: at + timedelta(seconds=number))


def both_at_the_end(scene: Scene) -> Result:
    """The last beat is posted right after the first one: the times are invented."""
    began = scene.now
    return _posted(scene, when=lambda _, number: began + timedelta(milliseconds=50 * number))


REFUSED = "refused"
# Each with the verdict on its beats.
ATTACKS: dict[str, tuple[Callable[[Scene], Result], str]] = {
    "a clock that is 5 % slow": (slow_clock, "outside"),
    "blocks edited after the last beat": (edited_blocks, "edited"),
    "beats replayed from another run": (beats_of_another_run, REFUSED),
    "beats replayed from another repeat": (beats_of_another_repeat, "edited"),
    "beats of another key": (beats_of_another_key, REFUSED),
    "a process suspended between blocks": (suspended_process, "outside"),
    "a machine that slept while it timed": (sleeping_machine, "outside"),
    "both beats posted at once": (both_at_the_end, "outside"),
}
