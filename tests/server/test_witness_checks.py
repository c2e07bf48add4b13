"""Checks of the timed session: its witness and its steps."""

import math
from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.client import Poster
from tests.fakes.seeding import invented_for, recomputed_for, under_nonce

from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.matrix import Cell, Device
from bench_protocol.payload.result import Result
from bench_protocol.payload.witness import Witness
from bench_protocol.training import recomputation
from bench_server.checks import table as result_checks
from bench_server.checks.verdicts import CheckVerdict
from bench_server.projection.eligibility import eligibility

pytestmark = pytest.mark.sqlite
DROPOUT = "fashion-cnn"
CELLS = [
    results.make_cell(workload.name, batch_size=size)
    for workload in CATALOGUE
    for size in sorted({workload.batch_size, *workload.batch_sizes})
]


def verdicts(result: Result) -> dict[str, CheckVerdict]:
    result = under_nonce(result)
    known = recomputed_for(result, invented_for)
    return {verdict.check: verdict for verdict in result_checks.of_result(result, known)}


def level(result: Result) -> int:
    return eligibility(list(verdicts(result).values()), 0).trust_level


def witness_with(cell: Cell, changed: dict[int, dict[str, Any]], **changes: Any) -> Witness:
    told = results.make_witness(cell, **changes)
    readings = list(told.readings)
    for number, of_reading in changed.items():
        readings[number] = readings[number].model_copy(update=of_reading)
    return told.model_copy(update={"readings": tuple(readings)})


def failed(result: Result) -> dict[str, str]:
    return {name: one.effect for name, one in verdicts(result).items() if not one.passed}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.workload} {cell.batch_size}")
def test_a_right_session_of_every_planned_cell_passes(cell: Cell) -> None:
    result = results.make_complete(cell, {"step_ns": 10**9})
    found = verdicts(result)
    assert found["witness"].passed, found["witness"].sentence
    assert found["witness"].figures["verdict"] == "conformant"
    assert {name for name in failed(result) if name != "times_fit"} == set()


def test_a_part_of_a_witness_is_not_ranked() -> None:
    cell = results.make_cell()
    for readings in ((), results.make_witness(cell).readings[:2]):
        result = results.make_complete(cell, witness=results.make_witness(cell, readings=readings))
        assert failed(result) == {"evidence": "unranked", "witness": "doubtful"}
        sentence = verdicts(result)["witness"].sentence
        assert f"the witness has {len(readings)} readings of 3" in sentence
        missing = verdicts(result)["evidence"].sentence
        assert missing == "a current agent also sends 3 readings of the timed session"


def test_without_a_digest_of_its_data_it_is_not_ranked() -> None:
    assert failed(results.make_complete(data_digest=None)) == {"evidence": "unranked"}


@pytest.mark.parametrize(("scale", "off"), [("dynamic", 0.0), ("1024", 1.0)])
def test_an_update_that_overflows_may_be_left_out(scale: str, off: float) -> None:
    """Keras leaves it out under its dynamic loss scale. The server and the agent say the same."""
    cell = results.make_cell("mnist-dense", device=Device(kind="cuda"), precision="mixed_float16")
    still = {1: {"movements": (0.0,) * len(results.make_witness(cell).movements)}}
    settings = {"recipe_settings": {"loss_scale": scale}}
    result = under_nonce(results.make_complete(cell, settings, witness=witness_with(cell, still)))
    judged = recomputation.verdict(result, recomputed_for(result, invented_for))
    assert judged is not None
    assert verdicts(result)["witness"].figures["deviation"] == judged.deviation == off


def test_where_the_weights_are_not_at_hand_the_range_is_wide() -> None:
    """test_real_data.py has real data, tests/protocol/test_witness_verdict.py the range."""
    cell = results.make_cell("resnet50-transfer")
    weights = {"frozen_weights": "sha256:" + "0" * 64}

    def judged(**changes: Any) -> CheckVerdict:
        measured = {"step_ns": 10**10, "recipe_settings": weights}
        made = results.make_complete(cell, measured, witness=results.make_witness(cell, **changes))
        return verdicts(made)["witness"]

    assert judged().passed, judged().sentence
    assert "at most 1.5 times, the loss of guessing" in judged().sentence
    guessing = math.log(workload_named(cell.workload).data_set.classes)
    assert judged(start_loss=1.4 * guessing).effect == "unranked"
    few = judged(readings=())
    assert (few.figures["verdict"], few.effect) == ("unverified", "doubtful")


# The measurement of the fakes has 20 steps of warm-up and 12 blocks of 10.
@pytest.mark.parametrize(
    ("counted", "precision", "scale", "passes"),
    [
        (141, "float32", None, True),
        (140, "float32", None, False),
        (142, "float32", None, False),
        (70, "float32", None, False),
        (70, "float32", "dynamic", False),
        (139, "mixed_float16", "dynamic", True),
        (139, "mixed_float16", "1024", False),
        (142, "mixed_float16", "dynamic", False),
    ],
)
def test_the_steps_that_were_counted_are_those_that_were_timed(
    counted: int, precision: str, scale: str | None, passes: bool
) -> None:
    cell = results.make_cell(device=Device(kind="cuda"), precision=precision)
    settings = {"loss_scale": scale} if scale else {}
    result = results.make_complete(
        cell, {"recipe_settings": settings}, witness=results.make_witness(cell, step_count=counted)
    )
    verdict = verdicts(result)["steps"]
    assert (verdict.passed, verdict.effect) == (passes, "unranked")
    assert verdict.figures == {"expected": 141, "counted": counted}


@pytest.mark.parametrize(
    ("name", "is_bound", "says"),
    [
        ("mnist-cnn", True, '<td class="number">{loss:.6f}</td><td class="number">{loss:.6f}<'),
        (DROPOUT, True, " to "),
        ("mnist-cnn", False, "The server has not recomputed them"),
    ],
)
def test_the_page_shows_the_readings_beside_their_recomputation(
    post: Poster, name: str, is_bound: bool, says: str
) -> None:
    result = results.make_result(cell=results.make_cell(name))
    identity = post.settled(result) if is_bound else post(result)
    page = post.http.get(f"/results/{identity}").text
    section = page.partition('id="readings"')[2].partition("</section>")[0]
    sent = post.http.get(f"/api/v1/results/{identity}").json()["result"]["outcome"]["measurement"]
    readings = sent["witness"]["readings"]
    assert section.count('<th scope="row">') == len(readings)
    assert says.format(loss=readings[0]["loss"]) in section
    assert "141 of the 141 steps" in section


def test_the_page_of_a_result_without_a_witness_says_so(post: Poster) -> None:
    page = post.http.get(f"/results/{post(results.make_result(witness=False))}").text
    assert 'id="readings"' not in page
    assert "it has no witness of the timed session" in page
