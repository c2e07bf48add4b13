"""Recomputations in the log: what contradicts itself, and what is about another result."""

from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.seeding import BOUND, invented_for, recomputed

from bench_protocol.base.errors import InvalidField
from bench_protocol.catalogue import nonces
from bench_protocol.payload.result import Result
from bench_protocol.training import recomputation
from bench_protocol.training.recomputation import Draw, Recomputation

RESULT = results.make_result(cell=results.make_cell("mnist-dense"), challenge=BOUND)
DIGEST = RESULT.cell.workload_digest
SESSION = nonces.seed_of(BOUND.nonce, DIGEST)


def said(**changes: Any) -> Recomputation:
    job = recomputation.job(RESULT)
    assert job is not None
    return recomputed(job, BOUND.id, BOUND.server_origin, invented_for).model_copy(update=changes)


def draw(**changes: Any) -> Draw:
    roots = (f"{number:064x}" for number in range(1_000))
    drawn = (Draw(size=3, root=root, seed=SESSION, share=0.1) for root in roots)
    return next(one for one in drawn if not recomputation.is_drawn(one)).model_copy(update=changes)


def left_out(**changes: Any) -> Recomputation:
    fields = {"verdict": "not_drawn", "figures": None, "data_digest": None, "draw": draw()}
    return said(**fields | changes)


def picked() -> Draw:
    roots = (f"{number:064x}" for number in range(1_000))
    return next(one for root in roots if recomputation.is_drawn(one := draw(root=root)))


@pytest.mark.parametrize("honest", [said(), left_out()])
def test_an_honest_recomputation_is_read_and_about_its_result(honest: Recomputation) -> None:
    assert recomputation.parse(recomputation.payload(honest)) == honest
    recomputation.require_about(honest, RESULT)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (said(figures=None), "figures"),
        (left_out(figures=said().figures), "figures"),
        (said(draw=draw()), "draw"),
        (left_out(draw=None), "draw"),
        (left_out(draw=picked()), "draw"),
        (left_out(draw=draw(seed="0" * 32)), "draw.seed"),
        (left_out(draw=draw(share=0.0)), "draw.share"),
        (said(data_digest=None), "data_digest"),
        (left_out(data_digest="e" * 64), "data_digest"),
        (said(seed="0" * 32), "seed"),
    ],
)
def test_a_recomputation_that_contradicts_itself_is_refused(
    wrong: Recomputation, field: str
) -> None:
    with pytest.raises(InvalidField) as caught:
        recomputation.parse(recomputation.payload(wrong))
    assert caught.value.field == field


OTHER_NONCE = "0f" * 32
OTHER_SEED = nonces.seed_of(OTHER_NONCE, DIGEST)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"challenge": "d" * 32}, "challenge"),
        ({"nonce": OTHER_NONCE, "seed": OTHER_SEED}, "challenge"),
        ({"server_origin": "elsewhere"}, "challenge"),
        ({"batch_size": 33}, "seed"),
        ({"workload": "mnist-cnn"}, "seed"),
        ({"workload_digest": "e" * 64}, "seed"),
        ({"data": "real"}, "seed"),
    ],
)
def test_a_recomputation_about_something_else_is_noticed(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidField) as caught:
        recomputation.require_about(said().model_copy(update=changes), RESULT)
    assert caught.value.field == field


def test_a_result_without_a_challenge_has_no_recomputations() -> None:
    offline: Result = RESULT.model_copy(update={"challenge": None, "nonce": BOUND.nonce})
    with pytest.raises(InvalidField, match="another challenge"):
        recomputation.require_about(said(), offline)
