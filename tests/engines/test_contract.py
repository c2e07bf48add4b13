"""The contract of every engine, with every recipe, on every workload."""

import math
import sys

import pytest
from tests.fakes.workloads import cell_of, small, variant

from bench_agent import engines
from bench_agent.engines import common
from bench_agent.engines.seam import HasForms
from bench_protocol.catalogue.catalogue import workload_named
from bench_protocol.catalogue.matrix import Device
from bench_protocol.catalogue.workloads import SGD

from .conftest import Opener, evaluated, losses, without_dropout
from .loops import every_framework, every_model

BATCH = 16
# Longer than any unrolled loop (16 steps). The odd samples make a short batch that must be dropped.
BATCHES = 20
MLP, CNN = (
    small(workload_named(name), BATCHES * BATCH + 5) for name in ("fashion-mlp", "mnist-cnn")
)
TOLERANCE = 1e-5
# After twenty steps rounding has grown.
LONG_TOLERANCE = 1e-4


@every_framework
def test_an_engine_says_what_it_is_without_importing_its_framework(framework: str) -> None:
    engine = engines.engine_named(framework)
    before = set(sys.modules)
    assert engine.name == framework
    assert engine.distributions
    assert engine.why_not("cpu", "naive", "float32") is None
    assert engine.why_not("cpu", "naive", "mixed_bfloat16") is None
    assert "NVIDIA" in (engine.why_not("cpu", "naive", "tf32") or "")
    assert "GPU" in (engine.why_not("cpu", "naive", "mixed_float16") or "")
    assert engine.why_not("cuda" if sys.platform == "darwin" else "metal", "naive", "float32")
    assert engine.import_name.split(".")[0] not in set(sys.modules) - before


@every_model
def test_a_session(opened: Opener, framework: str, recipe: str) -> None:
    """Dropout on: what is timed must learn, past an epoch's end, and answer every question."""
    workload = MLP
    session = opened(framework, workload, recipe, BATCH)
    assert session.parameter_count() == workload.parameter_count
    assert "cpu" in session.placement().lower()
    assert session.layers == "stock"
    assert session.settings
    before, _ = evaluated(session, workload)
    session.train_block(1)
    session.sync()
    assert session.loss() == pytest.approx(math.log(10), rel=0.2)
    for _ in range(4):
        session.train_block(15)
    session.sync()
    after, accuracy = evaluated(session, workload)
    assert after < 0.75 * before
    assert accuracy > 0.5
    assert math.isfinite(session.loss())
    memory = session.peak_memory_bytes()
    assert memory is None or memory > 0
    session.close()
    session.close()


@pytest.mark.parametrize("recipe", ["naive", "pipeline"])
def test_the_loss_is_the_last_batchs_at_an_epochs_end(opened: Opener, recipe: str) -> None:
    """Keras' ``fit`` resets its metrics there; no other loop does anything."""
    workload = variant(without_dropout(MLP), optimizer=SGD())
    singly = losses(opened("tensorflow", workload, recipe, BATCH), BATCHES)
    session = opened("tensorflow", workload, recipe, BATCH)
    session.train_block(BATCHES)
    session.sync()
    assert session.loss() == pytest.approx(singly[-1], rel=LONG_TOLERANCE)


@every_framework
def test_pictures_too_many_for_floats_stay_bytes(
    opened: Opener, monkeypatch: pytest.MonkeyPatch, framework: str
) -> None:
    """Pictures of a convolution, whose layout some frameworks change."""
    workload = variant(CNN, optimizer=SGD())
    floats = losses(opened(framework, workload, "tuned", BATCH), 3)
    monkeypatch.setattr(common, "LARGEST_FLOAT_DATA_BYTES", 0)
    session = opened(framework, workload, "tuned", BATCH)
    assert session.settings["data_on_device"] == "uint8"
    assert losses(session, 3) == pytest.approx(floats, rel=TOLERANCE)


@pytest.mark.parametrize(
    ("framework", "forms"),
    [("tensorflow", ("graph", "xla")), ("torch", ("eager", "cuda_graph", "compiled_cuda_graph"))],
)
def test_forms_are_for_tuned_on_cuda(framework: str, forms: tuple[str, ...]) -> None:
    engine = engines.engine_named(framework)
    assert isinstance(engine, HasForms)
    cell = cell_of(MLP, framework, "tuned")
    cuda = {"device": Device(kind="cuda")}
    assert engine.forms(cell.model_copy(update=cuda)) == forms
    assert engine.forms(cell) == ()
    assert engine.forms(cell.model_copy(update={**cuda, "recipe": "pipeline"})) == ()
