"""The check of the parent's window: the blocks fill the time that the parent process saw."""

import pytest
from tests.fakes import results
from tests.fakes.seeding import invented_known, under_nonce

from bench_protocol.payload.result import Result
from bench_protocol.payload.witness import Window
from bench_server.checks import table as result_checks
from bench_server.checks.verdicts import CheckVerdict
from bench_server.projection.eligibility import Eligibility, eligibility

BEGAN_NS = 4_000_000_000


def verdicts(result: Result) -> list[CheckVerdict]:
    """Under a fresh challenge; what can be recomputed was."""
    bound = under_nonce(result)
    return list(result_checks.of_result(bound, invented_known(bound)))


def window_verdict(result: Result) -> CheckVerdict:
    return next(verdict for verdict in verdicts(result) if verdict.check == "window")


def counts(result: Result) -> Eligibility:
    return eligibility(verdicts(result), 0)


def seen(window_ns: int, began_ns: int = BEGAN_NS, *, blocks_agree: bool = True) -> Window:
    return Window(started_ns=began_ns, finished_ns=began_ns + window_ns, blocks_agree=blocks_agree)


def of_100_seconds(share: float) -> Result:
    """100 s of blocks, which take this share of their window: the slack of 0.1 s says little."""
    window = seen(round(100 * 10**9 / share))
    made = results.make_complete(measured={"step_ns": 10**9, "block_count": 10}, window=window)
    clocks = made.clocks.model_copy(update={"finished_ns": 400 * 10**9, "signed_ns": 400 * 10**9})
    return made.model_copy(update={"clocks": clocks})


@pytest.mark.parametrize("share", [0.955, 0.9960, 1.005])
def test_the_blocks_fill_the_time_that_the_parent_saw(share: float) -> None:
    verdict = window_verdict(of_100_seconds(share))
    assert verdict.passed
    assert verdict.figures["verdict"] == "filled"


@pytest.mark.parametrize("share", [0.4995, 0.94])
def test_blocks_that_claim_less_time_than_passed_are_not_ranked(share: float) -> None:
    verdict = window_verdict(of_100_seconds(share))
    assert (verdict.passed, verdict.effect) == (False, "unranked")
    assert verdict.figures["verdict"] == "longer"
    assert not counts(of_100_seconds(share)).rankable


@pytest.mark.parametrize("share", [1.02, 1.9])
def test_a_window_shorter_than_its_blocks_is_a_doubt(share: float) -> None:
    """The parent process received late that timing began: longer blocks make nobody faster."""
    verdict = window_verdict(of_100_seconds(share))
    assert (verdict.passed, verdict.effect) == (False, "doubtful")
    assert verdict.figures["verdict"] == "shorter"
    assert (counts(of_100_seconds(share)).rankable, counts(of_100_seconds(share)).trust_level) == (
        True,
        2,
    )


@pytest.mark.parametrize("share", [2.1, 1e6])
def test_blocks_that_the_parent_hardly_saw_are_not_ranked(share: float) -> None:
    """Canned blocks take no time: the parent receives all of them at once."""
    verdict = window_verdict(of_100_seconds(share))
    assert (verdict.passed, verdict.effect) == (False, "unranked")
    assert verdict.figures["verdict"] == "unseen"
    assert not counts(of_100_seconds(share)).rankable


@pytest.mark.parametrize(
    ("late_ms", "said"), [(-110, "shorter"), (-90, "filled"), (90, "filled"), (170, "longer")]
)
def test_a_message_may_be_late(late_ms: int, said: str) -> None:
    """A second of blocks."""
    made = {"step_ns": 10**7, "block_count": 10}
    blocks_ns = results.make_measurement(results.make_cell(), **made).blocks.total_ns
    window = seen(blocks_ns + late_ms * 1_000_000)
    verdict = window_verdict(results.make_complete(measured=made, window=window))
    assert verdict.figures["verdict"] == said


@pytest.mark.parametrize(
    ("window_ms", "said"),
    [(360, "filled"), (375, "longer"), (400, "longer")],
)
def test_a_short_window_has_little_slack(window_ms: int, said: str) -> None:
    """0.3 s of blocks: 0.1 s of slack would let them claim a third more speed."""
    made = {"step_ns": 3 * 10**6, "block_count": 10}
    assert results.make_measurement(results.make_cell(), **made).blocks.total_ns == 300_000_000
    verdict = window_verdict(results.make_complete(measured=made, window=seen(window_ms * 10**6)))
    assert verdict.figures["verdict"] == said
    assert verdict.passed == (said == "filled")


@pytest.mark.parametrize("window_ns", [1, 120_000_000, 10**10])
def test_blocks_that_the_worker_did_not_report_are_not_ranked(window_ns: int) -> None:
    """Whatever the window's length."""
    made_up = results.make_complete(window=seen(window_ns, blocks_agree=False))
    verdict = window_verdict(made_up)
    assert (verdict.passed, verdict.effect) == (False, "unranked")
    assert "not those that the worker reported" in verdict.sentence


def test_a_window_outside_of_the_repeat_is_not_ranked() -> None:
    outside = results.make_complete(window=seen(120_000_000, 4_000_000_000_000))
    assert {one.check: one.effect for one in verdicts(outside) if not one.passed} == {
        "window": "unranked"
    }
    assert "outside of the repeat" in window_verdict(outside).sentence
