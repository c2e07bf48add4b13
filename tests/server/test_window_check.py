"""The check of the parent's window: the blocks fill the time that the parent process saw."""

import pytest
from tests.fakes import results
from tests.fakes.seeding import invented_known, under_nonce

from bench_protocol.payload.result import Result
from bench_protocol.payload.witness import Window
from bench_server.checks import table as result_checks
from bench_server.checks.verdicts import CheckVerdict
from bench_server.projection.eligibility import eligibility

BEGAN_NS = 4_000_000_000


def verdicts(result: Result) -> list[CheckVerdict]:
    """Under a fresh challenge; what can be recomputed was."""
    bound = under_nonce(result)
    return list(result_checks.of_result(bound, invented_known(bound)))


def window_verdict(result: Result) -> CheckVerdict:
    return next(verdict for verdict in verdicts(result) if verdict.check == "window")


def seen(window_ns: int, began_ns: int = BEGAN_NS, *, blocks_agree: bool = True) -> Window:
    return Window(started_ns=began_ns, finished_ns=began_ns + window_ns, blocks_agree=blocks_agree)


def of_100_seconds(share: float) -> Result:
    """100 s of blocks, which take this share of their window: the slack of 0.1 s says little."""
    window = seen(round(100 * 10**9 / share))
    made = results.make_complete(measured={"step_ns": 10**9, "block_count": 10}, window=window)
    clocks = made.clocks.model_copy(update={"finished_ns": 400 * 10**9, "signed_ns": 400 * 10**9})
    return made.model_copy(update={"clocks": clocks})


@pytest.mark.parametrize(
    ("said", "effect", "shares"),
    [
        ("filled", "unranked", (0.955, 0.9960, 1.005)),
        ("longer", "unranked", (0.4995, 0.94)),
        ("shorter", "doubtful", (1.02, 1.9)),
        ("unseen", "unranked", (2.1, 1e6)),
    ],
)
def test_the_blocks_fill_the_time_that_the_parent_saw(
    said: str, effect: str, shares: tuple[float, ...]
) -> None:
    """Blocks that claim less time than passed make a machine faster; longer ones make nobody
    faster. Canned blocks take no time: the parent receives all of them at once."""
    for share in shares:
        result = of_100_seconds(share)
        verdict, counted = window_verdict(result), eligibility(verdicts(result), 0)
        assert (verdict.figures["verdict"], verdict.effect) == (said, effect)
        assert verdict.passed is (said == "filled")
        assert counted.rankable is (verdict.passed or effect == "doubtful")
        assert counted.trust_level == 3 - (not verdict.passed)


@pytest.mark.parametrize(
    ("blocks_ms", "window_ms", "said"),
    [
        *((1_000, 890, "shorter"), (1_000, 910, "filled"), (1_000, 1_090, "filled")),
        *((1_000, 1_170, "longer"), (300, 360, "filled"), (300, 375, "longer")),
    ],
)
def test_a_message_may_be_late(blocks_ms: int, window_ms: int, said: str) -> None:
    """Short windows have less slack: 0.1 s of 0.3 s would let them claim a third more speed."""
    made = {"step_ns": blocks_ms * 10_000, "block_count": 10}
    assert (
        results.make_measurement(results.make_cell(), **made).blocks.total_ns == blocks_ms * 10**6
    )
    verdict = window_verdict(results.make_complete(measured=made, window=seen(window_ms * 10**6)))
    assert (verdict.figures["verdict"], verdict.passed) == (said, said == "filled")


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
