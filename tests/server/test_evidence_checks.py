"""Checks of the evidence that a ranked result has, and of the window of its timed part."""

import itertools

import pytest
from tests.fakes import results
from tests.server.test_result_checks import with_pace
from tests.server.test_witness_checks import failed, level, verdicts, witness_with

from bench_protocol.payload.result import Failed, Result, Warn
from bench_server.checks.table import failure
from bench_server.projection.eligibility import eligibility

BEGAN_NS = 4_000_000_000


def test_a_failed_repeat_needs_no_evidence() -> None:
    measurement = results.make_measurement(results.make_cell())
    outcome = Failed(kind="crashed", phase="reading", measurement=measurement)
    verdict = verdicts(results.make_result(outcome=outcome))["evidence"]
    assert (verdict.passed, verdict.checked) == (True, False)


def test_a_seed_of_another_nonce_is_not_ranked() -> None:
    result = results.make_complete().model_copy(update={"seed": "1" * 32})
    assert failed(result)["evidence"] == "unranked"
    assert "a seed that follows from its nonce" in verdicts(result)["evidence"].sentence


@pytest.mark.parametrize("missing", ["witness", "window"])
def test_a_result_without_a_part_is_not_ranked(missing: str) -> None:
    result = results.make_complete(**{missing: None})
    assert failed(result) == {"evidence": "unranked", missing: "doubtful"}
    assert level(result) == 2


def test_a_reading_without_the_times_of_its_calls_is_not_ranked() -> None:
    """Its pace would not be known."""
    cell = results.make_cell()
    for number in range(3):
        told = witness_with(cell, {number: {"durations_ns": (10**6,) * 9}})
        result = results.make_complete(cell, witness=told)
        assert failed(result)["evidence"] == "unranked"
        assert "calls of its" in verdicts(result)["evidence"].sentence


# -- the pace: blocks are no faster than readings --------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "effect"),
    [
        (25.0, "unranked"),  # a sleep of the time that training takes
        (2.01, "unranked"),  # half of the steps, whose time is halved
        (1.6, "doubtful"),
        (1.29, None),
        (0.3, None),  # a busy machine: slower blocks make nobody faster
    ],
)
def test_blocks_are_no_faster_than_readings(ratio: float, effect: str | None) -> None:
    result = with_pace(ratio, workload="fashion-mlp")
    assert failed(result) == ({"pace": effect} if effect else {})
    counted = eligibility([*verdicts(result).values()], 0)
    assert (counted.rankable, counted.trust_level) == (effect != "unranked", 2 if effect else 3)


def test_one_slow_call_of_many_is_no_pace() -> None:
    """Such as one that compiles. Of a reading of one call the agent sends the fastest of three."""
    assert failed(with_pace(1.0, 40.0)) == {}


@pytest.mark.parametrize(("step_us", "checked"), [(10, False), (1_000, True)])
def test_calls_of_milliseconds_have_no_pace(step_us: int, checked: bool) -> None:
    """On a fast GPU the start of a call takes as long as its steps."""
    cell = results.make_cell("fashion-convnet", recipe="tuned")
    made = results.make_complete(cell, {"step_ns": step_us * 1_000})
    assert verdicts(made)["pace"].checked is checked


@pytest.mark.parametrize(
    ("framework", "recipe", "checked"),
    [
        ("tensorflow", "naive", False),
        ("tensorflow", "pipeline", False),
        ("tensorflow", "tuned", True),
        ("jax", "naive", True),
    ],
)
def test_an_epochs_end_of_fit_is_no_pace(framework: str, recipe: str, checked: bool) -> None:
    """A reading of mnist-cnn is one call over an epoch's end, where ``model.fit`` starts again."""
    cell = results.make_cell(framework=framework, recipe=recipe)
    blocks = results.make_measurement(cell).blocks.model_copy(update={"steps_per_block": 100})
    measured = results.make_measurement(cell, blocks=blocks)
    slow = tuple(
        one.model_copy(update={"durations_ns": (25 * one.durations_ns[0],)})
        for one in results.make_witness(cell, measured).readings
    )
    told = results.make_witness(cell, measured, readings=slow)
    verdict = verdicts(results.make_complete(cell, {"blocks": blocks}, witness=told))["pace"]
    assert (verdict.passed, verdict.checked) == (not checked, checked)
    assert verdict.passed or verdict.effect == "unranked"


