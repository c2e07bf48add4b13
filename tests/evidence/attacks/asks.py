"""Asks: runs that claim to answer an ask which they were not given."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.fakes import results

from bench_protocol.payload.result import Asked

from . import Line
from .scene import scene as scene_of

ASKER, HELPER = results.private_key(1), results.private_key(2)
STEP_NS = 10_000_000
# What a result names or is, other than the ask that was drawn.
ATTACKS: dict[str, dict[str, Any]] = {
    "an ask of another draw": {"root": "0" * 64},
    "an ask for another reason": {"reason": "outlier"},
    "an ask about another result": {"result": "0" * 16},
    "an ask about no result": {"result": None},
    "an ask for another cell": {"cell": results.make_cell(batch_size=128)},
    "an ask for another hardware": {"machine": results.make_machine("Apple M2 Max")},
}


def asks(folder: Path) -> Iterator[Line]:
    """One set-up is asked for. Each attack names that ask, or another one."""
    with scene_of(f"sqlite:///{folder / 'asks.db'}") as scene:
        scene.enroll(ASKER)
        scene.measure(ASKER, STEP_NS)
        scene.now += timedelta(days=1)
        scene.enroll(HELPER)  # the first entry of a day, before which the asks are drawn
        draw = scene.http.get("/api/v1/asks").json()
        (ask,) = draw["asks"]
        given = {"root": draw["root"], "reason": ask["reason"], "result": ask["result"]}

        def answered(named: dict[str, Any], **how: Any) -> str | None:
            sent = scene.measure(HELPER, STEP_NS, asked=Asked(**named), **how)
            shown: str | None = scene.shown(sent)["ask_id"]
            return shown

        for attack, change in ATTACKS.items():
            named = given | {name: change[name] for name in given if name in change}
            how = {name: change[name] for name in change if name not in given}
            counted = answered(named, **how)
            outcome = "counted" if counted else "kept as any result, answers no ask"
            yield Line(f"answered without being asked: {attack}", outcome, counted is None)
        counted = answered(given)
        yield Line("none: an answer to the ask", f"answers ask {counted}", counted == ask["id"])
