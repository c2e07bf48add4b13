"""A worker in this process, with an engine that trains nothing."""

import pytest
from tests.fakes.engine import FakeClock, FakeEngine, FakeSession

from bench_agent.worker import main as worker


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    clock = FakeClock()
    fake = FakeEngine(clock, FakeSession(clock))
    monkeypatch.setattr(worker, "engine_named", lambda name: fake)
    return fake
