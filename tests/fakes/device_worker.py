"""A real worker process around a simulated device: ``device_worker.py FAULT ...``."""

import sys
from types import SimpleNamespace

from tests.fakes.device import DeviceEngine

from bench_agent.worker import main as worker


def main() -> int:
    fault, *arguments = sys.argv[1:]
    engine = DeviceEngine(fault)  # type: ignore[arg-type]
    worker.engine_named = lambda name: engine  # type: ignore[assignment]
    clock = SimpleNamespace(perf_counter_ns=lambda: engine.device.now_ns)
    worker.time = clock  # type: ignore[attr-defined]
    return worker.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
