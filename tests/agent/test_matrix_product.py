"""The matrix product of a process: its size, and what waiting for a core does to it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from tests.fakes.engine import FakeClock, FakeEngine, FakeProducts, FakeSession

from bench_agent.engines.seam import Products
from bench_agent.worker import matrix_product
from bench_protocol.catalogue.matrix import PRODUCTS

FLOPS = 200e9
WAIT_NS = 25_000_000


@dataclass
class WaitingProducts(FakeProducts):
    """Their synchronisation waits for a core as well."""

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

    def timed(self, action: Callable[[], object]) -> int:
        began_ns = self.clock.now_ns
        action()
        return self.clock.now_ns - began_ns

    @property
    def flops(self) -> float:
        product = matrix_product.fastest(self, "float32", self.timed)
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
        precision: matrix_product.fastest(engine, precision, engine.timed).precision
        for precision in PRODUCTS
    }
    assert formats == PRODUCTS
