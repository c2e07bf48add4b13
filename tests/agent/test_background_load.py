"""Background load: processor time of all processes minus our own, per second."""

import os
import subprocess
import sys

from bench_agent.run.background_load import BackgroundLoad, ProcessorTime, read_used


def test_others_are_everyone_but_us() -> None:
    readings = iter([ProcessorTime(10.0, 500.0, 30.0), ProcessorTime(20.0, 516.0, 41.0)])
    with BackgroundLoad(lambda: next(readings)) as others:
        pass
    assert others.busy_cores == 0.5


def test_counters_that_lag_give_no_negative_load() -> None:
    readings = iter([ProcessorTime(10.0, 500.0, 30.0), ProcessorTime(20.0, 505.0, 36.0)])
    with BackgroundLoad(lambda: next(readings)) as others:
        pass
    assert others.busy_cores == 0


def test_a_child_that_was_waited_for_is_ours() -> None:
    before = read_used()
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    after = read_used()
    assert after.ours - before.ours >= 0.3
    tick = 2 / os.sysconf("SC_CLK_TCK")
    assert after.everyone - before.everyone >= 0.3 - tick
