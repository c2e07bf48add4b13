"""Seeds that follow from a nonce, the jobs of a result, and the server's recomputation of one."""

import hashlib

import numpy as np
import pytest
from tests.fakes import results
from tests.fakes.seeding import figures_of_job, recomputed_for, seed_honestly, with_traces
from tests.protocol.test_witness_verdict import DROPPED

from bench_protocol.catalogue import nonces, seeded
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.payload.result import Challenge, Result
from bench_protocol.recompute import figures, nonce_job
from bench_protocol.training import conformance, recomputation
from bench_protocol.training.witness_steps import is_affordable, witness_steps

NONCE = "ab" * 32
KINKED_MLP = "f88bd7605d0bd4dd1f37572d10d6ab76b42181a6d080a139d4576b1eadefcb70"
KINKED_DENSE = "c3fdedd12dafc4142b62a9e73ce37eb9d77b39cc6f931924621ace66d393f96f"
DENSE = workload_named("mnist-dense")


def test_a_seed_is_the_digest_of_nonce_workload_and_purpose() -> None:
    text = f"trainmark/trace/v2/{NONCE}/{DENSE.digest}/sgd".encode()
    assert nonces.seed_of(NONCE, DENSE.digest, "sgd") == hashlib.sha256(text).hexdigest()[:32]
    seeds = {
        nonces.seed_of(nonce, workload.digest, purpose)
        for nonce in (NONCE, "cd" * 32)
        for workload in CATALOGUE
        for purpose in nonces.PURPOSES
    }
    assert len(seeds) == 2 * len(CATALOGUE) * 4


def test_a_trace_takes_weights_order_and_data_from_its_nonce() -> None:
    one, other = (nonce_job(DENSE, "sgd", nonce, 32) for nonce in (NONCE, "cd" * 32))
    assert not np.array_equal(one.weights()[1]["kernel"], other.weights()[1]["kernel"])
    assert not np.array_equal(*(seeded.order(96, 0, job.seed) for job in (one, other)))
    data_set = one.trained.data_set
    pictures = [
        seeded.generated_data(data_set, "train", 32, job.data_seed)[0] for job in (one, other)
    ]
    assert not np.array_equal(*pictures)


def test_a_session_takes_weights_and_order_and_keeps_its_data() -> None:
    job = nonce_job(DENSE, "timed", NONCE, 128)
    assert job.seed == nonces.seed_of(NONCE, DENSE.digest, "timed")
    assert job.data_seed == seeded.DATA_SEED
    assert job.samples == DENSE.data_set.train_samples


def test_figures_of_a_trace_have_its_steps_and_movements() -> None:
    made = figures(DENSE, "workload", NONCE, 32)
    assert len(made.losses) == conformance.trace_steps(DENSE, "workload") == 3
    assert len(made.movements) == 4
    assert made.start_loss == made.losses[0]
    assert made != figures(DENSE, "workload", "cd" * 32, 32)


@pytest.mark.parametrize(
    ("name", "purpose", "nonce", "least", "most"),
    [
        # PyTorch is off by 6.8e-5 in the losses, 9.8e-5 in the movements: rounding decides a ReLU.
        ("fashion-mlp", "workload", KINKED_MLP, 6e-5, 8e-5),
        # TensorFlow is off by 1.4e-5 and 4.2e-4.
        ("mnist-dense", "sgd", KINKED_DENSE, 1.3e-5, 1.7e-5),
        ("fashion-mlp", "workload", NONCE, 0, 2e-6),
    ],
)
def test_a_trace_says_what_rounding_decides(
    name: str, purpose: nonces.Purpose, nonce: str, least: float, most: float
) -> None:
    made = figures(workload_named(name), purpose, nonce, 32)
    assert least <= max(made.rounding) <= most
    assert len(made.rounding) == len(made.losses)
    assert len(made.movements_rounding) == len(made.movements)
    assert max(made.movements_rounding) >= least


