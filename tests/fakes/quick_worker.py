"""A real worker process around a fake engine, so that a repeat takes milliseconds of training."""

import sys
import time

import numpy as np
from tests.fakes.engine import FakeClock, FakeEngine, FakeSession

from bench_agent.worker import main as worker
from bench_agent.worker.repeat import seeded


class RealTimeSession(FakeSession):
    """Computes nothing, a tenth of a millisecond a step; the real clock times it."""

    def train_block(self, steps: int) -> None:
        self.blocks.append(steps)
        time.sleep(steps / 10_000)


def without_data() -> None:
    seeded.generated_data = lambda data_set, part, samples=None, seed="": (  # type: ignore[assignment]
        np.zeros((1, *data_set.sample_shape), np.uint8),
        np.zeros(1, np.int32),
    )
    seeded.order = lambda count, *_: np.zeros(count, np.int32)  # type: ignore[assignment]


def main() -> int:
    clock = FakeClock()
    engine = FakeEngine(clock, RealTimeSession(clock))
    worker.engine_named = lambda name: engine  # type: ignore[assignment]
    without_data()
    return worker.main()


if __name__ == "__main__":
    sys.exit(main())
