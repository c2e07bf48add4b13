"""Background load: processor time of all processes minus our own, per second."""

import os
import subprocess
import sys

import pytest

from bench_agent.run.monitor import ProcessorTime, busy_cores, read_used


@pytest.mark.parametrize(
    ("everyone", "ours", "cores"),
    [(516.0, 41.0, 0.5), (505.0, 36.0, 0.0)],  # counters that lag give no negative load
)
def test_others_are_everyone_but_us(everyone: float, ours: float, cores: float) -> None:
    began = ProcessorTime(10.0, 500.0, 30.0)
    assert busy_cores(began, ProcessorTime(20.0, everyone, ours)) == cores


def test_a_child_that_was_waited_for_is_ours() -> None:
    before = read_used()
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    after = read_used()
    assert after.ours - before.ours >= 0.3
    tick = 2 / os.sysconf("SC_CLK_TCK")
    assert after.everyone - before.everyone >= 0.3 - tick