@pytest.mark.parametrize(
    ("name", "purpose"), [("fashion-lstm", "workload"), ("mnist-dense", "timed")]
)
def test_elsewhere_rounding_decides_nothing(name: str, purpose: nonces.Purpose) -> None:
    """A model without ReLU, and a session."""
    assert figures(workload_named(name), purpose, NONCE, 32).rounding == ()


def test_figures_of_a_session_are_ranges_where_it_drops_out() -> None:
    plain = figures(DENSE, "timed", NONCE, 1024)
    assert len(plain.losses) == witness_steps(DENSE, 1024)[-1]
    assert plain.band.low == plain.band.high
    assert len(plain.band.low.movements) == 4
    dropping = figures(DROPPED, "timed", NONCE, 16)
    for low, high in (
        (dropping.losses, dropping.high),
        (dropping.movements, dropping.movements_high),
    ):
        assert all(one < other for one, other in zip(low, high, strict=True))
    assert dropping.band.high.movements == dropping.movements_high


def bound(**overrides: object) -> Result:
    challenge = Challenge(id="1" * 32, nonce=NONCE, server_origin="here")
    return results.make_result(
        cell=results.make_cell("mnist-dense"),
        challenge=challenge,
        **overrides,  # type: ignore[arg-type]
    )


def test_the_jobs_of_a_result() -> None:
    made = recomputation.jobs(bound())
    assert [(job.purpose, job.batch_size) for job in made] == [
        ("sgd", 32),
        ("workload", 32),
        ("long", 32),
        ("timed", DENSE.batch_size),
    ]
    real = bound().model_copy(update={"cell": results.make_cell("mnist-dense", data="real")})
    assert [job.data for job in recomputation.jobs(real)] == [*["generated"] * 3, "real"]
    assert {job.key.text for job in recomputation.jobs(real)} & {job.key.text for job in made} == {
        job.key.text for job in made if job.purpose != "timed"
    }


def test_a_session_of_a_large_batch_is_not_recomputed() -> None:
    vgg = workload_named("cifar100-vgg16")
    for batch_size, purposes in ((1_696, 3), (1_697, 2)):
        cell = results.make_cell(vgg.name, batch_size=batch_size)
        large = bound().model_copy(update={"cell": cell})
        assert len(recomputation.jobs(large)) == purposes
    for workload in CATALOGUE:
        assert all(is_affordable(workload, size) for size in workload.batch_sizes)


def test_a_result_has_one_nonce() -> None:
    assert results.make_result(nonce=NONCE).seeding_nonce == NONCE
    with pytest.raises(ValueError, match="either a challenge or a nonce"):
        bound(nonce=NONCE)


def test_traces_are_compared_once_both_are_known() -> None:
    result = seed_honestly(bound())
    known = recomputed_for(result, figures_of_job)
    found = recomputation.verdict(result, known)
    assert found is not None
    assert found.kind == "conformant", found
    assert recomputation.is_seeded(result)
    assert recomputation.verdict(result, dict(list(known.items())[:1])) is None
    (first, *others) = result.measurement.traces  # type: ignore[union-attr]
    other = first.model_copy(update={"seed": "0" * 32})
    assert not recomputation.is_seeded(with_traces(result, (other, *others)))
    assert not recomputation.is_seeded(result.model_copy(update={"seed": "0" * 32}))
    long = recomputation.long_verdict(result, known)
    assert long is not None
    assert long.kind == "conformant", long


@pytest.mark.parametrize("field", ["losses", "movements"])
def test_noise_of_a_percent_is_wrong(field: str) -> None:
    result = seed_honestly(bound())
    known = recomputed_for(result, figures_of_job)
    (first, *others) = result.measurement.traces  # type: ignore[union-attr]
    values = getattr(first, field)
    off = first.model_copy(update={field: (*values[:-1], values[-1] * 1.01)})
    found = recomputation.verdict(with_traces(result, (off, *others)), known)
    assert found is not None
    assert found.kind == "wrong_result", found
