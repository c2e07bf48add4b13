"""Doubts: each planted one is detected, a steady machine has none, and all have words."""

import random
from itertools import cycle, islice
from pathlib import Path
from typing import get_args

import pytest

from bench_protocol.payload import doubt_text, doubts
from bench_protocol.payload.readings import Conditions, Telemetry
from bench_protocol.payload.result import Blocks, Warn

MS = 1_000_000
STEADY = [200 * MS + n * MS // 10 for n in (3, -2, 5, 0, -4, 1, 2, -1, 4, -3, 0, 1)]


def blocks(durations: list[int]) -> Blocks:
    warm_up = {"warm_up_steps": 1, "warm_up_ns": 1}
    return Blocks(
        steps_per_block=10, durations_ns=tuple(durations), stop_reason="budget", **warm_up
    )


def codes(durations: list[int]) -> list[str]:
    return [warn.code for warn in doubts.of_blocks(blocks(durations))]


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        (STEADY, []),
        ([200 * MS] * 10, []),
        (STEADY[:9], ["few_blocks"]),
        ([200 * MS, 100 * MS], ["few_blocks"]),
        ([100 * MS, 100 * MS, 500 * MS, 600 * MS], ["few_blocks", "unsteady"]),
        ([*STEADY, 800 * MS], ["outliers"]),
        ([*STEADY * 2, 800 * MS], []),  # one in twenty-five moves no median
        ([260 * MS, *STEADY * 2], ["slow_first_blocks"]),
        ([200 * MS + n * 2 * MS for n in range(20)], ["drift"]),
        ([200 * MS - n * 2 * MS for n in range(20)], ["drift"]),
        ([200 * MS + n * MS // 10 for n in range(20)], []),  # a trend too small to matter
        (list(islice(cycle([200 * MS, 300 * MS]), 20)), ["unsteady"]),
    ],
)
def test_each_is_found_where_it_was_planted(durations: list[int], expected: list[str]) -> None:
    assert codes(durations) == expected


def test_noise_without_a_trend_is_seldom_called_drift() -> None:
    draw = random.Random(1)
    trials = 500
    noisy = ([round(200 * MS * draw.lognormvariate(0, 0.1)) for _ in range(30)] for _ in range(500))
    assert sum("drift" in codes(durations) for durations in noisy) <= 0.02 * trials


@pytest.mark.parametrize(
    ("bits", "throttled"),
    [
        ([0x1, 0x0, 0x2] * 5, False),  # idle, nothing, clocks set by an application
        ([0x4, *[0x0] * 19], False),
        ([0x4, 0x20, *[0x0] * 8], True),
        ([0x40], True),
        ([None, None], False),
        ([], False),
    ],
)
def test_throttling(bits: list[float | None], throttled: bool) -> None:
    assert bool(doubts.of_telemetry(telemetry_of("gpu_throttle_bits", *bits))) == throttled


def test_throttling_names_the_reasons() -> None:
    (warn,) = doubts.of_telemetry(telemetry_of("gpu_throttle_bits", 0x24, 0x41))
    assert warn.figures == {"share_of_samples": 1.0, "reason_bits": float(0x64)}


def telemetry_of(sensor: str, *values: float | None) -> Telemetry:
    return Telemetry(at_ns=tuple(range(len(values))), columns={sensor: values})


@pytest.mark.parametrize(
    ("warnings", "said"),
    [
        (doubts.of_other_load(0.19, 2), []),
        (doubts.of_other_load(0.9, 2), ["other programs kept 0.9 of 2 cores busy"]),
        (
            doubts.of_telemetry(telemetry_of("thermal_pressure_level", 0, 0, 1, 2, None)),
            ["the system reported heat in 50.0 % of the samples"],
        ),
        (doubts.of_telemetry(telemetry_of("thermal_pressure_level", 0, 0, None)), []),
        (
            doubts.of_telemetry(telemetry_of("cpu_throttle_count", None, 70, 70, 73)),
            ["heat slowed processor cores down 3 times"],
        ),
        (doubts.of_telemetry(telemetry_of("cpu_throttle_count", 70, 70)), []),
        (doubts.of_telemetry(Telemetry()), []),
        (doubts.of_clocks(0.2, -0.9), []),
        (
            doubts.of_clocks(3_725.0, -90.0),
            [
                "the machine slept for 1 h 2 min during the repeat",
                "the wall clock was set back by 1 min 30 s during the repeat",
            ],
        ),
        (doubts.of_blocks(blocks(STEADY[:1])), ["only 1 block was timed"]),
    ],
)
def test_what_is_doubtful_is_said(warnings: list[Warn], said: list[str]) -> None:
    assert [doubt_text.words(warn) for warn in warnings] == said


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (Conditions(), []),
        (Conditions(cpu_utilisation_percent=9.9, thermal_pressure="nominal"), []),
        (
            Conditions(cpu_utilisation_percent=55, gpu_utilisation_percent=80, gpu_processes=2),
            [
                "the processor was 55 % busy and the GPU was 80 % busy and 2 other programs "
                "computed on the GPU before the start"
            ],
        ),
        (Conditions(thermal_pressure="heavy"), ["the machine was hot before the start"]),
        (
            Conditions(on_battery=True, low_power_mode=True),
            ["the machine ran on battery", "low-power mode was on"],
        ),
    ],
)
def test_the_state_before_the_start(before: Conditions, said: list[str]) -> None:
    assert [doubt_text.words(warn) for warn in doubts.of_conditions(before)] == said


