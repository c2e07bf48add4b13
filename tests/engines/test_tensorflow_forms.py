"""TensorFlow's forms of ``tuned`` on CUDA, on a CPU: XLA's program trains as TensorFlow's own."""

import numpy as np
import pytest
from tests.fakes.workloads import small, variant

from bench_agent.engines.seam import Session, Start
from bench_protocol.catalogue import seeded
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Precision
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload

from . import test_reading as reading
from .conftest import Opener, form_of, losses, without_dropout

PLAIN, XLA = "graph", "xla"
BATCH, BATCHES = 16, 20
MLP = small(workload_named("fashion-mlp"), BATCH * BATCHES + 5)


def in_form(
    opened: Opener, form: str, workload: Workload, precision: Precision = "float32"
) -> Session:
    with form_of("tensorflow", form):
        session = opened("tensorflow", workload, "tuned", BATCH, precision)
    assert session.settings["jit_compile"] == str(form == XLA).lower()
    return session


def same_training(opened: Opener, workload: Workload, precision: Precision = "float32") -> None:
    """Single steps, a block longer than the loop of known length, over an epoch's end; and after a
    restart."""
    plain, other = (in_form(opened, form, workload, precision) for form in (PLAIN, XLA))
    tolerance = 1e-4 if precision == "float32" else 2e-2
    singly = losses(plain, 2)
    assert losses(other, 2) == pytest.approx(singly, rel=tolerance)
    for session in (plain, other):
        session.train_block(BATCHES + 1)
        session.sync()
    assert other.loss() == pytest.approx(plain.loss(), rel=10 * tolerance)
    assert other.step_count() == plain.step_count() == BATCHES + 3
    for now, expected in zip(other.trained_parameters(), plain.trained_parameters(), strict=True):
        np.testing.assert_allclose(now, expected, atol=1e-3 if precision == "float32" else 0.1)
    orders = (seeded.order(workload.data_set.train_samples, 1),)
    for session in (plain, other):
        session.restart(Start(seeded.initial_weights(workload), orders, 3, dropout=True))
    assert losses(other, 2) == pytest.approx(losses(plain, 2), rel=tolerance)


@pytest.mark.parametrize("optimizer", [Adam(), RMSprop(), SGD(momentum=0.9)])
def test_xla_trains_as_the_plain_form(opened: Opener, optimizer: Optimizer) -> None:
    same_training(opened, variant(without_dropout(MLP), optimizer=optimizer))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "precision"),
    [("mnist-cnn", "float32"), ("fashion-lstm", "float32"), ("mnist-cnn", "mixed_bfloat16")],
)
def test_xla_trains_other_layers_as_the_plain_form(
    opened: Opener, name: str, precision: Precision
) -> None:
    """Under SGD: RMSprop amplifies rounding in a convolution to 5e-3 in as many steps."""
    workload = without_dropout(small(workload_named(name), BATCH * BATCHES))
    same_training(opened, variant(workload, optimizer=SGD()), precision)


def test_under_xla_dropout_is_off_and_on(opened: Opener) -> None:
    """Masks follow from the step."""
    reading.off_and_on(in_form(opened, XLA, reading.MLP))


@pytest.mark.parametrize("form", [PLAIN, XLA])
def test_indices_of_a_gpu_train_the_same(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """On CUDA they are int64, because TensorFlow keeps int32 on the host."""
    from bench_agent.engines.tensorflow import steps

    workload = without_dropout(MLP)
    right = losses(in_form(opened, PLAIN, workload), 2)
    made = steps.StepsSession.__init__

    def with_int64(session: object, built: object, *, indices: str, **others: object) -> None:
        assert indices == "int32"
        made(session, built, indices="int64", **others)  # type: ignore[arg-type]

    monkeypatch.setattr(steps.StepsSession, "__init__", with_int64)
    session = in_form(opened, form, workload)
    assert session.settings["indices"] == "int64"
    assert losses(session, 2) == pytest.approx(right, rel=1e-5)
