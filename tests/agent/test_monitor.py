"""The monitor adds energy, warnings and clock checks to a worker's answer."""

import itertools
import math
from typing import Any

import pytest
from tests.fakes.results import make_cell, make_measurement

from bench_agent.base.messages import Answer, BlockDone, PhaseBegan
from bench_agent.run.monitor import Clocks, Monitor, of_clocks, read_clocks
from bench_agent.run.timed_part import TimedPart
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.readings import Conditions
from bench_protocol.payload.result import Blocks, Failed, Measured
from bench_protocol.payload.window import Window
from bench_protocol.payload.witness import LastBlock

AT = Clocks(wall=1_000.0, awake=50.0, asleep_too=60.0)


def later(wall: float, awake: float, asleep_too: float) -> Clocks:
    return Clocks(AT.wall + wall, AT.awake + awake, AT.asleep_too + asleep_too)


@pytest.mark.parametrize(
    ("ended", "codes"),
    [
        (later(10.0, 10.0, 10.0), []),
        (later(10.4, 10.0, 10.1), []),
        (later(3_610.0, 10.0, 3_610.0), ["slept"]),
        (later(70.0, 10.0, 10.0), ["clock_set"]),
        (later(-3_590.0, 10.0, 10.0), ["clock_set"]),
        (later(10.0, 10.0, 3_610.0), ["slept", "clock_set"]),
    ],
)
def test_sleep_and_a_clock_that_was_set_are_told_apart(ended: Clocks, codes: list[str]) -> None:
    assert [doubt.code for doubt in of_clocks(AT, ended)] == codes


def test_the_clocks_of_this_machine_agree() -> None:
    began, ended = read_clocks(), read_clocks()
    assert of_clocks(began, ended) == []
    assert ended.awake >= began.awake
    assert math.isfinite(began.asleep_too)


def watched(answer: Answer, **clocks: Any) -> Answer:
    readings = iter((AT, later(**clocks)))
    cpu = Device(kind="cpu")
    with Monitor(cpu, Conditions(), 2, lambda: 0, read=lambda: next(readings)) as seen:
        pass
    return seen.seen_with(answer)


def test_a_measurement_after_a_sleep_keeps_its_figures_but_has_no_energy() -> None:
    measurement = make_measurement(make_cell())
    answer = Answer(outcome=Measured(measurement=measurement), environment=None)
    seen = watched(answer, wall=3_610.0, awake=10.0, asleep_too=3_610.0)
    assert isinstance(seen.outcome, Measured)
    assert seen.outcome.measurement.blocks == measurement.blocks
    assert seen.outcome.measurement.energy.reason == "the machine slept in between"
    (slept,) = [doubt for doubt in seen.warnings if doubt.code == "slept"]
    assert slept.figures == {"seconds": 3_600.0}


def test_a_failure_keeps_its_kind_and_gets_the_doubts() -> None:
    failed = Answer(outcome=Failed(kind="crashed", phase="timing"), environment=None)
    seen = watched(failed, wall=70.0, awake=10.0, asleep_too=10.0)
    assert seen.outcome == failed.outcome
    assert "clock_set" in [doubt.code for doubt in seen.warnings]


def blocks_of(*durations_ns: int, last: LastBlock | None = None) -> Blocks:
    fields = {"steps_per_block": 4, "stop_reason": "epochs", "warm_up_steps": 0, "warm_up_ns": 0}
    return Blocks(durations_ns=durations_ns, last_block=last, **fields)


def window_of(blocks: Blocks, *reported: tuple[int, int]) -> Window | None:
    clock = iter(range(5_000_000_000, 100_000_000_000, 1_000_000_000))
    window = TimedPart(Device(kind="cpu"), lambda: next(clock))
    window.heard(PhaseBegan(phase="warm_up"))
    window.heard(PhaseBegan(phase="timing"))
    for steps, duration_ns in reported:
        window.heard(BlockDone(duration_ns=duration_ns, steps=steps, share_done=0.5))
    window.heard(PhaseBegan(phase="reading"))
    return window.window(blocks)


def test_the_window_is_from_the_begin_of_timing_to_the_last_block() -> None:
    seen = window_of(blocks_of(10, 20, 30), (4, 10), (4, 20), (4, 30))
    assert seen == Window(
        received_ns=(5_000_000_000, 6_000_000_000, 7_000_000_000, 8_000_000_000), blocks_agree=True
    )
    last = blocks_of(10, last=LastBlock(steps=3, duration_ns=7))
    assert (window_of(last, (4, 10), (3, 7)) or seen).blocks_agree is True


@pytest.mark.parametrize(
    "blocks",
    [
        blocks_of(10, 20),  # one left out
        blocks_of(10, 10, 10),  # all like the fastest
        blocks_of(5, 10, 15),  # halved
        blocks_of(20, 10, 30),  # in another order
        blocks_of(10, 20, 30).model_copy(update={"steps_per_block": 8}),
        blocks_of(10, 20, last=LastBlock(steps=4, duration_ns=31)),
    ],
)
def test_blocks_that_were_not_reported_so_do_not_agree(blocks: Blocks) -> None:
    seen = window_of(blocks, (4, 10), (4, 20), (4, 30))
    assert seen is not None
    assert seen.blocks_agree is False


def test_without_a_block_there_is_no_window() -> None:
    assert window_of(blocks_of(10)) is None


def test_the_parent_adds_its_window() -> None:
    blocks = blocks_of(10, 20)
    measurement = make_measurement(make_cell(), blocks=blocks)
    ticks = itertools.count(1_000)
    clocks = iter((AT, later(10.0, 10.0, 10.0)))
    cpu = Device(kind="cpu")
    with Monitor(cpu, Conditions(), 2, lambda: next(ticks), read=lambda: next(clocks)) as watch:
        watch.heard(PhaseBegan(phase="timing"))
        for duration_ns in blocks.durations_ns:
            watch.heard(BlockDone(duration_ns=duration_ns, steps=4, share_done=0.5))
    answer = Answer(outcome=Measured(measurement=measurement), environment=None)
    seen = watch.seen_with(answer).outcome.measurement
    assert seen is not None
    assert seen.window is not None
    assert seen.window.blocks_agree
    assert seen.window.finished_ns > seen.window.started_ns
