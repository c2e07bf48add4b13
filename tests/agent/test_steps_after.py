"""Steps after the timing: what a missing synchronisation leaves, and a loop that trains no more."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.fakes.engine import FakeClock, FakeSession

from bench_agent.worker import steps_after


class Lazy(FakeSession):
    """``sync`` waits for nothing; reading the weights does."""

    def sync(self) -> None:
        pass

    def trained_parameters(self):  # type: ignore[no-untyped-def]
        super().sync()
        return super().trained_parameters()


class Stuck(FakeSession):
    """Trains nothing."""

    def trained_parameters(self):  # type: ignore[no-untyped-def]
        return iter(self.weights)


def shown(kind: type[FakeSession]) -> tuple[steps_after.StepsAfter, FakeSession]:
    clock = FakeClock()
    session = kind(clock, weights=[np.ones(3, np.float32)])

    def timed(action: Callable[[], object]) -> int:
        began = clock.now_ns
        action()
        return clock.now_ns - began

    return steps_after.train(session, timed), session


def test_an_honest_session_leaves_nothing_and_trains() -> None:
    after, session = shown(FakeSession)
    assert after == steps_after.StepsAfter(left=0.0, moved=True)
    assert after.right
    assert session.blocks == [1] * 5 + [25] * 5


@pytest.mark.parametrize("kind", [Lazy, Stuck])
def test_a_fault_is_seen(kind: type[FakeSession]) -> None:
    after, _ = shown(kind)
    assert not after.right
    assert after.moved == (kind is Lazy)
    assert after.left == pytest.approx(1.0 if kind is Lazy else 0.0, abs=0.1)


def test_a_long_step_is_trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_after, "LONG_ENOUGH_NS", 1)
    _, session = shown(FakeSession)
    assert session.blocks == [1]
