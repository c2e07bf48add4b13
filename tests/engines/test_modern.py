"""The modern layers in every framework: readings, evaluation and restarts against NumPy."""

import numpy as np
import pytest
from tests.fakes.modern import SMALL_GPT, SMALL_RESNET
from tests.fakes.workloads import cell_of

from bench_agent.base.messages import ReadTask
from bench_agent.engines.seam import Session, Start
from bench_agent.worker import forms, witness
from bench_protocol.catalogue import nonces, seeded
from bench_protocol.catalogue.matrix import Precision
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import trained_tensors
from bench_protocol.recompute import figures
from bench_protocol.recompute.layers import forward, softmax_cross_entropy
from bench_protocol.training import reading
from bench_protocol.training.witness_verdict import judge

from .conftest import Opener, evaluated, installed
from .loops import every_pair

NONCE = f"{7:064x}"
every_workload = pytest.mark.parametrize(
    "workload", [SMALL_GPT, SMALL_RESNET], ids=lambda one: one.name
)


@every_pair
@every_workload
@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
def test_a_session_conforms(
    framework: str,
    recipe: str,
    workload: Workload,
    precision: Precision,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the verdict of a server, where a batch repeats three samples."""
    monkeypatch.setattr(reading, "recomputed_samples", lambda _: 30)
    assert reading.distinct(workload, workload.batch_size) == 3
    engine, cell = installed(framework), cell_of(workload, framework, recipe, precision=precision)
    engine.load(workload, cell)
    told, settings = forms.read(engine, ReadTask(workload=workload, cell=cell, nonce=NONCE))
    right = figures(workload, NONCE, workload.batch_size)
    seed = nonces.seed_of(NONCE, workload.digest)
    verdict = judge(cell, workload, seed, told, right, settings=settings)
    assert verdict.kind == "conformant", verdict.sentence


@every_pair
@every_workload
def test_weights_and_running_statistics_go_back_and_evaluation_takes_them(
    opened: Opener, framework: str, recipe: str, workload: Workload
) -> None:
    session = opened(framework, workload, recipe)
    assert session.parameter_count() == workload.parameter_count
    weights = seeded.initial_weights(workload)
    # Not at the starting weights, and across an epoch's end.
    session.train_block(11)
    session.sync()
    assert all(norm and norm > 0 for norm in witness.movements(session, workload, weights))
    assert evaluated(session, workload) == pytest.approx(by_numpy(session, workload), rel=1e-4)
    session.restart(Start(weights, (seeded.order(64, 0),), 0, dropout=False))
    assert set(witness.movements(session, workload, weights)) == {0.0}
    assert evaluated(session, workload) == pytest.approx(by_numpy(session, workload), rel=1e-4)


@every_pair
@every_workload
def test_the_device_has_the_inputs_as_the_model_takes_them(
    opened: Opener, framework: str, recipe: str, workload: Workload
) -> None:
    """Tokens as whole numbers, pictures in [0, 1]."""
    session = opened(framework, workload, recipe)
    rows = seeded.order(64, 0)[: 2 * workload.batch_size]
    inputs = seeded.generated_rows(workload.data_set, "train", rows)[0]
    expected = inputs if workload.data_set.tokens else inputs / np.float32(255)
    np.testing.assert_array_equal(np.concatenate(session.copied_batches(2)), expected)


def by_numpy(session: Session, workload: Workload) -> tuple[float, float]:
    """Loss and accuracy over the test split, by a pass forward of the session's own weights."""
    weights = [dict[str, np.ndarray]() for _ in workload.layers]
    now = zip(trained_tensors(workload), session.trained_parameters(), strict=True)
    for tensor, values in now:
        assert values.shape == tensor.shape
        weights[tensor.index][tensor.name] = values.astype(np.float64)
    inputs, labels = seeded.generated_data(workload.data_set, "test")
    x = inputs if workload.data_set.tokens else inputs / np.float32(255)
    x = x.astype(np.float64)
    for layer, of_layer in zip(workload.layers, weights, strict=True):
        x, _ = forward(layer, of_layer, x)
    loss = float(softmax_cross_entropy(x, labels)[0].mean())
    return loss, float((x.argmax(axis=-1) == labels).mean())
