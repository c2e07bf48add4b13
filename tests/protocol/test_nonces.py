"""Seeds that follow from a nonce, the job of a result, and the server's recomputation of it."""

import hashlib

import pytest
from tests.fakes import results
from tests.fakes.seeding import figures_of_job, recomputed_for, seed_honestly

from bench_protocol.catalogue import nonces
from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.payload.result import Challenge, Result
from bench_protocol.training import reading, recomputation

NONCE = "ab" * 32
DENSE = workload_named("mnist-dense")


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recomputation of seconds shows no more here."""
    monkeypatch.setattr(reading, "MOST_STEPS", 8)


def test_a_seed_is_the_digest_of_nonce_and_workload() -> None:
    text = f"trainmark/session/v1/{NONCE}/{DENSE.digest}".encode()
    assert nonces.seed_of(NONCE, DENSE.digest) == hashlib.sha256(text).hexdigest()[:32]
    seeds = {
        nonces.seed_of(nonce, workload.digest)
        for nonce in (NONCE, "cd" * 32)
        for workload in CATALOGUE
    }
    assert len(seeds) == 2 * len(CATALOGUE)


def bound(**overrides: object) -> Result:
    challenge = Challenge(id="1" * 32, nonce=NONCE, server_origin="here")
    return results.make_result(
        cell=results.make_cell("mnist-dense"),
        challenge=challenge,
        **overrides,  # type: ignore[arg-type]
    )


def test_the_job_of_a_result() -> None:
    job = recomputation.job(bound())
    assert job is not None
    assert (job.workload, job.nonce, job.batch_size) == (DENSE, NONCE, DENSE.batch_size)
    assert job.key.text == f"{nonces.seed_of(NONCE, DENSE.digest)}-{DENSE.batch_size}"
    real = bound().model_copy(update={"cell": results.make_cell("mnist-dense", data="real")})
    of_real = recomputation.job(real)
    assert of_real is not None
    assert of_real.key.text == f"{job.key.text}-real"
    assert recomputation.job(results.make_failure()) is None


def test_a_session_without_all_its_inputs_has_no_job() -> None:
    """Pretrained weights, a batch that takes minutes, another definition of the workload."""
    vgg = workload_named("cifar100-vgg16")
    large = results.make_cell(vgg.name, batch_size=50_000)
    other = results.make_cell(vgg.name, workload_digest="0" * 64)
    for cell in (large, other):
        assert recomputation.job(bound().model_copy(update={"cell": cell})) is None
    told = {"recipe_settings": {"frozen_weights": "a file"}}
    transfer = results.make_complete(results.make_cell("resnet50-transfer"), told)
    assert recomputation.job(transfer) is None
    # The word of a sender leaves nothing out where no layer is frozen.
    other_cell = results.make_complete(results.make_cell(), told)
    assert recomputation.job(other_cell) is not None
    assert recomputation.session_is_generated(other_cell)


def test_a_result_has_one_nonce() -> None:
    assert results.make_result(nonce=NONCE).seeding_nonce == NONCE
    with pytest.raises(ValueError, match="either a challenge or a nonce"):
        bound(nonce=NONCE)


def test_a_session_is_compared_once_it_is_recomputed() -> None:
    result = seed_honestly(bound())
    known = recomputed_for(result, figures_of_job)
    found = recomputation.verdict(result, known)
    assert found is not None
    assert found.kind == "conformant", found
    assert recomputation.is_seeded(result)
    assert recomputation.verdict(result, {}) is None
    other = result.model_copy(update={"seed": "0" * 32})
    assert not recomputation.is_seeded(other)
    assert recomputation.verdict(other, known) is None
