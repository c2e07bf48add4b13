"""A worker as on a Mac: a real worker process around a fake engine on a Metal device."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fakes.mac_agent import become_a_mac

become_a_mac()

from tests.fakes.device_worker import device_self_test  # noqa: E402
from tests.fakes.engine import FakeClock, FakeEngine  # noqa: E402
from tests.fakes.quick_worker import RealTimeSession, without_data  # noqa: E402

from bench_agent.base.messages import FoundDevice  # noqa: E402
from bench_agent.worker import main as worker  # noqa: E402
from bench_protocol.catalogue.matrix import Cell  # noqa: E402
from bench_protocol.catalogue.workloads import Workload  # noqa: E402

ON_METAL = ("tensorflow", "mlx")


@dataclass
class MacEngine(FakeEngine):
    def devices(self) -> list[FoundDevice]:
        cpu = FoundDevice(kind="cpu", index=0, name="CPU")
        gpu = FoundDevice(kind="metal", index=0, name="Apple M5 Max")
        return [gpu, cpu] if self.name in ON_METAL else [cpu]

    def load(self, workload: Workload, cell: Cell) -> None:
        self.session.place = f"fake {'gpu' if cell.device.kind == 'metal' else 'cpu'}"
        super().load(workload, cell)


def main() -> int:
    clock = FakeClock()

    def named(framework: str) -> MacEngine:
        return MacEngine(clock, RealTimeSession(clock), name=framework)

    worker.engine_named = named  # type: ignore[assignment]
    worker.tested = lambda task, clock: device_self_test(task)
    without_data()
    return worker.main()


if __name__ == "__main__":
    sys.exit(main())
