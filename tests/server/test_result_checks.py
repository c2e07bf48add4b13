"""Result checks: only contradictions exclude a result from rankings, with a reason."""

import operator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.seeding import invented_for, recomputed_for, under_nonce

from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.result import Evaluation, Placement, Result
from bench_protocol.payload.window import Window
from bench_protocol.training.measured_limits import limits_of
from bench_server.checks import submission as submission_checks
from bench_server.checks import table as result_checks
from bench_server.checks import verdicts as check_verdicts
from bench_server.ingest import columns
from bench_server.projection import outliers
from bench_server.projection.outliers import NONE, OtherOwners


def measured_with(**overrides: Any) -> Result:
    cell = results.make_cell()
    return results.make_result(cell=cell, measurement=results.make_measurement(cell, **overrides))


NOW = datetime.fromisoformat(results.AT)
CELL = results.make_cell()
BLOCKS = results.make_measurement(CELL).blocks
SHORT_CLOCKS = results.clocks_of(NOW, 10**9)
EARLY = results.make_window(BLOCKS, 10**8)
# A list of blocks that the parent process did not see.
WINDOW = Window(received_ns=(4_000_000_000, 4_120_000_000), blocks_agree=False)


def with_pace(ratio: float, first: float | None = None, **cell: Any) -> Result:
    """Steps of readings take ``ratio`` times those of blocks; ``first``: each first call."""
    made = results.make_cell(**cell)
    readings = []
    for one in results.make_witness(made).readings:
        times = (first or ratio, *(ratio,) * (len(one.durations_ns) - 1))
        durations_ns = tuple(map(round, map(operator.mul, times, one.durations_ns)))
        readings.append(one.model_copy(update={"durations_ns": durations_ns}))
    return results.make_complete(made, witness=results.make_witness(made, readings=tuple(readings)))


GPU = Device(kind="cuda")
MNIST_GENERATED = limits_of(workload_named("mnist-cnn")).bands[1].data_digest
# Ten epochs of mnist-cnn, and no better than chance.
GUESSING = Evaluation(epochs=10, samples=10_000, loss=2.3, accuracy=0.1)
CONTRADICTIONS = {
    "parameter_count": lambda: measured_with(parameter_count=77),
    "finite_loss": lambda: measured_with(last_loss=None),
    "placement": lambda: measured_with(placement=Placement(reported="/CPU:0", matches=False)),
    "device_listed": lambda: results.make_result(cell=results.make_cell(device=GPU)),
    "consistent": lambda: results.make_result(machine=results.make_machine(wsl=True, rosetta=True)),
    "batch_fits": lambda: results.make_result(cell=results.make_cell(batch_size=60_001)),
    "times_fit": lambda: measured_with(window=EARLY).model_copy(update={"clocks": SHORT_CLOCKS}),
    "possible_speed": lambda: measured_with(
        blocks=BLOCKS.model_copy(update={"durations_ns": (1, 1, 1)})
    ),
    "evidence": lambda: results.make_result(witness=False),
    "data_digest": lambda: measured_with(data_digest="e" * 64),
    "accuracy": lambda: measured_with(data_digest=MNIST_GENERATED, evaluation=GUESSING),
    "window": lambda: results.make_complete(window=WINDOW),
    "steps": lambda: results.make_complete(witness=results.make_witness(CELL, step_count=140)),
    "witness": lambda: results.make_complete(witness=results.make_witness(CELL, start_loss=3.0)),
    "pace": lambda: with_pace(25.0),
}

# Checks that need more than the result itself have cases of their own below.
DOUBTS = {
    "below_peak",
    "challenge",
    "clocks",
    "energy",
    "falling_loss",
    "mean_over_median",
    "outlier",
    "own_product",
}


def verdicts_of(
    result: Result, others: OtherOwners = NONE, **arrival: Any
) -> dict[str, result_checks.CheckVerdict]:
    """Verdicts by check; bound to a fresh challenge unless the test says otherwise."""
    took = timedelta(microseconds=result.clocks.signed_ns / 1e3)
    fields = {"received_at": NOW + took, "challenge": "fresh", "issued_at": NOW} | arrival
    fresh = fields["challenge"] == "fresh"
    if fresh:
        result = under_nonce(result)
    of_result = result_checks.of_result(result, recomputed_for(result, invented_for), fresh)
    facts = submission_checks.SubmissionFacts(**fields)
    of_submission = submission_checks.of_submission(result, facts)
    rate = columns.of_result(result)["samples_per_second"]
    of_outlier = outliers.verdicts(outliers.finding(rate, others))
    return {verdict.check: verdict for verdict in (*of_result, *of_submission, *of_outlier)}


def timed(wall_seconds: float, monotonic_seconds: float) -> Result:
    """A result signed after these times since its challenge, by both of its clocks."""
    clocks = results.clocks_of(NOW, int(monotonic_seconds * 1e9))
    signed = results.utc_text(NOW + timedelta(seconds=wall_seconds))
    return results.make_result(clocks=clocks.model_copy(update={"signed": signed}))


