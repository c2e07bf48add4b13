"""The monitor adds energy, warnings and clock checks to a worker's answer."""

import math
from typing import Any

import pytest
from tests.fakes.results import make_cell, make_measurement

from bench_agent.base.messages import Answer
from bench_agent.run.monitor import Clocks, Monitor, of_clocks, read_clocks
from bench_protocol.matrix import Device
from bench_protocol.result import Conditions, Failed, Measured

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
    warnings = of_clocks(AT, ended)
    assert [doubt.code for doubt in warnings] == codes


def test_the_clocks_of_this_machine_agree() -> None:
    began, ended = read_clocks(), read_clocks()
    assert of_clocks(began, ended) == []
    assert ended.awake >= began.awake
    assert math.isfinite(began.asleep_too)


def watched(answer: Answer, **clocks: Any) -> Answer:
    readings = iter((AT, later(**clocks)))
    with Monitor(
        Device(kind="cpu"), Conditions(), 2, lambda: 0, read=lambda: next(readings)
    ) as seen:
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


def test_energy_without_a_counter_says_why() -> None:
    answer = Answer(outcome=Measured(measurement=make_measurement(make_cell())), environment=None)
    seen = watched(answer, wall=10.0, awake=10.0, asleep_too=10.0)
    assert isinstance(seen.outcome, Measured)
    assert seen.outcome.measurement.energy.source == "none"
    assert seen.outcome.measurement.energy.reason not in (None, "not measured")
