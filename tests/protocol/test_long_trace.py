"""Verdicts on the long trace."""

from typing import Any

import pytest
from tests.fakes import results
from tests.fakes.results import make_cell
from tests.fakes.seeding import OWN_NONCE, invented_for

from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Device
from bench_protocol.payload.witness import trained_tensors
from bench_protocol.recompute import nonce_job, recompute
from bench_protocol.training.long_trace import LongVerdict, judge
from bench_protocol.training.recomputation import trace_jobs, trace_reference


def test_the_second_epoch_of_a_trace_has_an_order_of_its_own() -> None:
    """After the 20 batches of ``order/0`` come those of ``order/1``."""
    job = nonce_job(workload_named("mnist-dense"), "long", OWN_NONCE, 32)
    losses = recompute(job, 21).losses
    assert losses[:20] == recompute(job, 20).losses
    with pytest.MonkeyPatch.context() as patch:
        order = seeded.order
        patch.setattr(seeded, "order", lambda samples, epoch, seed: order(samples, 0, seed))
        assert recompute(job, 21).losses[20] != losses[20]
    with pytest.raises(ValueError, match="0 steps"):
        recompute(job, 0)


def long_verdict(
    name: str,
    loss: float = 0.0,
    movement: float = 0.0,
    cell: dict[str, Any] | None = None,
    architecture: str = "x86_64",
    **changes: Any,
) -> LongVerdict:
    """The verdict on a trace whose last loss and movement are off by relative deviations."""
    workload = workload_named(name)
    made = make_cell(name, **(cell or {}))
    *short, trace = results.make_traces(make_cell(name))
    losses = (*trace.losses[:-1], (trace.losses[-1] or 0) * (1 + loss))
    moved = (*trace.movements[:-1], (trace.movements[-1] or 0) * (1 + movement))
    changed = trace.model_copy(update={"losses": losses, "movements": moved, **changes})
    (job,) = (job for job in trace_jobs(workload, OWN_NONCE) if job.purpose == "long")
    reference = trace_reference(job, invented_for(job))
    return judge(made, workload, [*short, changed], reference, architecture)


@pytest.mark.parametrize(
    ("name", "loss", "movement", "kind"),
    [
        ("mnist-dense", 0, 0, "conformant"),
        ("fashion-lstm", 8e-5, 1.5e-4, "conformant"),
        ("fashion-lstm", 2e-4, 0, "wrong_result"),
        ("fashion-lstm", 0, 3e-4, "wrong_result"),
        # An honest fashion-mlp was 1.0e-4 and 3.5e-4 off under one of 150 nonces.
        ("fashion-mlp", 1.1e-4, 4e-4, "conformant"),
        ("mnist-dense", 2e-3, 0, "wrong_result"),
        ("mnist-dense", 0, 1e-2, "wrong_result"),
        # Honest traces were 2.0e-3 and 2.5e-2 off under one of 60 nonces.
        ("mnist-cnn", 2.2e-3, 3e-2, "conformant"),
        ("mnist-cnn", 2e-2, 0, "wrong_result"),
        ("mnist-cnn", 0, 2e-1, "wrong_result"),
    ],
)
def test_a_long_trace_is_compared(name: str, loss: float, movement: float, kind: str) -> None:
    assert long_verdict(name, loss, movement).kind == kind


def test_an_equal_long_trace_agrees_exactly() -> None:
    sentence = long_verdict("mnist-dense").sentence
    assert sentence == "the long trace equals its recomputation"
    assert "off by 8e-05 in losses" in long_verdict("mnist-dense", 8e-5).sentence


def test_a_long_trace_that_was_not_measured_has_the_witness_limits() -> None:
    on_gpu = {"device": Device(kind="cuda")}
    assert long_verdict("mnist-dense", 1e-4, cell=on_gpu).kind == "conformant"
    verdict = long_verdict("mnist-dense", 1e-2, cell=on_gpu)
    assert verdict.kind == "wrong_result"
    assert "not measured" in verdict.sentence


@pytest.mark.parametrize(
    ("loss", "kind"), [(8e-4, "conformant"), (3e-3, "unverified"), (6e-3, "wrong_result")]
)
def test_a_long_trace_on_arm64_is_unverified_before_it_is_wrong(loss: float, kind: str) -> None:
    verdict = long_verdict("mnist-dense", loss, architecture="arm64")
    assert verdict.kind == kind
    assert ("not measured on arm64" in verdict.sentence) == (kind == "unverified")


def test_a_long_trace_without_a_value_is_wrong() -> None:
    assert long_verdict("mnist-dense", losses=(2.0, None, 1.0)).kind == "wrong_result"
    movements = (None,) * len(list(trained_tensors(workload_named("mnist-dense"))))
    assert long_verdict("mnist-dense", movements=movements).kind == "wrong_result"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seed": "f" * 32}, "another job"),
        ({"batch_size": 7}, "another job"),
        ({"optimizer": "workload"}, "another job"),
        ({"steps": (1, 2, 3)}, "another job"),
        ({"movements": ()}, "not every tensor"),
        ({"steps": ()}, "no long trace"),
    ],
)
def test_a_long_trace_of_another_job_says_nothing(changes: dict[str, Any], says: str) -> None:
    verdict = long_verdict("mnist-dense", **changes)
    assert verdict.kind == "unverified"
    assert says in verdict.sentence