def test_every_code_is_in_the_documents() -> None:
    docs = Path(__file__).parents[2] / "docs"
    protocol, methodology = ((docs / f"{n}.md").read_text() for n in ("protocol", "methodology"))
    for code in get_args(doubts.Code):
        assert f"`{code}`" in protocol
        assert f"| {code.replace('_', ' ')} |" in methodology


def test_every_code_can_be_said() -> None:
    assert set(doubt_text.WORDS) == set(get_args(doubts.Code))
    (drift,) = doubts.of_blocks(blocks([200 * MS + n * 2 * MS for n in range(20)]))
    assert doubt_text.words(drift).endswith(" % slower during the timing")
    (outliers,) = doubts.of_blocks(blocks([*STEADY, 800 * MS]))
    far = "1 of 13 blocks lies far from the others, the farthest"
    assert doubt_text.words(outliers).startswith(far)


@pytest.mark.parametrize(
    ("code", "figures", "words"),
    [
        ("gemm_failed", {"exception_class": "X"}, "gemm failed (exception class X)"),
        ("drift", {}, "drift"),
        ("drift", {"change": "much"}, "drift (change much)"),
    ],
)
def test_unknown_doubts_are_spelt_out(code: str, figures: dict[str, str], words: str) -> None:
    assert doubt_text.words(Warn(code=code, figures=figures)) == words


@pytest.mark.parametrize(
    ("code", "harmless", "worse"),
    [
        ("few_blocks", {"blocks": 9}, {"blocks": 1}),
        ("outliers", {"worst_over_median": 0.9}, {"worst_over_median": 1.6}),
        ("outliers", {"worst_over_median": 2.04}, {"worst_over_median": 0.108}),
        ("drift", {"change": 0.06}, {"change": -0.3}),
        ("not_idle", {"cpu_percent": 12}, {"cpu_percent": 11, "gpu_percent": 90}),
        ("clock_set", {"seconds": 2}, {"seconds": -60}),
        ("unsteady", {"spread": 0.21}, {"spread": 0.6}),
        ("unsteady", {"of_another_version": 9}, {"spread": 0.6}),
        ("unheard_of", {}, {}),
    ],
)
def test_which_doubt_is_the_worse(
    code: str, harmless: dict[str, float], worse: dict[str, float]
) -> None:
    first, second = (Warn(code=code, figures=figures) for figures in (harmless, worse))
    assert (doubt_text.weight(first) < doubt_text.weight(second)) == bool(worse)


@pytest.mark.parametrize("code", doubt_text.WEIGHTS)
def test_a_doubt_without_its_figures_weighs_nothing(code: str) -> None:
    assert doubt_text.weight(Warn(code=code)) == 0


def test_all_that_can_be_worse_has_a_weight() -> None:
    no_figure_of_how_much = {"hot", "on_battery", "low_power_mode"}
    assert set(doubt_text.WEIGHTS) == set(get_args(doubts.Code)) - no_figure_of_how_much
