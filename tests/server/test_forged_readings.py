"""Forged results: invented, replayed, copied and precomputed readings stay below trust level 3."""

from datetime import timedelta

import pytest
from tests.fakes.client import Poster
from tests.fakes.forgeries import OTHER_KEY, WAYS, Forgery, Scene, betrayed
from tests.fakes.trusted import BEGAN

from bench_protocol.training import reading
from bench_server.db.store import Store

# One way of each kind; `make audit` has them all, and its test is in tests/system/test_audit.py.
FIRST = [forgeries[0] for forgeries in WAYS.values()]


@pytest.fixture
def scene(post: Poster, store: Store, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(reading, "SECONDS", 0.1)
    post.enroll(OTHER_KEY)
    return Scene(store)


def test_an_honest_result_reaches_level_3_unless_its_challenge_ended(scene: Scene) -> None:
    assert scene.level(scene.honest()) == 3
    assert scene.level(scene.honest(), BEGAN + timedelta(days=2)) < 3


@pytest.mark.parametrize("forge", FIRST)
def test_a_forged_result_stays_below_level_3(scene: Scene, forge: Forgery) -> None:
    level, verdicts = scene.judged(forge(scene))
    assert level < 3
    assert betrayed(forge, verdicts), verdicts
