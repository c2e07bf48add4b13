"""A process: what waiting does to its product, and a missing synchronisation to its steps."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from tests.fakes.engine import FakeClock, FakeEngine, FakeProducts, FakeSession

from bench_agent.engines.seam import Products
from bench_agent.worker import matrix_product, steps_after
from bench_protocol.catalogue.matrix import PRODUCTS

FLOPS = 200e9
WAIT_NS = 25_000_000


@dataclass
class WaitingProducts(FakeProducts):
    waits_ns: Iterator[int]

    def sync(self) -> None:
        super().sync()
        self.clock.now_ns += next(self.waits_ns)


class BusyEngine(FakeEngine):
    """A product waits for a core before it is done, in most calls."""

    def __init__(self, share_of_waits: float, flops: float = FLOPS) -> None:
        super().__init__(FakeClock(), FakeSession(FakeClock()))
        self._waits = np.random.default_rng(seed=3).random(1_000) < share_of_waits
        self._flops = flops

    def products(self, size: int) -> Products:
        product_ns = round(2e9 * size**3 / self._flops)
        waits_ns = (WAIT_NS * int(waits) for waits in self._waits)
        return WaitingProducts(self.clock, product_ns, waits_ns)

    @property
    def flops(self) -> float:
        product = matrix_product.fastest(self, "float32", self.clock.timed)
        return 2e9 * product.size**3 / product.duration_ns


@pytest.mark.parametrize("share_of_waits", [0.0, 0.5, 0.9, 1.0])
def test_waiting_for_a_core_hides_little_of_the_rate(share_of_waits: float) -> None:
    """At 256 rows the product takes 0.17 ms and the wait 25: a hundredth of the rate was left."""
    assert BusyEngine(share_of_waits).flops >= FLOPS / 4


@pytest.mark.parametrize("flops", [5e8, 5e9, 5e11, 5e13, 1e15])
def test_an_idle_device_shows_its_rate(flops: float) -> None:
    engine = BusyEngine(0.0, flops)
    assert engine.flops == pytest.approx(flops, rel=1e-3)
    assert engine.clock.now_ns <= 10e9


def test_the_number_format_is_that_of_the_cell() -> None:
    engine = BusyEngine(0.0)
    formats = {
        precision: matrix_product.fastest(engine, precision, engine.clock.timed).precision
        for precision in PRODUCTS
    }
    assert formats == PRODUCTS


class Lazy(FakeSession):
    def sync(self) -> None:
        pass

    def trained_parameters(self):  # type: ignore[no-untyped-def]
        super().sync()
        return super().trained_parameters()


def shown(kind: type[FakeSession]) -> tuple[float, FakeSession]:
    clock = FakeClock()
    session = kind(clock, weights=[np.ones(3, np.float32)])
    return steps_after.share_left(session, 25, clock.timed), session


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