# -- the parent's window: the blocks fill the time that the parent process saw --------------------


def filling(share: float, block_count: int = 10) -> Result:
    """100 s of blocks, which take this share of their window."""
    measured = {"step_ns": 10**10 // block_count, "block_count": block_count}
    blocks = results.make_measurement(results.make_cell(), **measured).blocks
    window = results.make_window(blocks, BEGAN_NS, share)
    made = results.make_complete(measured=measured, window=window)
    clocks = made.clocks.model_copy(update={"finished_ns": 400 * 10**9, "signed_ns": 400 * 10**9})
    return made.model_copy(update={"clocks": clocks})


@pytest.mark.parametrize(
    ("said", "effect", "shares"),
    [
        ("filled", "unranked", (0.996, 1.0, 1.005)),
        ("longer", "unranked", (0.4995, 0.96, 0.99)),
        ("shorter", "doubtful", (1.02, 1.9)),
        ("unseen", "unranked", (2.1, 1e6)),
    ],
)
def test_the_blocks_fill_the_time_that_the_parent_saw(
    said: str, effect: str, shares: tuple[float, ...]
) -> None:
    """Less time than passed makes a machine faster; longer blocks make nobody faster."""
    for share, block_count in itertools.product(shares, (2, 60)):
        result = filling(share, block_count)
        verdict, counted = verdicts(result)["window"], eligibility([*verdicts(result).values()], 0)
        assert (verdict.figures["verdict"], verdict.effect) == (said, effect)
        assert verdict.passed is (said == "filled")
        assert counted.rankable is (verdict.passed or effect == "doubtful")
        assert counted.trust_level == 3 - (not verdict.passed)


def test_a_load_that_the_agent_reports_explains_refused_times() -> None:
    """Not ranked either way, but too busy to measure in place of suspected."""
    cell = results.make_cell()
    blocks = results.make_measurement(cell, 10**7, 10).blocks
    long = blocks.model_copy(update={"durations_ns": (*(10**8,) * 9, 2 * 10**10)})
    uneven = results.make_complete(cell, {"blocks": long}, window=results.make_window(long))
    assert failed(uneven) == {"mean_over_median": "quarantined"}
    busy = (Warn(code="other_load", figures={"busy_cores": 1.5, "cores": 2.0}),)
    for suspected, check in ((filling(0.9), "window"), (uneven, "mean_over_median")):
        assert "too busy" not in verdicts(suspected)[check].sentence
        disturbed = suspected.model_copy(update={"warnings": busy})
        verdict = verdicts(disturbed)[check]
        assert (verdict.passed, verdict.effect) == (False, "unranked")
        assert verdict.sentence.startswith(
            "too busy to measure: other programs kept 1.5 of 2 cores busy; its block"
        )
        outcome = Failed(kind="too_busy", phase="timing", measurement=disturbed.measurement)
        assert failure(disturbed.model_copy(update={"outcome": outcome})) == verdict.sentence


def test_blocks_that_the_worker_did_not_report_are_not_ranked() -> None:
    """Nor are those of which a receipt is missing, nor a window outside of the repeat."""
    blocks = results.make_complete().outcome.measurement.blocks
    right = results.make_window(blocks)
    not_those = "not those that the worker reported"
    for window, says in (
        (right.model_copy(update={"blocks_agree": False}), not_those),
        (right.model_copy(update={"received_ns": right.received_ns[:-1]}), not_those),
        (results.make_window(blocks, 4_000_000_000_000), "outside of the repeat"),
    ):
        result = results.make_complete(window=window)
        assert failed(result) == {"window": "unranked"}
        assert says in verdicts(result)["window"].sentence
