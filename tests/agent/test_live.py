"""Output of a run: live table, plain lines."""

import io
from typing import Any

import pytest
from rich.console import Console
from tests.fakes.results import make_cell, make_failure, make_result

from bench_agent.base.messages import BlockDone, PhaseBegan, Timing
from bench_agent.output.documents import short_name
from bench_agent.output.live import LiveDisplay, Progress, view
from bench_agent.plan.plan import Plan, PlannedCell
from bench_agent.plan.presets import PRESETS
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.payload.result import Warn

NAIVE = PlannedCell(
    cell=make_cell(), workload=workload_named("mnist-cnn"), timing=Timing(), estimate_seconds=20.0
)
TUNED = NAIVE.model_copy(update={"cell": make_cell(recipe="tuned"), "estimate_seconds": 40.0})
PLAN = Plan(PRESETS["quick"], (NAIVE, TUNED), (), 1)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def a_run(reporter: Any, clock: Clock | None = None) -> None:
    reporter.planned(PLAN, [NAIVE, TUNED])
    reporter.started(1, NAIVE)
    reporter.heard(PhaseBegan(phase="timing"))
    reporter.sensed({"load_average": 1.5, "gpu_temperature_celsius": None})
    reporter.heard(BlockDone(duration_ns=200_000_000, steps=20, share_done=0.25))
    if clock:
        clock.now += 30
    doubts = (Warn(code="other_load", figures={"busy_cores": 0.9, "cores": 2.0}),)
    reporter.finished(make_result(cell=NAIVE.cell, warnings=doubts))
    reporter.started(1, TUNED)
    reporter.finished(make_failure(cell=TUNED.cell))


def test_plain_lines_where_there_is_no_terminal() -> None:
    stream, clock = io.StringIO(), Clock()
    with LiveDisplay(Console(file=stream, width=60), clock) as display:
        a_run(display, clock)
    # 30 s for an estimate of 20, and the plan's estimate weighted by a minute: 40 * 90 / 80.
    assert stream.getvalue().splitlines() == [
        "2 measurements, about 1 min 0 s",
        f"[1/2] {short_name(NAIVE.cell)}: 64,000 samples/s (other load); about 45 s left",
        f"[2/2] {short_name(TUNED.cell)}: crashed while timing (RuntimeError)",
    ]


def shown(state: Progress, now: float) -> str:
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(view(state, now))
    return console.export_text()


def test_the_live_table_shows_run_repeat_and_machine() -> None:
    state = Progress(total=24, estimate_seconds=600, began=0, count=7, estimate_done=150)
    state.current, state.doing, state.share_done, state.rate = NAIVE, "timing", 0.5, 7672
    state.reading = {
        "load_average": 2.04,
        "gpu_temperature_celsius": 61.0,
        "gpu_power_watts": 245.0,
    }
    text = shown(state, now=160)
    assert "6 of 24 done, 2 min 40 s gone, about 7 min 20 s left" in text
    assert short_name(NAIVE.cell) in text
    assert "timing 50 %, 7,672 samples/s" in text
    assert "load 2.0, GPU 61 °C, GPU 245 W" in text


def test_share_and_rate_are_those_of_the_timing_alone() -> None:
    clock = Clock()
    display = LiveDisplay(Console(file=io.StringIO()), clock)
    display.planned(PLAN, [NAIVE, TUNED])
    display.started(1, NAIVE)
    display.heard(PhaseBegan(phase="timing"))
    display.heard(BlockDone(duration_ns=200_000_000, steps=20, share_done=1.0))
    assert display._state is not None
    timing = shown(display._state, clock.now)
    assert "timing 100 %, 6,400 samples/s" in timing
    display.heard(PhaseBegan(phase="reading"))
    clock.now += 72
    last = shown(display._state, clock.now)
    assert "training again for the server's check, 1 min 12 s" in last
    assert "samples/s" not in last
    assert "%" not in last
    bars = [line.count("━") for text in (timing, last) for line in text.splitlines()[1:2]]
    assert bars == [20, 0]
    assert "0 of 2 done" in last
    assert display._state.share_done == 1.0
    display.heard(PhaseBegan(phase="import"))  # it is measured again
    assert display._state.share_done == 0.0


def test_what_is_not_known_yet_is_not_shown() -> None:
    text = shown(Progress(total=2, estimate_seconds=60, began=0), now=0)
    assert "0 of 2 done, 0 s gone, about 1 min 0 s left" in text
    assert "machine" not in text
    assert "now" not in text


@pytest.mark.parametrize(
    ("seconds_gone", "left"), [(150, 450), (300, 450 * 360 / 210), (75, 450 * 135 / 210)]
)
def test_time_left_follows_how_the_estimate_held(seconds_gone: float, left: float) -> None:
    state = Progress(total=4, estimate_seconds=600, began=0, estimate_done=150)
    assert state.left_seconds(seconds_gone) == pytest.approx(left)


def test_repeats_measured_before_count_as_gone_but_not_as_pace() -> None:
    clock, stream = Clock(), io.StringIO()
    with LiveDisplay(Console(file=stream), clock) as display:
        display.planned(PLAN, [TUNED])
        display.skipped(NAIVE)
        display.started(1, TUNED)
        assert display._state is not None
        assert display._state.left_seconds(clock.now) == pytest.approx(40.0)
    assert stream.getvalue().splitlines() == ["1 of 2 measurements left, about 40 s"]


def test_a_terminal_gets_the_live_table_and_the_lines() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120)
    with LiveDisplay(console) as display:
        a_run(display)
    assert "[1/2] " in stream.getvalue()
    assert "64,000 samples/s (other load)" in stream.getvalue()
    assert "gone, about" in stream.getvalue()
