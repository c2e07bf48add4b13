"""Checks: contradictions keep a result out of every ranking, with a reason, and nothing else."""

from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.client import Poster

from bench_protocol.catalogue import workload_named
from bench_protocol.matrix import Device
from bench_protocol.result import Blocks, Clocks, Placement, Result
from bench_server import checks


def measured_with(**overrides: Any) -> Result:
    cell = results.make_cell()
    return results.make_result(cell=cell, measurement=results.make_measurement(cell, **overrides))


def blocks(*durations_ns: int) -> Blocks:
    return Blocks(
        steps_per_block=10,
        durations_ns=durations_ns,
        stop_reason="budget",
        warm_up_steps=0,
        warm_up_ns=0,
    )


SHORT_CLOCKS = Clocks(
    run_started=results.AT,
    started=results.AT,
    finished=results.AT,
    started_ns=0,
    finished_ns=10**9,
    signed=results.AT,
    signed_ns=10**9,
)
GPU = Device(kind="cuda")
CONTRADICTIONS = {
    "parameter_count": lambda: measured_with(parameter_count=77),
    "finite_loss": lambda: measured_with(last_loss=None),
    "placement": lambda: measured_with(placement=Placement(reported="/CPU:0", matches=False)),
    "device_listed": lambda: results.make_result(cell=results.make_cell(device=GPU)),
    "batch_fits": lambda: results.make_result(cell=results.make_cell(batch_size=60_001)),
    "times_fit": lambda: results.make_result(clocks=SHORT_CLOCKS),
    "possible_speed": lambda: measured_with(blocks=blocks(1, 1, 1)),
}


def test_a_plausible_result_passes_every_check() -> None:
    found = checks.verdicts(results.make_result(), workload_named("mnist-cnn"))
    assert len(found) == len(checks.CHECKS)
    assert all(verdict.passed for verdict in found)


def test_every_check_has_a_case() -> None:
    found = checks.verdicts(results.make_result(), workload_named("mnist-cnn"))
    assert {verdict.check for verdict in found} == set(CONTRADICTIONS)


@pytest.mark.parametrize("check", CONTRADICTIONS)
def test_a_contradiction_is_kept_and_not_ranked(post: Poster, check: str) -> None:
    result = CONTRADICTIONS[check]()
    identity = post(result)
    kept = post.http.get(f"/api/v1/results/{identity}").json()
    failed = {v["check"]: v["sentence"] for v in kept["verdicts"] if not v["passed"]}
    assert list(failed) == [check]
    assert not kept["rankable"]
    assert kept["unranked_reason"] == failed[check]
    board = post.http.get("/api/v1/leaderboard?batch_size=any").json()
    assert board["rows"] == []
    assert [row["reason"] for row in board["unranked"]] == [failed[check]]


def test_figures_at_the_limits_of_the_wire_are_kept(post: Poster) -> None:
    """The slowest block the wire can carry makes an epoch longer than 64 bits of nanoseconds."""
    cell = results.make_cell(batch_size=1)
    longest = blocks(2**53 - 1).model_copy(update={"steps_per_block": 1})
    result = results.make_result(
        cell=cell,
        measurement=results.make_measurement(cell, blocks=longest, parameter_count=2**53 - 1),
        clocks=SHORT_CLOCKS,
    )
    kept = post.http.get(f"/api/v1/results/{post(result)}").json()
    assert kept["epoch_ns"] == 2**63 - 1
    assert post.http.get(f"/results/{kept['id']}").status_code == 200


@pytest.mark.parametrize("kind", ["out_of_memory", "crashed", "wrong_result"])
def test_a_failure_says_what_failed(post: Poster, kind: str) -> None:
    post(results.make_failure(kind))
    (row,) = post.http.get("/api/v1/leaderboard").json()["unranked"]
    assert row["reason"] == f"{kind.replace('_', ' ')} during timing"
