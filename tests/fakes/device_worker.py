"""A real worker process around a simulated device: ``device_worker.py FAULT ...``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fakes.device import DeviceEngine, Fault

from bench_agent.base.messages import SelfTestAnswer, SelfTestTask
from bench_agent.worker import main as worker

tested = worker.tested


def device_self_test(task: SelfTestTask, fault: Fault = "none") -> SelfTestAnswer:
    engine = DeviceEngine(fault)
    worker.engine_named = lambda name: engine  # type: ignore[assignment]
    return tested(task, lambda: engine.device.now_ns)


if __name__ == "__main__":
    fault, *arguments = sys.argv[1:]
    worker.tested = lambda task, clock: device_self_test(task, fault)  # type: ignore[arg-type]
    sys.exit(worker.main(arguments))
