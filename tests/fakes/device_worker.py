"""A real worker process around a simulated device: ``device_worker.py FAULT ...``."""

import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fakes.device import DeviceEngine, Fault

from bench_agent.worker import main as worker


def main() -> int:
    fault, *arguments = sys.argv[1:]
    return work(fault, arguments)  # type: ignore[arg-type]


def work(fault: Fault, arguments: list[str]) -> int:
    """Be the worker of a simulated device."""
    engine = DeviceEngine(fault)
    worker.engine_named = lambda name: engine  # type: ignore[assignment]
    clock = SimpleNamespace(perf_counter_ns=lambda: engine.device.now_ns)
    worker.time = clock  # type: ignore[attr-defined]
    return worker.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