def test_a_plausible_result_passes_every_check() -> None:
    result = timed(100, 100)
    passed = verdicts_of(result, received_at=NOW + timedelta(seconds=101))
    assert [v.check for v in passed.values() if not v.passed] == []
    assert (
        len(passed) == len(result_checks.CHECKS) + len(submission_checks.CHECKS) + 1
    )  # the outlier check


def test_verdicts_are_read_as_they_were_written() -> None:
    verdicts = result_checks.of_result(timed(100, 100))
    assert check_verdicts.from_text(check_verdicts.as_text(verdicts)) == verdicts
    assert check_verdicts.from_text(check_verdicts.as_text(())) == ()


def test_every_check_has_a_case() -> None:
    every = (*result_checks.CHECKS, *submission_checks.CHECKS)
    assert {name for name, _, _ in every} | {outliers.OUTLIER} == set(CONTRADICTIONS) | DOUBTS
    assert not set(CONTRADICTIONS) & DOUBTS


def test_every_check_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "protocol.md"
    section = page.read_text("utf-8").partition("## Checks")[2].partition("\n## ")[0]
    every = (*result_checks.CHECKS, *submission_checks.CHECKS, (outliers.OUTLIER,))
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert all(any(f"`{row[0]}`" in line.split("|")[1] for line in rows) for row in every)


@pytest.mark.parametrize("check", CONTRADICTIONS)
def test_a_contradiction_is_kept_and_not_ranked(post: Poster, check: str) -> None:
    identity = post.settled(CONTRADICTIONS[check]())
    stored = post.http.get(f"/api/v1/results/{identity}").json()
    failed = {
        v["check"]: v["sentence"]
        for v in stored["verdicts"]
        if not v["passed"] and v["effect"] == "unranked"
    }
    assert list(failed) == [check]
    assert not stored["ranked"]
    assert stored["unranked_reason"] == failed[check]
    board = post.http.get("/api/v1/leaderboard?batch_size=any&include=unranked").json()
    assert board["rows"] == []
    assert [row["reason"] for row in board["unranked"]] == [failed[check]]


@pytest.mark.parametrize(
    ("wall", "monotonic", "server", "agree", "says"),
    [
        (100, 100, 101, True, "all clocks agree"),
        (101.9, 100, 100.5, True, "all clocks agree"),
        (103, 100, 101, False, "slept"),
        (97, 100, 101, False, "clock was set"),
        (3_612, 100, 3_613, False, "slept"),
        (1_000, 1_009.9, 1_009, True, "all clocks agree"),
        (1_000, 1_010.2, 1_010, False, "clock was set"),
        (100, 100, 97, False, "the server saw 97.0"),
        (100, 100, 161, True, "all clocks agree"),
        (100, 100, 163, False, "it arrived 63 s after it was signed"),
        (100, 100, 90_000, False, "too late to compare"),
    ],
)
def test_clocks(wall: float, monotonic: float, server: float, agree: bool, says: str) -> None:
    verdict = verdicts_of(timed(wall, monotonic), received_at=NOW + timedelta(seconds=server))[
        "clocks"
    ]
    late = "after it was signed" in verdict.sentence
    assert (verdict.passed, verdict.effect) == (agree, "doubtful" if late else "stale")
    assert says in verdict.sentence


@pytest.mark.parametrize("state", ["none", "expired", "foreign"])
def test_without_a_fresh_challenge_nothing_shows_when_it_was_measured(state: str) -> None:
    verdicts = verdicts_of(results.make_result(), challenge=state, issued_at=None)
    assert not verdicts["challenge"].passed
    assert not verdicts["clocks"].passed
    assert {verdicts[name].effect for name in ("challenge", "clocks")} == {"stale"}


def test_figures_at_the_limits_of_the_wire_are_kept(post: Poster) -> None:
    """The slowest block the wire can carry makes an epoch longer than 64 bits of nanoseconds."""
    cell = results.make_cell(batch_size=1)
    longest = BLOCKS.model_copy(
        update={"durations_ns": (2**53 - 1,), "steps_per_block": 1, "warm_up_ns": 0}
    )
    result = results.make_result(
        cell=cell,
        measurement=results.make_measurement(cell, blocks=longest, parameter_count=2**53 - 1),
        clocks=SHORT_CLOCKS,
    )
    stored = post.http.get(f"/api/v1/results/{post(result)}").json()
    assert stored["epoch_seconds"] == (2**63 - 1) / 1e9
    assert post.http.get(f"/results/{stored['id']}").status_code == 200


def test_a_failure_says_what_failed(post: Poster) -> None:
    for kind in ("out of memory", "crashed", "wrong result"):
        failed = post(results.make_failure(kind.replace(" ", "_")))
        answer = post.http.get(f"/api/v1/results/{failed}").json()
        assert answer["unranked_reason"] == f"{kind} during timing"


def test_an_accuracy_that_no_band_is_known_for_passes_and_says_so() -> None:
    verdict = verdicts_of(measured_with(data_digest="e" * 64, evaluation=GUESSING))["accuracy"]
    assert (verdict.passed, verdict.checked) == (True, False)
    assert verdict.figures == {"verdict": "accuracy_unchecked"}
    assert "no accuracy band was measured for these data" in verdict.sentence
