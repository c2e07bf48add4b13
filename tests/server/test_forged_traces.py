"""Forged results: copied, replayed and precomputed traces stay below trust level 3."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.fakes.client import Poster
from tests.fakes.forgeries import FORGERIES, OTHER_KEY, Scene
from tests.fakes.trusted import BEGAN

from bench_protocol.result import Result
from bench_server.db.store import Store


@pytest.fixture
def scene(post: Poster, store: Store) -> Scene:
    post.enroll(OTHER_KEY)
    return Scene(store)


def test_an_honest_result_reaches_level_3(scene: Scene) -> None:
    assert scene.level(scene.honest()) == 3


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forged_result_stays_below_level_3(
    scene: Scene, forge: Callable[[Scene], Result]
) -> None:
    assert scene.level(forge(scene)) < 3


def test_an_honest_result_after_its_challenge_ended_stays_below_level_3(scene: Scene) -> None:
    assert scene.level(scene.honest(), BEGAN + timedelta(days=2)) < 3
