"""Reproduction: claims that are too fast, and owners who vouch for each other."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from tests.fakes import results

from bench_protocol.payload.result import Asked
from bench_server.ranking.owners import ESTABLISHED_AFTER

from . import Line
from .scene import Scene
from .scene import scene as scene_of

HONEST_NS = 10_000_000
# The claim: 20 % too fast.
CLAIMED_NS = HONEST_NS * 100 // 120
KEYS = [results.private_key(seed) for seed in range(1, 7)]
CHEAT, FRIEND, ACCOMPLICE, *HONEST = KEYS
STRANGERS = KEYS[:3]
OF_ANOTHER_DAY = results.private_key(9)
REPRODUCED = 4


def reproduction(folder: Path) -> Iterator[Line]:
    """Each with a server of its own, whose owners are confirmed unless the line says otherwise."""
    with scene_of(f"sqlite:///{folder / 'asked.db'}") as scene:
        yield from _asked_for(scene)
    with scene_of(f"sqlite:///{folder / 'one_address.db'}") as scene:
        yield from _of_one_address(scene)
    with scene_of(f"sqlite:///{folder / 'colluding.db'}") as scene:
        yield from _colluding(scene)


def _asked_for(scene: Scene) -> Iterator[Line]:
    """The claim tops its board, so the server asks for it. After two answers nothing tells which
    of three is right; after four the claim is not reproduced."""
    honest = (FRIEND, ACCOMPLICE, *HONEST[:2])
    scene.enroll(CHEAT, *honest)
    scene.confirm(CHEAT, *honest)
    claim = scene.measure(CHEAT, CLAIMED_NS)
    scene.now += timedelta(days=1)
    scene.enroll(OF_ANOTHER_DAY)  # the first entry of a day, before which the asks are drawn
    draw = scene.http.get("/api/v1/asks").json()
    ask = next(one for one in draw["asks"] if one["result"] == claim)
    named = Asked(root=draw["root"], reason=ask["reason"], result=claim)
    counted = 0
    for wanted, keys in (("undecided", honest[:2]), ("not_reproduced", honest[2:])):
        answers = [scene.measure(key, HONEST_NS, asked=named) for key in keys]
        counted += sum(scene.shown(one)["ask_id"] == ask["id"] for one in answers)
        level, sentence, verdict = _told(scene, claim)
        yield Line(
            f"a claim 20 % too fast after {counted} answers to its ask",
            f"level {level}: {sentence}",
            (level, verdict) == (3, wanted),
        )


def _of_one_address(scene: Scene) -> Iterator[Line]:
    """Three owners send the same claim, twice; 30 days later they are established."""
    scene.enroll(*STRANGERS)
    for kind in ("new", "established"):
        sent = [scene.measure(key, CLAIMED_NS) for key in STRANGERS]
        level = max(scene.shown(one)["trust_level"] for one in sent)
        decides = scene.board()[0]["owners_that_decide"]
        yield Line(
            f"three {kind} owners of one address reproduce each other",
            f"level {level} at most: only confirmed owners reproduce",
            level == REPRODUCED - 1 and decides == kind,
        )
        scene.now += ESTABLISHED_AFTER


def _colluding(scene: Scene) -> Iterator[Line]:
    """A confirmed owner sends the claim of another one too."""
    scene.enroll(*KEYS)
    scene.confirm(*KEYS)
    claim = scene.measure(CHEAT, CLAIMED_NS)
    scene.measure(FRIEND, CLAIMED_NS)
    for number, key in enumerate(HONEST, 1):
        scene.measure(key, HONEST_NS)
        level, sentence, verdict = _told(scene, claim)
        yield Line(
            f"a colluding reproducer beside {number} honest",
            f"level {level}: {sentence}",
            level == REPRODUCED - 1 and verdict in ("undecided", "not_reproduced"),
        )
    elsewhere = results.make_cell(framework="jax")
    colluding = (CHEAT, FRIEND, ACCOMPLICE)
    claim, *_ = [scene.measure(key, CLAIMED_NS, cell=elsewhere) for key in colluding]
    level, sentence, _ = _told(scene, claim)
    yield Line(
        "three confirmed owners that collude, where nobody else measured",
        f"level {level}: {sentence}; the operator vouches for confirmed owners",
        level == REPRODUCED,
        defended=False,
    )


def _told(scene: Scene, identity: str) -> tuple[int, str, str]:
    """Trust level and reproduction of a result."""
    shown = scene.shown(identity)
    told = shown["reproduction"] or {"sentence": "no verdict", "verdict": "none"}
    return shown["trust_level"], told["sentence"], told["verdict"]
