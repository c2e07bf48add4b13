"""Steps after the timing: what a missing synchronisation leaves."""

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


def shown(kind: type[FakeSession]) -> tuple[float, FakeSession]:
    clock = FakeClock()
    session = kind(clock, weights=[np.ones(3, np.float32)])

    def timed(action: Callable[[], object]) -> int:
        began = clock.now_ns
        action()
        return clock.now_ns - began

    return steps_after.share_left(session, 25, timed), session


def test_an_honest_session_leaves_nothing() -> None:
    left, session = shown(FakeSession)
    assert left == 0
    assert session.blocks == [25] * 5


def test_a_missing_synchronisation_is_seen() -> None:
    left, _ = shown(Lazy)
    assert left == pytest.approx(1.0, abs=0.1)
    assert left > steps_after.MOST_LEFT


def test_one_preempted_reading_is_no_missing_synchronisation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen where another program began beside a session whose calls are long."""

    class Preempted(FakeSession):
        def trained_parameters(self):  # type: ignore[no-untyped-def]
            if not self.readings:
                self.clock.now_ns += 200_000_000
            self.readings += 1
            return super().trained_parameters()

    monkeypatch.setattr(steps_after, "LONG_ENOUGH_NS", 1)
    left, session = shown(Preempted)
    assert left < steps_after.MOST_LEFT
    assert session.blocks == [25] * 3


def test_a_long_call_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_after, "LONG_ENOUGH_NS", 1)
    _, session = shown(FakeSession)
    assert session.blocks == [25]
